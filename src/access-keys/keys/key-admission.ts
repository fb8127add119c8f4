/** Admission of writes that depends on the writer or on other keys. */

import { metadataOf } from '../../kube/object.ts';
import { LRUCache } from 'lru-cache';
import type { Admission, AdmissionRequest } from '../../apiserver/objects/object-writer.ts';
import type { Authorizer } from '../../apiserver/request/request-info.ts';
import { forbiddenValue, type FieldError, forbidden, invalid } from '../../apiserver/status.ts';
import { currentForm, groupName, kindName } from '../../apiserver/objects/resource-definition.ts';
import type { Clock } from '../../base/clock.ts';
import { type JsonObject, objectField, objectList, text } from '../../base/json.ts';
import type { Store } from '../../apiserver/storage/store.ts';
import { suppliedKeyProblem, type KeyDigests } from '../credentials/access-key.ts';
import type { WriteAuthorizer } from '../authorization/write-authorizer.ts';
import { isAdministrator, subjectOf } from '../identity.ts';
import { isKeyReference } from './key-lifecycle.ts';
import type { KeyIndex } from './key-index.ts';
import { KEY_STORAGE } from './key-kind.ts';
import { keyBytes, keyError } from './key-validation.ts';

export interface KeyAdmissionOptions {
  readonly store: Store;
  readonly index: KeyIndex;
  readonly digests: KeyDigests;
  readonly clock: Clock;
  readonly authorizer: Authorizer;
  readonly writes: Pick<WriteAuthorizer, 'authorize'>;
}

/** Time from the check of a supplied key until the index contains its object, at most. */
const CLAIM_MS = 2_000;
const CLAIMS_MAX = 10_000;
/** Limit of unexpired keys per subject, so that forgotten keys do not fill the store. It does not apply to administrators. */
export const KEYS_PER_USER_MAX = 1000;

export const KEYS_BYTES_PER_USER_MAX = 4 * 1024 * 1024;

interface Claim {
  readonly name: string;
  /** Monotonic. */
  readonly untilMs: number;
}

export class KeyAdmission implements Admission {
  readonly #options: KeyAdmissionOptions;
  /** By credential id. With `max` instead of `maxSize` the cache would allocate its memory up front. */
  readonly #claims = new LRUCache<string, Claim>({ maxSize: CLAIMS_MAX, sizeCalculation: () => 1 });

  constructor(options: KeyAdmissionOptions) {
    this.#options = options;
  }

