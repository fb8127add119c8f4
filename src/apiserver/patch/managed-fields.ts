/** Field ownership: maintains `metadata.managedFields` for updates, and merges and detects conflicts for server-side apply. */

import { metadataOf } from '../../kube/object.ts';
import {
  cloneJson,
  isJsonObject,
  jsonEquals,
  type JsonObject,
  type JsonValue,
  objectField,
  objectList,
  text,
} from '../../base/json.ts';
import { emptyObject } from '../schema/decode.ts';
import type { ObjectSchema } from '../schema/object-schema.ts';
import { failure } from '../../kube/status-error.ts';
import {
  FieldSet,
  unionOf,
  fromFieldsV1,
  toFieldsV1,
  compare,
  fieldsOf,
  mergeApplied,
  removeFields,
} from './field-set.ts';
import { MANAGED_FIELDS_MAX } from '../limits.ts';
import { entityTooLarge } from '../status.ts';

export interface ManagedSchema {
  readonly schema: ObjectSchema;
  readonly hasStatus: boolean;
}

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
  /** `managedFields` of the request; absent: not sent. */
  readonly sent: JsonValue | undefined;
}

/** The `managedFields` after a create, update or patch; empty when ownership is not tracked. */
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
  const lostByOthers = change.removed.union(touched);
  const others = entries.map((entry) => {
    if (entry.apiVersion !== writer.apiVersion) return entry;
    const lost = isSameWriter(entry, writer) ? change.removed : lostByOthers;
    return { ...entry, fields: entry.fields.difference(lost) };
  });
  const written = ownable(touched);
  const own = others.find((entry) => isSameWriter(entry, writer));
  const next = others.filter((entry) => entry !== own);
  const fields = own ? own.fields.union(written) : written;
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

/** Server-side apply. Throws a 409 `StatusError` that names every field that another manager owns with another value. */
export function applyFields(
  kind: ManagedSchema,
  { live, config, isForced }: ApplyOfFields,
  writer: FieldWriter,
): Applied {
  const bare = withoutManaged(live);
  const entries = readEntries(objectList(metadataOf(live), 'managedFields')) ?? [];
  if (entries.length === 0 && text(metadataOf(live), 'uid') !== '') {
    const there = compare(kind.schema, emptyObject(kind.schema), bare);
    entries.push({
      manager: 'before-first-apply',
      operation: 'Update',
      apiVersion: writer.apiVersion,
      subresource: '',
      time: writer.time,
      fields: ownable(there.added.union(there.modified)),
    });
  }
  const own = entries.find((entry) => isSameWriter(entry, writer));
  const others = entries.filter((entry) => entry !== own);
  const wanted = inScope(kind, ownable(fieldsOf(kind.schema, config)), writer.subresource);
  const scoped = scopedConfig(kind, config, writer.subresource);
  const merged = mergeApplied(kind.schema, bare, scoped) as JsonObject; // an object merges to an object
  const kept = unionOf([wanted, ...others.map((entry) => entry.fields)]);
  const object = own ? (removeFields(kind.schema, merged, own.fields, kept) as JsonObject) : merged; // as above
  const change = compare(kind.schema, bare, object);
  const touched = change.added.union(change.modified);
  if (!isForced) rejectConflicts(others, touched, writer.apiVersion);
  const lost = touched.union(change.removed);
  const next = others.map((entry) => ({ ...entry, fields: entry.fields.difference(lost) }));
  const isChanged = !jsonEquals(bare, object);
  next.push({ ...writer, time: isChanged ? writer.time : (own?.time ?? ''), fields: wanted });
  return { object, managedFields: writeEntries(next) };
}

/** The fields that a write to this subresource may own. */
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

function rejectConflicts(entries: readonly Entry[], touched: FieldSet, apiVersion: string): void {
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

function managerText({ manager, operation, apiVersion, subresource }: Entry): string {
  const name = JSON.stringify(manager);
  if (operation === 'Apply') return name;
  const via = subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`;
  return `${name}${via} using ${apiVersion}`;
}

/** A client resets ownership by `managedFields: [{}]` or an empty list. */
function isReset(sent: JsonValue | undefined): boolean {
  if (!Array.isArray(sent) || sent.length > 1) return false;
  if (sent.length === 0) return true;
  return isJsonObject(sent[0]) && Object.values(sent[0]).every((value) => value === '' || value === null);
}

function ownable(fields: FieldSet): FieldSet {
  const children = new Map(fields.children);
  for (const edge of ['f:apiVersion', 'f:kind', 'f:metadata']) children.delete(edge);
  const metadata = fields.children.get('f:metadata');
  if (metadata) {
    const owned = UNOWNED_METADATA.reduce((left, name) => left.without(`f:${name}`), metadata);
    if (owned.children.size > 0) children.set('f:metadata', new FieldSet(false, new Map(owned.children)));
  }
  return new FieldSet(false, children);
}

function withoutManaged(object: JsonObject): JsonObject {
  const metadata = objectField(object, 'metadata');
  if (!Object.hasOwn(metadata, 'managedFields')) return object;
  const { managedFields: _dropped, ...rest } = metadata;
  return { ...object, metadata: rest };
}

export function withManagedFields(object: JsonObject, managedFields: readonly JsonObject[]): JsonObject {
  const bare = withoutManaged(object);
  if (managedFields.length === 0) return bare;
  const metadata = { ...metadataOf(bare), managedFields: managedFields.map((entry) => cloneJson(entry)) };
  return { ...bare, metadata };
}

export interface FieldWriter {
  readonly manager: string;
  readonly operation: 'Update' | 'Apply';
  readonly apiVersion: string;
  readonly subresource: string;
  /** RFC 3339, seconds. */
  readonly time: string;
}

interface Entry extends FieldWriter {
  readonly fields: FieldSet;
}

/** Update entries beyond this number are merged into one, oldest first, so that the list stays bounded. */
const UPDATE_ENTRIES_MAX = 10;

function isSameWriter(entry: Entry, writer: FieldWriter): boolean {
  return (
    entry.manager === writer.manager &&
    entry.operation === writer.operation &&
    entry.apiVersion === writer.apiVersion &&
    entry.subresource === writer.subresource
  );
}

/** Undefined when an entry is invalid or all entries together hold too many fields: then all are ignored. */
function readEntries(list: readonly JsonObject[]): Entry[] | undefined {
  const entries: Entry[] = [];
  let size = 0;
  for (const json of list) {
    const fields = fromFieldsV1(json['fieldsV1']);
    const operation = text(json, 'operation');
    const isRead = fields && text(json, 'fieldsType') === 'FieldsV1';
    size += 1 + (fields?.size ?? 0);
    if (!isRead || size > MANAGED_FIELDS_MAX) return undefined;
    if (operation !== 'Update' && operation !== 'Apply') return undefined;
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

/** In the order of a kube-apiserver: applies first, then by time, then by name. Throws a 413 `StatusError` above `MANAGED_FIELDS_MAX`. */
function writeEntries(entries: readonly Entry[]): JsonObject[] {
  const size = entries.reduce((sum, { fields }) => sum + 1 + fields.size, 0);
  if (size > MANAGED_FIELDS_MAX) {
    const why = `metadata.managedFields would hold more than ${MANAGED_FIELDS_MAX} fields`;
    throw entityTooLarge(`${why}; use fewer field managers`);
  }
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
  const fields = unionOf(oldest.map((entry) => entry.fields));
  const ancient: Entry = { ...newest, manager: 'ancient-changes', fields };
  const merged = new Set(oldest);
  return [...entries.filter((entry) => !merged.has(entry)), ancient];
}
