/**
 * Which keys a caller may create and change: none with more rights or a longer life than its own. Applied before validation, so it must be
 * correct for any decoded object.
 */

import { metadataOf } from '../../kube/object.ts';
import {
  MANAGEMENT_GROUP,
  EXTRA,
  scopeOf,
  subjectOf,
  ADMINISTRATORS,
  AUTH_DELEGATORS,
  isAdministrator,
  isOwnedBy,
  isDelegated,
  type KeyIndex,
  type KeyRecord,
  type Scope,
} from '../identity.ts';
import type { AdmissionRequest } from '../../apiserver/objects/object-writer.ts';
import { forbidden } from '../../apiserver/status.ts';
import { failure } from '../../kube/status-error.ts';
import { groupName } from '../../apiserver/objects/resource-definition.ts';
import type { UserInfo } from '../../apiserver/user.ts';
import {
  cloneJson,
  isJsonObject,
  jsonEquals,
  type JsonObject,
  listField,
  numberField,
  objectField,
  text,
} from '../../base/json.ts';
import type { Clock } from '../../base/clock.ts';
import { KEYS, ROTATE } from './grants.ts';
import { widerThan } from './scope-grants.ts';
import type { AccessRequest } from '../../apiserver/request/request-info.ts';
import type { HostRights } from './delegated-auth.ts';

interface KeyWrite {
  readonly user: UserInfo;
  readonly writer: Writer;
  readonly spec: JsonObject;
  /** Undefined: a create. */
  readonly before: JsonObject | undefined;
}

/** The rule that a write breaks; undefined: none. */
type Refusal = { readonly field: string; readonly detail: string } | undefined;

export class WriteAuthorizer {
  readonly #index: KeyIndex;
  readonly #clock: Clock;
  readonly #host: HostRights | undefined;

  /** `host` authorizes users of the host cluster; undefined: there are none. */
  constructor(index: KeyIndex, clock: Clock, host: HostRights | undefined) {
    this.#index = index;
    this.#clock = clock;
    this.#host = host;
  }