  /** Throws 403 for too many keys of a subject, 422 for conflicts with other keys, and the errors of `writes`. */
  async admit(write: AdmissionRequest): Promise<void> {
    await this.#options.writes.authorize(write);
    const { target, next, previous } = write;
    if (target.definition.storage !== KEY_STORAGE || target.subresource) return;
    if (!previous) this.#rejectTooMany(write);
    this.#rejectTooLarge(write);
    const errors = [...(await this.#ownerErrors(write)), ...(previous ? [] : this.#keyErrors(write))];
    if (errors.length === 0) return;
    // One response with the errors of validation, which would follow next.
    const all = [...errors, ...target.definition.validate(next, previous)];
    throw invalid(kindName(target.definition), text(metadataOf(next), 'name'), all);
  }

  #rejectTooMany({ user, target, next }: AdmissionRequest): void {
    const { name } = subjectOf(objectField(next, 'spec'));
    if (isAdministrator(user) || this.#unexpiredOf(name) < KEYS_PER_USER_MAX) return;
    const why = `${JSON.stringify(name)} has ${KEYS_PER_USER_MAX} access keys, which is the limit: delete keys that are not used`;
    throw forbidden(groupName(target.definition), target.name, why);
  }

  #rejectTooLarge({ user, target, next, previous }: AdmissionRequest): void {
    const bytes = keyBytes(next);
    if (isAdministrator(user) || (previous && bytes <= keyBytes(previous))) return;
    const { name } = subjectOf(objectField(next, 'spec'));
    const others = [...this.#options.index.ofUser(name)].filter((key) => key.name !== target.name);
    const sum = others.reduce((all, key) => all + key.bytes, bytes);
    if (sum <= KEYS_BYTES_PER_USER_MAX) return;
    const why = `the access keys of ${JSON.stringify(name)} would have ${sum} bytes, and ${KEYS_BYTES_PER_USER_MAX} is the limit: delete keys that are not used`;
    throw forbidden(groupName(target.definition), target.name, why);
  }

  #unexpiredOf(name: string): number {
    const { index, clock } = this.#options;
    const keys = index.ofUser(name);
    // Rarely more: expired keys are kept for a week.
    if (keys.size < KEYS_PER_USER_MAX) return keys.size;
    const nowMs = clock.now();
    return [...keys].filter((key) => (index.expiresAtMs(key) ?? Number.POSITIVE_INFINITY) > nowMs).length;
  }

  /** blockOwnerDeletion requires the permission to delete the owner. */
  async #ownerErrors(write: AdmissionRequest): Promise<FieldError[]> {
    const before = new Set(blockingOwners(write.previous).map(({ owner }) => text(owner, 'uid')));
    const errors: FieldError[] = [];
    for (const { owner, index } of blockingOwners(write.next)) {
      if (before.has(text(owner, 'uid')) || (await this.#mayDelete(write, owner))) continue;
      const field = `metadata.ownerReferences[${index}].blockOwnerDeletion`;
      errors.push(forbiddenValue(field, 'requires the permission to delete the owner'));
    }
    return errors;
  }

  /** False for an owner that is not visible to the user or of another kind. */
  async #mayDelete({ user, target: { definition } }: AdmissionRequest, owner: JsonObject): Promise<boolean> {
    if (!isKeyReference({ apiVersion: text(owner, 'apiVersion'), kind: text(owner, 'kind') })) return false;
    const name = text(owner, 'name');
    const entry = await this.#options.store.get({ resource: KEY_STORAGE, namespace: '', name });
    if (!entry || text(metadataOf(entry.value), 'uid') !== text(owner, 'uid')) return false;
    const { authorizer } = this.#options;
    const isVisible = authorizer.visibleTo?.(user, definition);
    if (isVisible && !isVisible(currentForm(definition, entry))) return false;
    const { group, version, plural } = definition;
    const kind = { group, version, resource: plural, subresource: '', namespace: '' };
    const decision = await authorizer.authorize(user, {
      ...kind,
      name,
      verb: 'delete',
      path: '',
      prefix: '',
    });
    return decision.isAllowed;
  }

  /** A secret belongs to one object. Generated ones are unique; two clients may supply the same one, also concurrently. */
  #keyErrors({ target: { name }, next, isDryRun }: AdmissionRequest): FieldError[] {
    const key = text(objectField(next, 'spec'), 'key');
    if (suppliedKeyProblem(key) !== undefined) return [];
    const { digests, index, clock } = this.#options;
    const id = digests.presented(key)?.id ?? '';
    const nowMs = clock.monotonicMs();
    const claim = this.#claims.get(id);
    const isClaimed = claim !== undefined && claim.untilMs > nowMs && claim.name !== name;
    if (isClaimed || index.byCredential(id).length > 0) {
      return [keyError('is in use by another object; omit it to have one generated')];
    }
    if (!isDryRun) this.#claims.set(id, { name, untilMs: nowMs + CLAIM_MS });
    return [];
  }
}

/** The owner references that block the deletion of their owner, with their index. */
function blockingOwners(key: JsonObject | undefined): { owner: JsonObject; index: number }[] {
  return objectList(metadataOf(key ?? {}), 'ownerReferences')
    .map((owner, index) => ({ owner, index }))
    .filter(({ owner }) => owner['blockOwnerDeletion'] === true);
}
