/** What `kubectl get ownedaccesskeys` shows. */

import type { Column } from '../../api/resource-definition.ts';
import { AGE_COLUMN, ageText, NAME_COLUMN, textColumn } from '../../api/table.ts';
import { listField, metadataOf, objectField, text } from '../../api/validation/metadata.ts';
import { isJsonObject, type JsonObject } from '../../lib/json.ts';
import { endOf } from './key-expiry.ts';

export function keyColumns(): readonly Column[] {
  return [
    NAME_COLUMN,
    textColumn('Display Name', 'The name that people see.', (key) => text(specOf(key), 'displayName')),
    textColumn('Subject', 'Who the key speaks for.', subjectText),
    textColumn('Type', 'Who manages the key.', (key) => text(specOf(key), 'type')),
    textColumn('Disabled', 'The key is refused.', (key) => String(specOf(key)['disabled'] === true)),
    textColumn('Expires', 'How long the key will be good.', expiresText),
    AGE_COLUMN,
    textColumn('TTL', 'How long the key lives.', ttlText, 1),
    textColumn('Last Activity', 'How long ago the key was used.', activityText, 1),
    textColumn('Groups', 'Groups beside those of the subject.', (key) => groupsText(key), 1),
    textColumn('Scope', 'What the key is restricted to.', scopeText, 1),
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
  const activity = text(objectField(key, 'status'), 'lastActivity');
  const lifetime = {
    createdMs: Date.parse(text(metadataOf(key), 'creationTimestamp')),
    ttlMs: Number(specOf(key)['ttl'] ?? 0) * 1000,
    isAfterActivity: specOf(key)['ttlAfterLastActivity'] === true,
  };
  const end = endOf(lifetime, activity === '' ? undefined : Date.parse(activity));
  if (end === undefined) return 'never';
  return end <= nowMs ? 'expired' : `in ${spanText(end - nowMs)}`;
}

function ttlText(key: JsonObject): string {
  const seconds = Number(specOf(key)['ttl'] ?? 0);
  if (seconds <= 0) return 'unlimited';
  const suffix = specOf(key)['ttlAfterLastActivity'] === true ? ' unused' : '';
  return spanText(seconds * 1000) + suffix;
}

/** The machinery writes ages: a span is the age of what happened that long before the beginning of time. */
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

/** `all`, `nothing`, or how many entries of what. */
function scopeText(key: JsonObject): string {
  const { scope } = specOf(key);
  if (!isJsonObject(scope)) return 'all';
  const parts = Object.entries(scope).flatMap(([name, value]) => {
    if (Array.isArray(value) && value.length > 0) return [countText(value.length, name)];
    return value === true ? [name] : [];
  });
  return parts.length === 0 ? 'nothing' : parts.join(', ');
}

/** `1 cluster`, `2 clusters`: the fields of a scope are plurals that end in s. */
function countText(count: number, plural: string): string {
  return `${count} ${count === 1 ? plural.slice(0, -1) : plural}`;
}
