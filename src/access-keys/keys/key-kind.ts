/** The resource definition of OwnedAccessKey. */

import { metadataOf } from '../../kube/object.ts';
import { EXTRA, MANAGEMENT_GROUP, MANAGEMENT_VERSION } from '../identity.ts';
import {
  defineResource,
  type ResourceDefinition,
  type Subresource,
  type Column,
  type ActionResult,
} from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import { subdomainProblem } from '../../kube/names.ts';
import type { Clock } from '../../base/clock.ts';
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  numberField,
  objectField,
  objectList,
  text,
  listField,
} from '../../base/json.ts';
import { KEY_TYPES_ALLOWED, validateKey } from './key-validation.ts';
import { scopeWarnings } from '../authorization/scope-validation.ts';
import {
  APPLIED_MANIFEST,
  type StoredKeys,
  credentialsOf,
  tokenGenerationOf,
  withCredentials,
  type ReplacedCredential,
  endOfKey,
} from './stored-key.ts';
import { AGE_COLUMN, ageText, NAME_COLUMN, textColumn } from '../../apiserver/objects/object-view.ts';
import { invalidValue, type FieldError, conflict, forbidden, invalid } from '../../apiserver/status.ts';
import type { UserInfo } from '../../apiserver/user.ts';
import { generateAccessKey, type RandomBytes, type KeyDigests } from '../credentials/access-key.ts';
import { KEYS, ROTATE } from '../authorization/grants.ts';

export const KEY_STORAGE = `ownedaccesskeys.${MANAGEMENT_GROUP}`;

export interface KeyKindOptions {
  readonly types: TypeTable;
  readonly clock: Clock;
  readonly maxTtlSeconds: number;
  readonly forms: StoredKeys;
  readonly digests: KeyDigests;
  readonly randomBytes: RandomBytes;
}

export function ownedAccessKeys(options: KeyKindOptions): ResourceDefinition {
  const { types, clock, maxTtlSeconds, forms } = options;
  return defineResource({
    group: MANAGEMENT_GROUP,
    version: MANAGEMENT_VERSION,
    kind: 'OwnedAccessKey',
    plural: 'ownedaccesskeys',
    singular: 'ownedaccesskey',
    shortNames: ['oak'],
    isNamespaced: false,
    storage: KEY_STORAGE,
    schema: types.get('management.OwnedAccessKey'),
    checkName: subdomainProblem,
    hasStatus: true,
    subresources: [rotateSubresource(options)],
    hasGeneration: true,
    hasTypedItems: true,
    needsQualifiedFinalizers: false,
    responseContainsSecret: true,
    columns: keyColumns(),
    selectableFields: {
      'spec.user': (key) => text(objectField(key, 'spec'), 'user'),
      'spec.team': (key) => text(objectField(key, 'spec'), 'team'),
    },
    applyDefaults,
    prepare: (next, previous, stored) => forms.prepare(next, previous, stored),
    validate: (next, previous) => validateKey(next, previous, clock.now(), maxTtlSeconds),
    warnings: keyWarnings,
    gracePeriodSeconds: (key, asked = 0) => Math.min(asked, graceSecondsMax(key, clock.now())),
    isCredentialOf: (key, user) => user.extra[EXTRA.keyUid]?.[0] === text(metadataOf(key), 'uid'),
    view: forms,
  });
}

/** Of keys that never expire. */
const GRACE_SECONDS_MAX = 3600;

/** A key works until the grace period of its deletion ends, which must not make it live longer. */
function graceSecondsMax(key: JsonObject, nowMs: number): number {
  const end = endOfKey(key);
  return end === undefined ? GRACE_SECONDS_MAX : Math.max(0, Math.floor((end - nowMs) / 1000));
}

/** An empty type means User; a missing type is an error. */
function applyDefaults(key: JsonObject): void {
  const spec = objectField(key, 'spec');
  if (spec['type'] === '') spec['type'] = KEY_TYPES_ALLOWED[0] ?? '';
}

