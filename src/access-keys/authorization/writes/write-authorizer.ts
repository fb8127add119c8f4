/**
 * Which keys a caller may create and change: none with more rights or a longer life than its own. Applied before validation, so it must be
 * correct for any decoded object.
 */

import { MANAGEMENT_GROUP } from '../../api-group.ts';
import type { AdmissionRequest } from '../../../apiserver/objects/admission.ts';
import { failure, forbidden } from '../../../apiserver/status.ts';
import { groupName } from '../../../apiserver/request/target.ts';
import type { UserInfo } from '../../../apiserver/request/user.ts';
import { listField, metadataOf, objectField, text } from '../../../apiserver/metadata.ts';
import type { StatusError } from '../../../kube/status-error.ts';
import { cloneJson, isJsonObject, type JsonObject } from '../../../base/json.ts';
import type { Clock } from '../../../base/clock.ts';
import { EXTRA, scopeOf, subjectOf } from '../../identity.ts';
import type { KeyIndex, KeyRecord, Scope } from '../../types.ts';
import { longerLife, type CallerEnd } from './key-lifetime-rules.ts';
import { KEYS, ROTATE } from '../roles.ts';
import { widerThan } from '../scope/scope-contains.ts';
import type { Writer, Writers } from './writers.ts';

interface KeyWrite {
  readonly write: AdmissionRequest;
  readonly writer: Writer;
  readonly spec: JsonObject;
  /** Undefined: a create. */
  readonly before: JsonObject | undefined;
}

export interface WriteAuthorizerOptions {
  readonly writers: Writers;
  readonly index: KeyIndex;
  readonly clock: Clock;
}

/** Checks that a write to an access key gives no rights that the writer does not have. */
export class WriteAuthorizer {
  readonly #options: WriteAuthorizerOptions;

  constructor(options: WriteAuthorizerOptions) {
    this.#options = options;
  }

  /** Throws 403. A new key without a scope gets that of the key that creates it, and names it as its parent if that key holds OIDC data. */
  async authorize(write: AdmissionRequest): Promise<void> {
    const { target, next, previous, user } = write;
    const { group, plural } = target.definition;
    if (group !== MANAGEMENT_GROUP || plural !== KEYS) return;
    if (target.subresource?.name === ROTATE) return this.#authorizeRotation(write);
    if (target.subresource) return;
    const spec = objectField(next, 'spec');
    const before = previous && objectField(previous, 'spec');
    const writer = this.#options.writers.of(user);
    const key: KeyWrite = { write, writer, spec, before };
    await refuseSubject(key);
    await refuseType(key);
    await refuseGroups(key);
    if (!before && scopeAt(spec) === undefined) inheritScope(spec, user);
    if (!before) this.#inheritParent(spec, user);
    refuseWiderScope(key);
    this.#refuseLongerLife(write);
  }

  /** Deprecated, but clients rely on it: the keys of a user share refreshed OIDC tokens through their parent. */
  #inheritParent(spec: JsonObject, user: UserInfo): void {
    const caller = this.#options.index.byUid(user.extra[EXTRA.keyUid]?.[0] ?? '');
    const isUserManaged = ORDINARY_TYPES.includes(text(spec, 'type'));
    if (caller?.holdsOidcData !== true || !isUserManaged || text(spec, 'parent') !== '') return;
    if (subjectOf(spec).name === user.name) spec['parent'] = caller.name;
  }

  /** The response contains a secret, like that of a create, so the same rules apply; but a key may always rotate itself. */
  async #authorizeRotation(write: AdmissionRequest): Promise<void> {
    const { next, user } = write;
    const uid = user.extra[EXTRA.keyUid]?.[0];
    if (uid !== undefined && uid === text(metadataOf(next), 'uid')) return;
    const writer = this.#options.writers.of(user);
    const key: KeyWrite = { write, writer, spec: objectField(next, 'spec'), before: undefined };
    await refuseSubject(key);
    await refuseType(key);
    await refuseGroups(key);
    refuseWiderScope(key);
    this.#refuseLongerLife({ ...write, previous: undefined });
  }

  #refuseLongerLife(write: AdmissionRequest): void {
    const { index, clock } = this.#options;
    const uid = write.user.extra[EXTRA.keyUid]?.[0];
    if (uid === undefined) return;
    const caller = index.byUid(uid);
    // The key was deleted after the request was authorized.
    if (!caller) throw failure(401, 'Unauthorized', 'Unauthorized');
    const callerEnd = endOfCaller(index.expiresAtMs(caller), overlapEndMs(caller, write.user));
    if (callerEnd === undefined) return;
    const { next, previous } = write;
    const longer = longerLife({ next, previous, callerEnd, nowMs: clock.now() });
    if (longer) throw refusal(write, longer.field, longer.detail);
  }
}

