/** Rules for writes of keys that need the writer or other keys. */

import { LRUCache } from 'lru-cache';
import type { Admission, ReviewedWrite } from '../../../apiserver/objects/admission.ts';
import type { Authorizer } from '../../../apiserver/request/authorizer.ts';
import { forbiddenValue, type FieldError } from '../../../apiserver/field-error.ts';
import { forbidden, invalid } from '../../../apiserver/status.ts';
import { currentForm, groupName, kindName } from '../../../apiserver/request/target.ts';
import { metadataOf, objectField, objectList, text } from '../../../apiserver/validation/metadata.ts';
import type { Clock } from '../../../base/clock.ts';
import type { JsonObject } from '../../../base/json.ts';
import type { Store } from '../../../apiserver/storage/store.ts';
import { suppliedKeyProblem } from '../../credentials/access-key.ts';
import type { KeyDigests } from '../../credentials/key-digests.ts';
import { isAdministrator, subjectOf } from '../../identity.ts';
import { isKeyReference } from '../lifecycle/key-lifecycle.ts';
import type { KeyIndex } from '../index/key-index.ts';
import { KEY_STORAGE } from './key-kind.ts';
import { keyError } from './key-validation.ts';

export interface KeyAdmissionOptions {
  readonly store: Store;
  readonly index: KeyIndex;
  readonly digests: KeyDigests;
  readonly clock: Clock;
  /** Whether the writer may write this at all; throws a `StatusError` to refuse. Comes before every other rule. */
  reviewAccess(write: ReviewedWrite): Promise<void>;
  /** Comes later than this: it may need the index. */
  authorizer(): Authorizer;
}

/** From the check of a key until the index knows its object, which a busy store takes this long for at most. */
const CLAIM_MS = 2_000;
const CLAIMS_MAX = 10_000;
/** Keys of one user, team or subject: what is forgotten somewhere must not fill the store. Administrators may go on. */
export const KEYS_PER_USER_MAX = 1000;

/** Whose key it is about to become. */
interface Claim {
  readonly name: string;
  /** Monotonic. */
  readonly untilMs: number;
}

export class KeyAdmission implements Admission {
  readonly #options: KeyAdmissionOptions;
  /** By the id in the credential. Bounded by size, not by number: for a number the cache would take its memory at once. */
  readonly #claims = new LRUCache<string, Claim>({ maxSize: CLAIMS_MAX, sizeCalculation: () => 1 });

  constructor(options: KeyAdmissionOptions) {
    this.#options = options;
  }

  async beforeCreate(): Promise<void> {
    // A key needs nothing around it.
  }

  async beforeDelete(): Promise<void> {
    // Who may ask for it may have it.
  }

  async afterWrite(): Promise<void> {
    // Whoever must know follows the store: other replicas write too.
  }

  /** Throws 403 for more keys than a user may have, 422 for what only shows beside other keys, and whatever `reviewAccess` throws. */
  async review(write: ReviewedWrite): Promise<void> {
    await this.#options.reviewAccess(write);
    const { target, next, previous } = write;
    if (target.definition.storage !== KEY_STORAGE || target.subresource) return;
    if (!previous) this.#rejectTooMany(write);
    const errors = [...(await this.#ownerErrors(write)), ...(previous ? [] : this.#keyErrors(write))];
    if (errors.length === 0) return;
    // In one answer with what is wrong with the fields, which would be the next thing to be said.
    const all = [...errors, ...target.definition.validate(next, previous)];
    throw invalid(kindName(target.definition), text(metadataOf(next), 'name'), all);
  }

  #rejectTooMany({ user, target, next }: ReviewedWrite): void {
    const { name } = subjectOf(objectField(next, 'spec'));
    if (isAdministrator(user) || this.#options.index.countOf(name) < KEYS_PER_USER_MAX) return;
    const why = `${JSON.stringify(name)} has ${KEYS_PER_USER_MAX} access keys, which is the limit: delete some first`;
    throw forbidden(groupName(target.definition), target.name, why);
  }

  /** Whoever holds up the deletion of an owner must be allowed to delete it. */
  async #ownerErrors(write: ReviewedWrite): Promise<FieldError[]> {
    const before = new Set(blockingOwners(write.previous).map(({ owner }) => text(owner, 'uid')));
    const errors: FieldError[] = [];
    for (const { owner, index } of blockingOwners(write.next)) {
      if (before.has(text(owner, 'uid')) || (await this.#mayDelete(write, owner))) continue;
      const field = `metadata.ownerReferences[${index}].blockOwnerDeletion`;
      errors.push(forbiddenValue(field, 'may only be set by those who may delete the owner'));
    }
    return errors;
  }

  /** An owner that this user does not see is none, and of other kinds there are none here. */
  async #mayDelete({ user, target: { definition } }: ReviewedWrite, owner: JsonObject): Promise<boolean> {
    if (!isKeyReference({ apiVersion: text(owner, 'apiVersion'), kind: text(owner, 'kind') })) return false;
    const name = text(owner, 'name');
    const entry = await this.#options.store.get({ resource: KEY_STORAGE, namespace: '', name });
    if (!entry || text(metadataOf(entry.value), 'uid') !== text(owner, 'uid')) return false;
    const authorizer = this.#options.authorizer();
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

  /** A key can only belong to one object. The made ones never meet; two clients may bring the same, at the same moment too. */
  #keyErrors({ target: { name }, next, isDryRun }: ReviewedWrite): FieldError[] {
    const key = text(objectField(next, 'spec'), 'key');
    if (suppliedKeyProblem(key) !== undefined) return [];
    const { digests, index, clock } = this.#options;
    const id = digests.presented(key)?.id ?? '';
    const nowMs = clock.monotonicMs();
    const claim = this.#claims.get(id);
    const isClaimed = claim !== undefined && claim.untilMs > nowMs && claim.name !== name;
    if (isClaimed || index.byCredential(id).length > 0) {
      return [keyError('is in use by another object; leave it out, and the server makes one')];
    }
    if (!isDryRun) this.#claims.set(id, { name, untilMs: nowMs + CLAIM_MS });
    return [];
  }
}

/** The owner references that hold up their owner, each with its place in the list. */
function blockingOwners(key: JsonObject | undefined): { owner: JsonObject; index: number }[] {
  return objectList(metadataOf(key ?? {}), 'ownerReferences')
    .map((owner, index) => ({ owner, index }))
    .filter(({ owner }) => owner['blockOwnerDeletion'] === true);
}