function keyWarnings(key: JsonObject, isCreated: boolean): readonly string[] {
  const spec = objectField(key, 'spec');
  const warnings: string[] = [];
  if (isCreated && text(spec, 'key') !== '') warnings.push(...secretWarnings(key));
  if (text(spec, 'parent') !== '' && isSetByClient(key, 'f:parent'))
    warnings.push('spec.parent is deprecated: use spec.identity');
  if (isJsonObject(spec['oidcLogin'])) warnings.push('spec.oidcLogin is deprecated: use spec.identity');
  return [...warnings, ...scopeWarnings(spec['scope'], 'spec.scope')];
}

/** False for a value that the server set, such as an inherited parent. */
function isSetByClient(key: JsonObject, field: string): boolean {
  return objectList(metadataOf(key), 'managedFields').some((entry) => {
    const fields = objectField(objectField(entry, 'fieldsV1'), 'f:spec');
    return fields[field] !== undefined;
  });
}

function secretWarnings(key: JsonObject): readonly string[] {
  const rotate = `run endpoint-syncer keys rotate ${text(metadataOf(key), 'name')} for a new one`;
  if (isApplied(key))
    return [
      `the secret of the access key is only in this response, which kubectl apply does not print: ${rotate}`,
    ];
  const isByKubectl = objectList(metadataOf(key), 'managedFields').some((entry) =>
    text(entry, 'manager').startsWith('kubectl'),
  );
  if (!isByKubectl) return [];
  return [
    `the secret of the access key is only in this response: kubectl prints it with -o jsonpath='{.spec.key}'; otherwise ${rotate}`,
  ];
}

function isApplied(key: JsonObject): boolean {
  const metadata = metadataOf(key);
  if (text(objectField(metadata, 'annotations'), APPLIED_MANIFEST) !== '') return true;
  return objectList(metadata, 'managedFields').some((entry) => entry['operation'] === 'Apply');
}

// Columns of `kubectl get ownedaccesskeys`.

export function keyColumns(): readonly Column[] {
  return [
    NAME_COLUMN,
    textColumn('Display Name', 'Display name.', (key) => text(specOf(key), 'displayName')),
    textColumn('Subject', 'User, team or subject of the key.', subjectText),
    textColumn('Type', 'Type of the key.', (key) => text(specOf(key), 'type')),
    textColumn('Disabled', 'Requests that use the key fail.', (key) =>
      String(specOf(key)['disabled'] === true),
    ),
    textColumn('Expires', 'When the key expires, or ends because it is being deleted.', expiresText),
    AGE_COLUMN,
    textColumn('TTL', 'Lifetime of the key.', ttlText, 1),
    textColumn('Expires At', 'When the key expires.', (key) => statusTime(key, 'expiresAt'), 1),
    textColumn(
      'Old Secret Until',
      'When the secret from before the last rotation stops working, or stopped.',
      (key) => statusTime(key, 'previousSecretExpiresAt'),
      1,
    ),
    textColumn('Last Activity', 'Time since the last use of the key.', activityText, 1),
    textColumn('Groups', 'Groups in addition to those of the subject.', (key) => groupsText(key), 1),
    textColumn('Scope', 'Restriction of the key.', scopeText, 1),
  ];
}

function specOf(key: JsonObject): JsonObject {
  return objectField(key, 'spec');
}

function subjectText(key: JsonObject): string {
  const spec = specOf(key);
  const kind = ['user', 'team', 'subject'].find((field) => text(spec, field) !== '');
  return kind === undefined ? '<none>' : `${kind}/${text(spec, kind)}`;
}

function expiresText(key: JsonObject, nowMs: number): string {
  const deletion = text(metadataOf(key), 'deletionTimestamp');
  if (deletion !== '') {
    const leftMs = Date.parse(deletion) - nowMs;
    return leftMs > 0 ? `deleted in ${spanText(leftMs)}` : 'deleted';
  }
  const end = endOfKey(key);
  if (end === undefined) return 'never';
  return end <= nowMs ? 'expired' : `in ${spanText(end - nowMs)}`;
}

