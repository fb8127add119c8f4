/** Who owns which field: `metadata.managedFields` kept for updates, conflicts and removals decided for server-side apply. */

import { cloneJson, isJsonObject, jsonEquals, type JsonObject, type JsonValue } from '../../lib/json.ts';
import { metadataOf, objectField, objectList, text } from '../validation/metadata.ts';
import type { ObjectSchema } from '../schema/schema.ts';
import { failure } from '../status.ts';
import { emptySet, FieldSet, fromFieldsV1, toFieldsV1 } from './field-set.ts';
import { compare, fieldsOf, mergeApplied, removeFields } from './typed-fields.ts';

/** Who writes, and how. */
export interface FieldWriter {
  readonly manager: string;
  readonly operation: 'Update' | 'Apply';
  readonly apiVersion: string;
  /** `''` for the object itself. */
  readonly subresource: string;
  /** RFC 3339, seconds. */
  readonly time: string;
}

export interface ManagedSchema {
  readonly schema: ObjectSchema;
  /** Status is written through its own subresource. */
  readonly hasStatus: boolean;
}

interface Entry {
  readonly manager: string;
  readonly operation: string;
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string;
  readonly fields: FieldSet;
}

/** Update entries kept apart; older ones become one, so that the list cannot grow for ever. */
const UPDATE_ENTRIES_MAX = 10;

/** Metadata that the server keeps: nobody owns it. */
const UNOWNED_METADATA = [
  'name',
  'namespace',
  'creationTimestamp',
  'selfLink',
  'uid',
  'clusterName',
  'generation',
  'managedFields',
  'resourceVersion',
];

export interface UpdateOfFields {
  /** The object before, or for a create the empty object of the kind. */
  readonly before: JsonObject;
  readonly after: JsonObject;
  readonly isCreate: boolean;
  /** What the client sent; absent: it left the field alone. */
  readonly sent: JsonValue | undefined;
}

/** The `managedFields` after a create, update or patch; an empty list where nothing is tracked. */
export function trackUpdate(
  { schema }: ManagedSchema,
  { before, after, isCreate, sent }: UpdateOfFields,
  writer: FieldWriter,
): JsonObject[] {
  if (isReset(sent)) return [];
  const live = objectList(metadataOf(before), 'managedFields');
  const given = Array.isArray(sent) && !isCreate ? readEntries(sent.filter(isJsonObject)) : undefined;
  const entries = given?.length ? given : (readEntries(live) ?? []);
  if (entries.length === 0 && !isCreate) return [];
  const change = compare(schema, withoutManaged(before), withoutManaged(after));
  const touched = change.added.union(change.modified);
  const others = entries.map((entry) => {
    if (entry.apiVersion !== writer.apiVersion) return entry;
    const isOwn = isSameWriter(entry, writer);
    const lost = isOwn ? change.removed : change.removed.union(touched);
    return { ...entry, fields: entry.fields.difference(lost) };
  });
  const written = ownable(touched);
  const own = others.find((entry) => isSameWriter(entry, writer));
  const next = others.filter((entry) => entry !== own);
  const fields = (own?.fields ?? emptySet()).union(written);
  const time = written.isEmpty ? (own?.time ?? writer.time) : writer.time;
  next.push({ ...writer, ...own, time, fields });
  return writeEntries(capped(next));
}

export interface ApplyOfFields {
  readonly live: JsonObject;
  /** Decoded, without `managedFields`. */
  readonly config: JsonObject;
  readonly isForced: boolean;
}

export interface Applied {
  readonly object: JsonObject;
  readonly managedFields: JsonObject[];
}