  /**
   * Throws 403. A new key without a scope gets that of the key that creates it, and names it as its parent if that key holds OIDC data. The
   * response to a rotation contains a secret, like that of a create, so the same rules apply; but a key may always rotate itself.
   */
  async authorize({ target, next, previous, user }: AdmissionRequest): Promise<void> {
    const { group, plural } = target.definition;
    if (group !== MANAGEMENT_GROUP || plural !== KEYS) return;
    const isRotation = target.subresource?.name === ROTATE;
    if (target.subresource && !isRotation) return;
    const callerUid = user.extra[EXTRA.keyUid]?.[0];
    if (isRotation && callerUid !== undefined && callerUid === text(metadataOf(next), 'uid')) return;
    const spec = objectField(next, 'spec');
    const earlier = isRotation ? undefined : previous;
    const before = earlier && objectField(earlier, 'spec');
    const key: KeyWrite = { user, writer: new Writer(user, this.#host), spec, before };
    let refusal =
      (await subjectRefusal(key)) ??
      (await typeRefusal(key)) ??
      (await groupRefusal(key)) ??
      (isRotation ? undefined : await loginDataRefusal(key));
    if (!refusal && !isRotation && !before) {
      if (scopeAt(spec) === undefined) inheritScope(spec, user);
      this.#inheritParent(spec, user);
    }
    refusal ??= scopeRefusal(key) ?? this.#lifeRefusal(user, next, earlier);
    if (!refusal) return;
    throw forbidden(groupName(target.definition), target.name, `${refusal.field}: ${refusal.detail}`);
  }

  /** Deprecated, but clients rely on it: the keys of a user share refreshed OIDC tokens through their parent. */
  #inheritParent(spec: JsonObject, user: UserInfo): void {
    const caller = this.#index.byUid(user.extra[EXTRA.keyUid]?.[0] ?? '');
    const isUserManaged = ORDINARY_TYPES.includes(text(spec, 'type'));
    if (caller?.holdsOidcData !== true || !isUserManaged || text(spec, 'parent') !== '') return;
    if (subjectOf(spec).name === user.name) spec['parent'] = caller.name;
  }

  #lifeRefusal(user: UserInfo, next: JsonObject, previous: JsonObject | undefined): Refusal {
    const uid = user.extra[EXTRA.keyUid]?.[0];
    if (uid === undefined) return undefined;
    const caller = this.#index.byUid(uid);
    // The key was deleted after the request was authorized.
    if (!caller) throw failure(401, 'Unauthorized', 'Unauthorized');
    const callerEnd = endOfCaller(caller, user, this.#index.expiresAtMs(caller));
    return callerEnd.endMs === Infinity
      ? undefined
      : longerLife(next, previous, callerEnd, this.#clock.now());
  }
}

/** The end of the key, or of the overlap of the secret that the caller used. */
function endOfCaller({ credentials }: KeyRecord, { extra }: UserInfo, keyEndMs = Infinity): CallerEnd {
  const [used] = extra[EXTRA.credentialId] ?? [];
  const overlapEndMs = credentials?.find(({ id }) => id === used)?.untilMs ?? Infinity;
  return { endMs: Math.min(keyEndMs, overlapEndMs), isOldSecret: overlapEndMs < keyEndMs };
}

async function subjectRefusal({ writer, spec, before }: KeyWrite): Promise<Refusal> {
  if (await writer.mayActFor(spec)) return undefined;
  const field = ['user', 'team', 'subject'].find((name) => text(spec, name) !== '');
  // Validation rejects a key without a subject.
  if (field === undefined) return undefined;
  const name = JSON.stringify(text(spec, field));
  const who = field === 'team' ? `a member of the team ${name}` : name;
  const whose = field === 'team' ? `the team ${name}` : name;
  const what = before ? 'change' : 'create';
  const detail = `only an administrator or ${who} may ${what} access keys of ${whose}`;
  return { field: `spec.${field}`, detail };
}

const ORDINARY_TYPES = ['', 'User'];

async function typeRefusal({ writer, spec, before }: KeyWrite): Promise<Refusal> {
  const type = text(spec, 'type');
  if (ORDINARY_TYPES.includes(type) || (before && text(before, 'type') === type)) return undefined;
  if (await writer.isAdministrator()) return undefined;
  const detail = `only an administrator may create access keys of type ${JSON.stringify(type)}`;
  return { field: 'spec.type', detail };
}

async function groupRefusal({ writer, spec, before }: KeyWrite): Promise<Refusal> {
  const had = before ? listField(before, 'groups') : [];
  for (const group of listField(spec, 'groups')) {
    if (typeof group !== 'string' || (await writer.mayGive(group))) continue;
    const name = JSON.stringify(group);
    if (!had.includes(group)) {
      const detail = `only an administrator may add the group ${name}: you can add groups that you belong to`;
      return { field: 'spec.groups', detail };
    }
    const growth = before && growthOf(spec, before);
    if (growth === undefined) continue;
    const detail = `only an administrator may change this, because the key has the group ${name} and you do not belong to it`;
    return { field: growth, detail };
  }
  return undefined;
}

/** What a login of the platform says of a user. There is no login here: an ordinary user would write it about itself. */
const LOGIN_FIELDS = ['identity', 'identityRefresh', 'oidcProvider', 'oidcLogin', 'parent'];

async function loginDataRefusal({ writer, spec, before }: KeyWrite): Promise<Refusal> {
  const changed = LOGIN_FIELDS.find((field) => !jsonEquals(spec[field] ?? null, before?.[field] ?? null));
  if (changed === undefined || (await writer.isAdministrator())) return undefined;
  return { field: `spec.${changed}`, detail: 'only an administrator may set it: it is the data of a login' };
}

/** The field by which a key with unchanged groups would get more rights. */
function addedRight(spec: JsonObject, before: JsonObject): string | undefined {
  if (before['disabled'] === true && spec['disabled'] !== true) return 'spec.disabled';
  const wider = widerThan(scopeAt(spec), scopeAt(before));
  return wider && scopePath(wider.path);
}

/** The field by which a key with unchanged groups would get more rights or a longer life. */
function growthOf(spec: JsonObject, before: JsonObject): string | undefined {
  const added = addedRight(spec, before);
  if (added !== undefined) return added;
  const [ttl, had] = [numberField(spec, 'ttl'), numberField(before, 'ttl')];
  if (had !== 0 && (ttl === 0 || ttl > had)) return 'spec.ttl';
  const isRenewed = before['ttlAfterLastActivity'] !== true && spec['ttlAfterLastActivity'] === true;
  return isRenewed ? 'spec.ttlAfterLastActivity' : undefined;
}

function scopeRefusal({ user, spec, before }: KeyWrite): Refusal {
  const own = scopeOf(user);
  // Also if the scope is unchanged: a caller may not change a key with a wider scope than its own.
  const wider = widerThan(scopeAt(spec), own) ?? (before && widerThan(scopeAt(before), own));
  if (!wider) return undefined;
  const detail = `${wider.text}: a key with a scope creates and changes only keys within that scope`;
  return { field: scopePath(wider.path), detail };
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

/** Prefix of users and groups of Kubernetes itself, which clusters trust by name. */
const SYSTEM = 'system:';
const RESERVED: readonly string[] = [ADMINISTRATORS, AUTH_DELEGATORS];

const REQUEST: Omit<AccessRequest, 'resource' | 'name'> = {
  verb: 'impersonate',
  group: '',
  version: 'v1',
  subresource: '',
  namespace: '',
  path: '',
  prefix: '',
};

/** What a user may write into keys. For a user of the host, acting as another user is the right to impersonate there. */
class Writer {
  readonly #user: UserInfo;
  readonly #host: HostRights | undefined;

  constructor(user: UserInfo, host: HostRights | undefined) {
    this.#user = user;
    this.#host = host;
  }

  async isAdministrator(): Promise<boolean> {
    return isDelegated(this.#user) ? this.#mayBe('groups', ADMINISTRATORS) : isAdministrator(this.#user);
  }

  mayActFor(spec: JsonObject): Promise<boolean> {
    const { name } = subjectOf(spec);
    const resource = text(spec, 'team') === '' ? 'users' : 'groups';
    return this.#mayUse(resource, name, isOwnedBy(spec, this.#user), name.startsWith(SYSTEM));
  }

  mayGive(group: string): Promise<boolean> {
    const isReserved = group.startsWith(SYSTEM) || RESERVED.includes(group);
    return this.#mayUse('groups', group, this.#user.groups.includes(group), isReserved);
  }

  async #mayUse(resource: string, name: string, isOwn: boolean, isReserved: boolean): Promise<boolean> {
    if (!isDelegated(this.#user)) return isAdministrator(this.#user) || (isOwn && !isReserved);
    return (await this.#mayBe(resource, name)) && (!isReserved || (await this.isAdministrator()));
  }

  async #mayBe(resource: string, name: string): Promise<boolean> {
    return (await this.#host?.reviewAccess(this.#user, { ...REQUEST, resource, name }))?.isAllowed === true;
  }
}

// A key neither creates a key that outlives it nor extends the life of a key beyond its own, itself included, nor gives more rights to a key
// that outlives it: they would be rights beyond its own end. For an old secret of a rotated key its overlap is the end: otherwise it would live
// on in the keys that it creates.

interface CallerEnd {
  /** When the key of the caller expires or the overlap of its secret ends, in epoch milliseconds. */
  readonly endMs: number;
  readonly isOldSecret: boolean;
}

const OLD_SECRET_RULE =
  'an old secret cannot create or extend a key beyond the end of its overlap: use the new secret';
const RIGHTS_RULE = 'an access key cannot give more rights to a key that outlives it';
const RULE = 'an access key cannot create a key that outlives it or extend a key beyond its own end';

/**
 * The field by which the written key would outlive the key of the caller, or would have rights for longer than that. Undefined: it ends no later
 * than that, or no later than before and with no more rights. `previous`: undefined for a create.
 */
function longerLife(
  next: JsonObject,
  previous: JsonObject | undefined,
  callerEnd: CallerEnd,
  nowMs: number,
): Refusal {
  const [after, before] = [lifeOf(next, nowMs), previous && lifeOf(previous, nowMs)];
  if (isWithin(after, callerEnd.endMs)) return undefined;
  if (previous && before && isNoLonger(after, before)) {
    const field = rightGivenTo(objectField(next, 'spec'), objectField(previous, 'spec'));
    return field === undefined ? undefined : { field, detail: RIGHTS_RULE };
  }
  const rule = callerEnd.isOldSecret ? OLD_SECRET_RULE : RULE;
  if (after.isExtendedByUse) {
    return {
      field: 'spec.ttlAfterLastActivity',
      detail: `each use would extend the life of the key: ${rule}`,
    };
  }
  const most = Math.max(0, Math.floor((callerEnd.endMs - after.startMs) / 1000));
  return { field: 'spec.ttl', detail: `must be from 1 to ${most} (seconds): ${rule}` };
}

function rightGivenTo(spec: JsonObject, before: JsonObject): string | undefined {
  const had = listField(before, 'groups');
  const isAdded = listField(spec, 'groups').some((group) => !had.includes(group));
  return isAdded ? 'spec.groups' : addedRight(spec, before);
}

interface Life {
  readonly startMs: number;
  /** Infinity: never. */
  readonly endMs: number;
  readonly isExtendedByUse: boolean;
}

function lifeOf(key: JsonObject, nowMs: number): Life {
  const spec = objectField(key, 'spec');
  const ttl = numberField(spec, 'ttl');
  const created = text(metadataOf(key), 'creationTimestamp');
  const startMs = created === '' ? nowMs : Date.parse(created);
  return {
    startMs,
    endMs: ttl === 0 ? Number.POSITIVE_INFINITY : startMs + ttl * 1000,
    isExtendedByUse: ttl > 0 && spec['ttlAfterLastActivity'] === true,
  };
}

function isWithin(life: Life, endMs: number): boolean {
  return !life.isExtendedByUse && life.endMs <= endMs;
}

function isNoLonger(after: Life, before: Life): boolean {
  if (before.endMs === Number.POSITIVE_INFINITY) return true;
  if (after.isExtendedByUse && !before.isExtendedByUse) return false;
  return after.endMs <= before.endMs;
}