/** Undefined: the caller used the current secret of its key. */
function overlapEndMs({ credentials }: KeyRecord, { extra }: UserInfo): number | undefined {
  const [used] = extra[EXTRA.credentialId] ?? [];
  return credentials?.find(({ id }) => id === used)?.untilMs;
}

function endOfCaller(keyEndMs: number | undefined, overlapEnd: number | undefined): CallerEnd | undefined {
  if (overlapEnd !== undefined && overlapEnd < (keyEndMs ?? Number.POSITIVE_INFINITY)) {
    return { endMs: overlapEnd, isOldSecret: true };
  }
  return keyEndMs === undefined ? undefined : { endMs: keyEndMs, isOldSecret: false };
}

async function refuseSubject({ write, writer, spec, before }: KeyWrite): Promise<void> {
  if (await writer.mayActFor(spec)) return;
  const field = ['user', 'team', 'subject'].find((name) => text(spec, name) !== '');
  // Validation rejects a key without a subject.
  if (field === undefined) return;
  const name = JSON.stringify(text(spec, field));
  const who = field === 'team' ? `a member of the team ${name}` : name;
  const whose = field === 'team' ? `the team ${name}` : name;
  const what = before ? 'change' : 'create';
  const why = `only an administrator or ${who} may ${what} access keys of ${whose}`;
  throw refusal(write, `spec.${field}`, why);
}

const ORDINARY_TYPES = ['', 'User'];

async function refuseType({ write, writer, spec, before }: KeyWrite): Promise<void> {
  const type = text(spec, 'type');
  if (ORDINARY_TYPES.includes(type) || (before && text(before, 'type') === type)) return;
  if (await writer.isAdministrator()) return;
  throw refusal(
    write,
    'spec.type',
    `only an administrator may create access keys of type ${JSON.stringify(type)}`,
  );
}

async function refuseGroups(key: KeyWrite): Promise<void> {
  const { write, writer, spec, before } = key;
  const had = before ? listField(before, 'groups') : [];
  for (const group of listField(spec, 'groups')) {
    if (typeof group !== 'string' || (await writer.mayGive(group))) continue;
    const name = JSON.stringify(group);
    if (!had.includes(group)) {
      throw refusal(
        write,
        'spec.groups',
        `only an administrator may add the group ${name}: you can add groups that you belong to`,
      );
    }
    const growth = before && growthOf(spec, before);
    if (growth === undefined) continue;
    throw refusal(
      write,
      growth,
      `only an administrator may change this, because the key has the group ${name} and you do not belong to it`,
    );
  }
}

/** The field by which a key with unchanged groups would get more rights or a longer life. */
function growthOf(spec: JsonObject, before: JsonObject): string | undefined {
  if (before['disabled'] === true && spec['disabled'] !== true) return 'spec.disabled';
  const wider = widerThan(scopeAt(spec), scopeAt(before));
  if (wider) return scopePath(wider.path);
  const [ttl, had] = [Number(spec['ttl'] ?? 0), Number(before['ttl'] ?? 0)];
  if (had !== 0 && (ttl === 0 || ttl > had)) return 'spec.ttl';
  const isRenewed = before['ttlAfterLastActivity'] !== true && spec['ttlAfterLastActivity'] === true;
  return isRenewed ? 'spec.ttlAfterLastActivity' : undefined;
}

function refuseWiderScope({ write, spec, before }: KeyWrite): void {
  const own = scopeOf(write.user);
  // Also if the scope is unchanged: a caller may not change a key with a wider scope than its own.
  const wider = widerThan(scopeAt(spec), own) ?? (before && widerThan(scopeAt(before), own));
  if (!wider) return;
  const detail = `${wider.text}: a key with a scope creates and changes only keys within that scope`;
  throw refusal(write, scopePath(wider.path), detail);
}

function scopePath(path: string): string {
  return path === '' ? 'spec.scope' : `spec.scope.${path}`;
}

function inheritScope(spec: JsonObject, user: UserInfo): void {
  const scope = scopeOf(user);
  if (scope !== undefined) spec['scope'] = cloneJson(scope as JsonObject); // parsed from JSON
}

function scopeAt(spec: JsonObject): Scope | undefined {
  const { scope } = spec;
  return isJsonObject(scope) ? (scope as Scope) : undefined; // validated later; an invalid scope grants nothing
}

function refusal({ target }: AdmissionRequest, field: string, detail: string): StatusError {
  return forbidden(groupName(target.definition), target.name, `${field}: ${detail}`);
}