/** Server-side apply. Throws a 409 `StatusError` that names every field that somebody else owns with another value. */
export function applyFields(
  kind: ManagedSchema,
  { live, config, isForced }: ApplyOfFields,
  writer: FieldWriter,
): Applied {
  const bare = withoutManaged(live);
  const entries = readEntries(objectList(metadataOf(live), 'managedFields')) ?? [];
  if (entries.length === 0 && text(metadataOf(live), 'uid') !== '') {
    entries.push({
      manager: 'before-first-apply',
      operation: 'Update',
      apiVersion: writer.apiVersion,
      subresource: '',
      time: writer.time,
      fields: ownable(fieldsOf(kind.schema, bare)),
    });
  }
  const own = entries.find((entry) => isSameWriter(entry, writer));
  const others = entries.filter((entry) => entry !== own);
  const wanted = inScope(kind, ownable(fieldsOf(kind.schema, config)), writer.subresource);
  const scoped = scopedConfig(kind, config, writer.subresource);
  const merged = mergeApplied(kind.schema, bare, scoped) as JsonObject; // an object merges to an object
  const kept = others.reduce((all, entry) => all.union(entry.fields), wanted);
  const object = own ? (removeFields(kind.schema, merged, own.fields, kept) as JsonObject) : merged; // as above
  const change = compare(kind.schema, bare, object);
  const touched = change.added.union(change.modified);
  if (!isForced) refuseConflicts(others, touched, writer.apiVersion);
  const next = others.map((entry) => ({
    ...entry,
    fields: entry.fields.difference(touched.union(change.removed)),
  }));
  const isChanged = !jsonEquals(bare, object);
  next.push({ ...writer, time: isChanged ? writer.time : (own?.time ?? ''), fields: wanted });
  return { object, managedFields: writeEntries(next) };
}

/** The part of the object that a write to this subresource may own. */
function inScope(kind: ManagedSchema, fields: FieldSet, subresource: string): FieldSet {
  if (!kind.hasStatus) return fields;
  if (subresource !== 'status') return fields.without('f:status');
  return [...fields.children.keys()]
    .filter((edge) => edge !== 'f:status')
    .reduce((set, edge) => set.without(edge), fields);
}

function scopedConfig(kind: ManagedSchema, config: JsonObject, subresource: string): JsonObject {
  if (!kind.hasStatus) return config;
  if (subresource === 'status') return { status: config['status'] ?? {} };
  const { status: _ignored, ...rest } = config;
  return rest;
}

function refuseConflicts(entries: readonly Entry[], touched: FieldSet, apiVersion: string): void {
  const conflicts = entries
    .filter((entry) => entry.apiVersion === apiVersion)
    .map((entry) => ({ entry, paths: entry.fields.intersection(touched).paths() }))
    .filter(({ paths }) => paths.length > 0)
    .sort((a, b) => (a.entry.manager < b.entry.manager ? -1 : 1));
  const causes = conflicts.flatMap(({ entry, paths }) =>
    paths.map((field) => ({
      reason: 'FieldManagerConflict',
      message: `conflict with ${managerText(entry)}`,
      field,
    })),
  );
  if (causes.length === 0) return;
  throw failure(409, 'Conflict', `Apply failed with ${conflictText(conflicts)}`, { causes });
}

function conflictText(conflicts: readonly { entry: Entry; paths: readonly string[] }[]): string {
  const [first] = conflicts;
  const count = conflicts.reduce((sum, { paths }) => sum + paths.length, 0);
  if (count === 1 && first) {
    return `1 conflict: conflict with ${managerText(first.entry)}: ${first.paths[0] ?? ''}`;
  }
  const groups = conflicts.map(({ entry, paths }) => {
    const lines = paths.map((path) => `- ${path}`);
    return `conflicts with ${managerText(entry)}:\n${lines.join('\n')}`;
  });
  return `${count} conflicts: ${groups.join('\n')}`;
}