function ttlText(key: JsonObject): string {
  const seconds = numberField(specOf(key), 'ttl');
  if (seconds <= 0) return 'unlimited';
  const suffix = specOf(key)['ttlAfterLastActivity'] === true ? ' unused' : '';
  return spanText(seconds * 1000) + suffix;
}

/** A duration in the format of ages: the age of an event that long before the epoch. */
function spanText(ms: number): string {
  return ageText(new Date(0).toISOString(), ms);
}

function activityText(key: JsonObject, nowMs: number): string {
  const time = text(objectField(key, 'status'), 'lastActivity');
  return time === '' ? '<none>' : ageText(time, nowMs);
}

function statusTime(key: JsonObject, field: string): string {
  return text(objectField(key, 'status'), field) || '<none>';
}

function groupsText(key: JsonObject): string {
  const groups = listField(specOf(key), 'groups');
  return groups.length === 0 ? '<none>' : groups.map((group) => JSON.stringify(group).slice(1, -1)).join(',');
}

function scopeText(key: JsonObject): string {
  const { scope } = specOf(key);
  if (!isJsonObject(scope)) return 'all';
  const parts = Object.entries(scope).flatMap(([name, value]) => {
    if (Array.isArray(value) && value.length > 0) return [countText(value.length, name)];
    return value === true ? [name] : [];
  });
  return parts.length === 0 ? 'nothing' : parts.join(', ');
}

/** `1 cluster`, `2 clusters`: the fields of a scope are plurals in s. */
function countText(count: number, plural: string): string {
  return `${count} ${count === 1 ? plural.slice(0, -1) : plural}`;
}

// Rotation: a key gets a new secret, and the old one works until the overlap ends. The uid, the expiry and the scope of the key do not change,
// and tokens that were issued with either secret stay valid. Without an overlap these tokens are revoked too, because then the old secret may
// have been leaked.

const KIND = 'OwnedAccessKeyRotation';

export const OVERLAP_SECONDS_MAX = 7 * 86_400;
export const REPLACED_SECRETS_MAX = 8;

function rotateSubresource(options: KeyKindOptions): Subresource {
  return {
    name: ROTATE,
    verbs: ['create'],
    merge: (previous) => previous,
    action: {
      kind: KIND,
      schema: options.types.get(`management.${KIND}`),
      perform: (stored, request, user) => {
        refuseOldSecret(stored, user);
        return rotate(options, stored, request);
      },
    },
  };
}

function rotate(options: KeyKindOptions, stored: JsonObject, request: JsonObject): ActionResult {
  const metadata = metadataOf(stored);
  const name = text(metadata, 'name');
  if (text(metadata, 'deletionTimestamp') !== '') {
    throw conflict({ group: MANAGEMENT_GROUP, resource: KEYS }, name, 'the access key is being deleted');
  }
  const sent = request['overlapSeconds'] ?? 0;
  const overlapSeconds = Number(sent);
  const nowMs = options.clock.now();
  const { current, replaced } = credentialsOf(stored);
  const untilMs = nowMs + overlapSeconds * 1000;
  const older = replaced
    .filter((credential) => credential.untilMs > nowMs)
    .map((credential) => ({ ...credential, untilMs: Math.min(credential.untilMs, untilMs) }));
  const errors = overlapErrors(sent, older);
  if (errors.length > 0) throw invalid({ group: MANAGEMENT_GROUP, resource: KIND }, name, errors);
  const key = generateAccessKey(options.randomBytes);
  const next = withCredentials(stored, {
    current: options.digests.stored(key),
    replaced: [...(overlapSeconds === 0 ? [] : older), { ...current, untilMs }],
  });
  return {
    stored: overlapSeconds === 0 ? { ...next, tokenGeneration: tokenGenerationOf(stored) + 1 } : next,
    shown: (object) => ({ ...object, spec: { ...objectField(object, 'spec'), key } }),
  };
}

const OLD_SECRET =
  'an old secret, which is valid only until its overlap ends, cannot rotate its key: use the current secret of the key, or another key of its user';

