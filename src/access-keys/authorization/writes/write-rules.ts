/**
 * Which keys a caller may create and change: none that may do more than the caller, or for longer. Applied before the key is validated, so
 * that everything here must hold for any decoded object.
 */

import type { ReviewedWrite } from '../../../apiserver/objects/admission.ts';
import { failure, forbidden } from '../../../apiserver/status.ts';
import { groupName } from '../../../apiserver/request/target.ts';
import type { UserInfo } from '../../../apiserver/request/user.ts';
import { listField, metadataOf, objectField, text } from '../../../apiserver/validation/metadata.ts';
import type { StatusError } from '../../../kube/status-error.ts';
import { cloneJson, isJsonObject, type JsonObject } from '../../../base/json.ts';
import type { Clock } from '../../../base/clock.ts';
import { EXTRA, scopeOf, subjectOf } from '../../identity.ts';
import type { KeyIndex, Scope } from '../../types.ts';
import { longerLife } from './key-lifetime-rules.ts';
import { KEYS, MANAGEMENT_GROUP, ROTATE } from '../roles.ts';
import { widerThan } from '../scope/scope-contains.ts';
import type { Writer, Writers } from './writers.ts';

/** What the rules look at. */
interface KeyWrite {
  readonly write: ReviewedWrite;
  readonly writer: Writer;
  readonly spec: JsonObject;
  /** Undefined: a create. */
  readonly before: JsonObject | undefined;
}

export interface WriteRulesOptions {
  readonly writers: Writers;
  readonly index: KeyIndex;
  readonly clock: Clock;
}

/** The rules for every write of a key: see `Admission.review`. */
export class WriteRules {
  readonly #options: WriteRulesOptions;

  constructor(options: WriteRulesOptions) {
    this.#options = options;
  }

  /** Throws 403. A new key inherits from the key that creates it the scope, if it has none, and the OIDC data, by naming it as its parent. */
  async review(write: ReviewedWrite): Promise<void> {
    const { target, next, previous, user } = write;
    const { group, plural } = target.definition;
    if (group !== MANAGEMENT_GROUP || plural !== KEYS) return;
    if (target.subresource?.name === ROTATE) return this.#reviewRotation(write);
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

  /** Deprecated, but clients rely on it: a refreshed OIDC token is then not lost for the other keys of the user. */
  #inheritParent(spec: JsonObject, user: UserInfo): void {
    const caller = this.#options.index.byUid(user.extra[EXTRA.keyUid]?.[0] ?? '');
    const isUserManaged = ORDINARY_TYPES.includes(text(spec, 'type'));
    if (caller?.holdsOidcData !== true || !isUserManaged || text(spec, 'parent') !== '') return;
    if (subjectOf(spec).name === user.name) spec['parent'] = caller.name;
  }

  /** The response holds the secret of the key, as that of a create does: the same rules, but a key may always rotate itself. */
  async #reviewRotation(write: ReviewedWrite): Promise<void> {
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

  #refuseLongerLife(write: ReviewedWrite): void {
    const { index, clock } = this.#options;
    const uid = write.user.extra[EXTRA.keyUid]?.[0];
    if (uid === undefined) return;
    const caller = index.byUid(uid);
    // The key was deleted after the request was authorized.
    if (!caller) throw failure(401, 'Unauthorized', 'Unauthorized');
    const callerEndMs = index.expiresAtMs(caller);
    if (callerEndMs === undefined) return;
    const { next, previous } = write;
    const longer = longerLife({ next, previous, callerEndMs, nowMs: clock.now() });
    if (longer) throw refusal(write, longer.field, longer.detail);
  }
}

async function refuseSubject({ write, writer, spec, before }: KeyWrite): Promise<void> {
  if (await writer.mayActFor(spec)) return;
  const field = ['user', 'team', 'subject'].find((name) => text(spec, name) !== '');
  // Without a subject there is no key: validation says what is missing.
  if (field === undefined) return;
  const name = JSON.stringify(text(spec, field));
  const who = field === 'team' ? `a member of the team ${name}` : name;
  const whose = field === 'team' ? `the team ${name}` : name;
  const what = before ? 'change' : 'make';
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
    `only an administrator may make access keys of type ${JSON.stringify(type)}`,
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
        `only an administrator may add the group ${name}: you may add groups that you are in`,
      );
    }
    const growth = before && growthOf(spec, before);
    if (growth === undefined) continue;
    throw refusal(
      write,
      growth,
      `only an administrator may do this, because the key has the group ${name} and you have not`,
    );
  }
}

/** The field by which a key that stays in its groups would be good for more than before. */
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
  // Also when it stays as it is: what reaches further than the caller is not the caller's to change.
  const wider = widerThan(scopeAt(spec), own) ?? (before && widerThan(scopeAt(before), own));
  if (!wider) return;
  const detail = `${wider.text}: a key with a scope makes and changes only keys within that scope`;
  throw refusal(write, scopePath(wider.path), detail);
}

function scopePath(path: string): string {
  return path === '' ? 'spec.scope' : `spec.scope.${path}`;
}

function inheritScope(spec: JsonObject, user: UserInfo): void {
  const scope = scopeOf(user);
  if (scope !== undefined) spec['scope'] = cloneJson(scope as JsonObject); // it was JSON text
}

function scopeAt(spec: JsonObject): Scope | undefined {
  const { scope } = spec;
  return isJsonObject(scope) ? (scope as Scope) : undefined; // what is not in its shape grants nothing
}

function refusal({ target }: ReviewedWrite, field: string, detail: string): StatusError {
  return forbidden(groupName(target.definition), target.name, `${field}: ${detail}`);
}
