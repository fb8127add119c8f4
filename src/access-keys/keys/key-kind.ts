/** The resource definition of OwnedAccessKey. */

import { EXTRA, MANAGEMENT_GROUP, MANAGEMENT_VERSION } from '../identity.ts';
import {
  defineResource,
  type ResourceDefinition,
  type Subresource,
  type Column,
} from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import { metadataOf, objectField, objectList, text, listField } from '../../apiserver/metadata.ts';
import { subdomainProblem } from '../../kube/names.ts';
import type { Clock } from '../../base/clock.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { KEY_TYPES_ALLOWED, validateKey } from './key-validation.ts';
import { scopeWarnings } from '../authorization/scope-validation.ts';
import { APPLIED_MANIFEST, type StoredKeys } from './stored-key.ts';
import { AGE_COLUMN, ageText, NAME_COLUMN, textColumn } from '../../apiserver/objects/object-view.ts';
import { endOfKey } from './key-expiry.ts';

/** Resource of the keys in the store. */
export const KEY_STORAGE = `ownedaccesskeys.${MANAGEMENT_GROUP}`;

/** `types` holds `KEY_TYPES`, `SCOPE_TYPES` and `META_TYPES`. */
export function ownedAccessKeys(
  types: TypeTable,
  clock: Clock,
  maxTtlSeconds: number,
  forms: StoredKeys,
  rotate: Subresource,
): ResourceDefinition {
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
    subresources: [rotate],
    hasGeneration: true,
    hasTypedItems: true,
    needsQualifiedFinalizers: false,
    responseContainsSecret: true,
    patchKinds: ['json', 'merge', 'apply'],
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

/** Deprecated fields with their replacement, and a secret that kubectl may not print. */
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

/** Client-side or server-side `kubectl apply`. */
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
  const seconds = Number(specOf(key)['ttl'] ?? 0);
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

/** `all`, `nothing`, or the number of entries per list. */
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