/** An old secret could otherwise replace itself by one that does not end. Throws 403. */
function refuseOldSecret(stored: JsonObject, { extra }: UserInfo): void {
  const metadata = metadataOf(stored);
  if (extra[EXTRA.keyUid]?.[0] !== text(metadata, 'uid')) return;
  const { current, replaced } = credentialsOf(stored);
  const [used] = extra[EXTRA.credentialId] ?? [];
  // Without the id of a secret, the user was authenticated before the first rotation of the key.
  const isCurrent = used === undefined ? replaced.length === 0 : used === current.id;
  if (!isCurrent)
    throw forbidden({ group: MANAGEMENT_GROUP, resource: KEYS }, text(metadata, 'name'), OLD_SECRET);
}

function overlapErrors(sent: JsonValue, older: readonly ReplacedCredential[]): FieldError[] {
  const field = 'overlapSeconds';
  const overlapSeconds = Number(sent); // of a BigInt too
  if (overlapSeconds < 0 || overlapSeconds > OVERLAP_SECONDS_MAX) {
    return [invalidValue(field, sent, `must be from 0 to ${OVERLAP_SECONDS_MAX} (seconds)`)];
  }
  if (overlapSeconds === 0 || older.length < REPLACED_SECRETS_MAX) return [];
  const detail = `${older.length} older secrets of the key are still valid: wait until the overlap of one ends, or rotate with 0`;
  return [invalidValue(field, overlapSeconds, detail)];
}

// The fields of an OwnedAccessKey. Notation: `apiserver/schema/object-schema.ts`; the scope's are in `scope-validation.ts`.

/**
 * Pointers mark fields whose zero value differs from an absent field: a ttl of 0, an empty type, a scope without entries, a removed secret,
 * an object that contains only secrets.
 */
