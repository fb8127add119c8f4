/** Columns of `kubectl get ownedaccesskeys`. */

import type { Column } from '../../../apiserver/objects/resource-definition.ts';
import {
  AGE_COLUMN,
  ageText,
  NAME_COLUMN,
  textColumn,
} from '../../../apiserver/objects/presentation/table.ts';
import { listField, objectField, text } from '../../../apiserver/metadata.ts';
import { isJsonObject, type JsonObject } from '../../../base/json.ts';
import { endOfKey } from '../lifecycle/key-expiry.ts';

export function keyColumns(): readonly Column[] {
  return [
    NAME_COLUMN,
    textColumn('Display Name', 'Display name.', (key) => text(specOf(key), 'displayName')),
    textColumn('Subject', 'User, team or subject of the key.', subjectText),
    textColumn('Type', 'Type of the key.', (key) => text(specOf(key), 'type')),
    textColumn('Disabled', 'Requests that use the key fail.', (key) =>
      String(specOf(key)['disabled'] === true),
    ),
    textColumn('Expires', 'When the key expires.', expiresText),
    AGE_COLUMN,
    textColumn('TTL', 'Lifetime of the key.', ttlText, 1),
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