function managerText({ manager, operation, apiVersion, subresource, time }: Entry): string {
  const name = JSON.stringify(manager);
  if (operation === 'Apply') return name;
  const via = subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`;
  const at = time === '' || manager === 'before-first-apply' ? '' : ` at ${time}`;
  return `${name}${via} using ${apiVersion}${at}`;
}

/** `managedFields: [{}]` is how a client forgets all managers. */
function isReset(sent: JsonValue | undefined): boolean {
  if (!Array.isArray(sent) || sent.length !== 1) return false;
  return isJsonObject(sent[0]) && Object.values(sent[0]).every((value) => value === '' || value === null);
}

function isSameWriter(entry: Entry, writer: FieldWriter): boolean {
  return (
    entry.manager === writer.manager &&
    entry.operation === writer.operation &&
    entry.apiVersion === writer.apiVersion &&
    entry.subresource === writer.subresource
  );
}

/** Undefined when one of them is not as a server writes them: then none is believed. */
function readEntries(list: readonly JsonObject[]): Entry[] | undefined {
  const entries: Entry[] = [];
  for (const json of list) {
    const fields = fromFieldsV1(json['fieldsV1']);
    const operation = text(json, 'operation');
    if (!fields || (operation !== 'Update' && operation !== 'Apply')) return undefined;
    entries.push({
      manager: text(json, 'manager'),
      operation,
      apiVersion: text(json, 'apiVersion'),
      subresource: text(json, 'subresource'),
      time: text(json, 'time'),
      fields,
    });
  }
  return entries;
}

/** In the order of a real server: applies first, then by time, then by name. */
function writeEntries(entries: readonly Entry[]): JsonObject[] {
  return entries
    .filter(({ fields }) => !fields.isEmpty)
    .sort((a, b) => compareText(orderOf(a), orderOf(b)))
    .map((entry) => {
      const json: JsonObject = {
        manager: entry.manager,
        operation: entry.operation,
        apiVersion: entry.apiVersion,
      };
      if (entry.time !== '') json['time'] = entry.time;
      json['fieldsType'] = 'FieldsV1';
      json['fieldsV1'] = toFieldsV1(entry.fields);
      if (entry.subresource !== '') json['subresource'] = entry.subresource;
      return json;
    });
}

function orderOf({ operation, time, manager, apiVersion, subresource }: Entry): string {
  return [operation, time, manager, apiVersion, subresource].join('\0');
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function capped(entries: readonly Entry[]): Entry[] {
  const updates = entries.filter(({ operation }) => operation === 'Update');
  const surplus = updates.length - UPDATE_ENTRIES_MAX;
  if (surplus <= 0) return [...entries];
  const oldest = updates.sort((a, b) => compareText(orderOf(a), orderOf(b))).slice(0, surplus + 1);
  const newest = oldest.at(-1);
  if (!newest) return [...entries];
  const fields = oldest.reduce((all, entry) => all.union(entry.fields), emptySet());
  const ancient: Entry = { ...newest, manager: 'ancient-changes', fields };
  return [...entries.filter((entry) => !oldest.includes(entry)), ancient];
}

/** What of a field set a manager may own. */
function ownable(fields: FieldSet): FieldSet {
  const children = new Map(fields.children);
  for (const edge of ['f:apiVersion', 'f:kind', 'f:metadata']) children.delete(edge);
  const metadata = fields.children.get('f:metadata');
  if (metadata) {
    const owned = UNOWNED_METADATA.reduce((left, name) => left.without(`f:${name}`), metadata);
    if (owned.children.size > 0) children.set('f:metadata', new FieldSet(false, owned.children));
  }
  return new FieldSet(false, children);
}

function withoutManaged(object: JsonObject): JsonObject {
  const metadata = objectField(object, 'metadata');
  if (!Object.hasOwn(metadata, 'managedFields')) return object;
  const { managedFields: _dropped, ...rest } = metadata;
  return { ...object, metadata: rest };
}

/** Sets or removes the list on a copy of the object. */
export function withManagedFields(object: JsonObject, managedFields: readonly JsonObject[]): JsonObject {
  const bare = withoutManaged(object);
  if (managedFields.length === 0) return bare;
  const metadata = { ...metadataOf(bare), managedFields: managedFields.map((entry) => cloneJson(entry)) };
  return { ...bare, metadata };
}