export const KEY_TYPES = `
management.OwnedAccessKey = metadata! meta.ObjectMeta; spec! management.OwnedAccessKeySpec; status! management.OwnedAccessKeyStatus
management.OwnedAccessKeySpec = displayName string; description string; user string; team string; subject string; groups []string; key string; disabled bool; ttl *int64; ttlAfterLastActivity bool; scope *management.AccessKeyScope; type *string; identity *management.AccessKeyIdentity; identityRefresh *time; oidcProvider *management.AccessKeyOIDCProvider; parent string; oidcLogin *management.AccessKeyOIDC
management.AccessKeyIdentity = userId string; username string; preferredUsername string; email string; emailVerified bool; extraClaims {}any; groups []string; connector string; connectorData *string; identityRefresh *time
management.AccessKeyOIDCProvider = clientId string; nonce string; redirectUri string; scopes string
management.AccessKeyOIDC = idToken *string; accessToken *string; refreshToken *string; lastRefresh *time
management.OwnedAccessKeyStatus = lastActivity *time; expiresAt *time; previousSecretExpiresAt *time
management.OwnedAccessKeyRotation = overlapSeconds int64
management.OwnedAccessKeyRotation: Rotates the secret of an access key. POST it to the subresource rotate of the key; the response contains the new secret in spec.key, once.
management.OwnedAccessKeyRotation.overlapSeconds: Time in seconds during which the old secret stays valid, at most 604800 (a week). 0, the default, revokes it immediately, including the tokens that were issued with the key.
management.OwnedAccessKey: A credential for non-interactive environments such as a CI job. Its key is a bearer token for the API and authenticates a user, team or subject.
management.OwnedAccessKey.metadata: Standard object metadata.
management.OwnedAccessKey.spec: Desired state of the key.
management.OwnedAccessKey.status: Observed state of the key.
management.OwnedAccessKeySpec: Desired state of the key. Required on create: displayName, type, ttl and exactly one of user, team and subject.
management.OwnedAccessKeySpec.displayName: Name shown in the UI. Required on create.
management.OwnedAccessKeySpec.description: Free-text description.
management.OwnedAccessKeySpec.user: The user that the key authenticates. Exactly one of user, team and subject is set. Cannot be updated.
management.OwnedAccessKeySpec.team: The team that the key authenticates. Exactly one of user, team and subject is set. Cannot be updated.
management.OwnedAccessKeySpec.subject: Generic subject that can be used instead of user or team. Exactly one of user, team and subject is set. Cannot be updated.
management.OwnedAccessKeySpec.groups: Extra groups applied when the key is used.
management.OwnedAccessKeySpec.key: The access key value, used as a bearer token. Generated by the server and returned once, in the response to the create; only a digest is stored. A value in the create request is accepted with at least 32 characters. Cannot be updated; use the subresource rotate.
management.OwnedAccessKeySpec.disabled: If true, the key exists but requests that use it fail.
management.OwnedAccessKeySpec.ttl: Lifetime of the key in seconds. 0 means that it never expires. Required on create. Requests that use an expired key fail, and the key is deleted 7 days later.
management.OwnedAccessKeySpec.ttlAfterLastActivity: If true, the ttl starts after the last use (status.lastActivity) instead of the creation.
management.OwnedAccessKeySpec.scope: Restricts what the key may access. Without a scope there is no restriction; a scope without entries allows nothing.
management.OwnedAccessKeySpec.type: Whether the key is managed by a user (User) or by the platform (Login, Other, Reset, OIDCRefreshToken, NetworkPeer, Workspace). Required on create; an empty value means User. Cannot be updated.
management.OwnedAccessKeySpec.identity: Single sign-on data of the login that the key was created from.
management.OwnedAccessKeySpec.identityRefresh: Last time identity was refreshed.
management.OwnedAccessKeySpec.oidcProvider: Information about a refresh token.
management.OwnedAccessKeySpec.parent: DEPRECATED: use identity. Name of the key whose OIDC tokens this key shares, so that a refresh of one does not invalidate the others.
management.OwnedAccessKeySpec.oidcLogin: DEPRECATED: use identity. Tokens of an OIDC login.
management.AccessKeyIdentity: Single sign-on data of a user.
management.AccessKeyIdentity.userId: Subject of the user at the identity provider.
management.AccessKeyIdentity.username: Username.
management.AccessKeyIdentity.preferredUsername: Preferred username or display name.
management.AccessKeyIdentity.email: Email of the user.
management.AccessKeyIdentity.emailVerified: Whether the email was verified.
management.AccessKeyIdentity.extraClaims: Additional claims that the auth configuration allows.
management.AccessKeyIdentity.groups: Groups from the identity provider.
management.AccessKeyIdentity.connector: Name of the connector that the key was created from.
management.AccessKeyIdentity.connectorData: Data of the connector for later requests, such as upstream access tokens. Write-only: never returned. A write without it keeps it, an empty value removes it.
management.AccessKeyIdentity.identityRefresh: Last time the identity was refreshed.
management.AccessKeyOIDCProvider: Information about a refresh token.
management.AccessKeyOIDCProvider.clientId: Client that the token was generated for.
management.AccessKeyOIDCProvider.nonce: Nonce of the login.
management.AccessKeyOIDCProvider.redirectUri: Redirect URI of the login.
management.AccessKeyOIDCProvider.scopes: OIDC scopes of the token, separated by spaces.
management.AccessKeyOIDC: Tokens of an OIDC login.
management.AccessKeyOIDC.idToken: ID token. Write-only: never returned. A write without it keeps it, an empty value removes it.
management.AccessKeyOIDC.accessToken: Access token. Write-only: never returned. A write without it keeps it, an empty value removes it.
management.AccessKeyOIDC.refreshToken: Refresh token. Write-only: never returned. A write without it keeps it, an empty value removes it.
management.AccessKeyOIDC.lastRefresh: Last time the ID token was refreshed.
management.OwnedAccessKeyStatus: Observed state of the key.
management.OwnedAccessKeyStatus.lastActivity: Last time the key was used to access the API, with a resolution of about a minute. Denied requests do not count.
management.OwnedAccessKeyStatus.expiresAt: When the key expires. Absent if it never does. With ttlAfterLastActivity, each use moves it.
management.OwnedAccessKeyStatus.previousSecretExpiresAt: When the secret from before the last rotation stops working, or stopped. Absent if the key was never rotated.
`;
