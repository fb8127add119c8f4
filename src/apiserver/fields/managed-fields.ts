/** Field ownership: maintains `metadata.managedFields` for updates, and merges and detects conflicts for server-side apply. */

import { cloneJson, isJsonObject, jsonEquals, type JsonObject, type JsonValue } from '../../base/json.ts';
import { metadataOf, objectField, objectList, text } from '../metadata.ts';
import { emptyObject } from '../schema/decode.ts';
import type { ObjectSchema } from '../schema/object-schema.ts';
import { failure } from '../../kube/status-error.ts';
import { emptySet, FieldSet, unionOf } from './field-set.ts';
import {
  capped,
  isSameWriter,
  readEntries,
  writeEntries,
  type Entry,
  type FieldWriter,
} from './managed-entries.ts';
import { compare, fieldsOf, mergeApplied, removeFields } from './typed-fields.ts';

export interface ManagedSchema {
  readonly schema: ObjectSchema;
  /** The status is written through its own subresource. */
  readonly hasStatus: boolean;
}

/** Metadata that the server maintains and that has no field manager. */
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

/** The fields that a manager may own. */
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
