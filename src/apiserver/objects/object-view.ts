/** Converts between stored objects and objects as clients see them: with kind, apiVersion and resourceVersion, in the shape of the requested kind. */

import { type KubeObject, apiVersionOf, metadataOf } from '../../kube/object.ts';
import { type JsonObject, type JsonValue, text } from '../../base/json.ts';
import type { StoredEntry } from '../storage/store.ts';
import type { ResourceDefinition, Column } from './resource-definition.ts';
import { plainText } from '../../base/excerpt.ts';
import { badRequest } from '../status.ts';

/** Metadata fields before the resourceVersion, in the order of a kube-apiserver. */
const BEFORE_VERSION = ['name', 'generateName', 'namespace', 'selfLink', 'uid'];

/** The text of an entry, valid for one version of the overlay. */
interface Text {
  readonly version: string;
  readonly text: string;
}

export class ObjectViews {
  /** The JSON text of entries, shared by watchers and lists. */
  readonly #texts = new WeakMap<ResourceDefinition, WeakMap<StoredEntry, Text>>();

  object(definition: ResourceDefinition, entry: StoredEntry): KubeObject {
    return viewOf(definition, entry.value, String(entry.revision));
  }

  text(definition: ResourceDefinition, entry: StoredEntry): string {
    let texts = this.#texts.get(definition);
    if (!texts) {
      texts = new WeakMap();
      this.#texts.set(definition, texts);
    }
    const version = definition.view.overlay?.version(entry.value) ?? '';
    const known = texts.get(entry);
    if (known?.version === version) return known.text;
    const text = JSON.stringify(this.object(definition, entry));
    texts.set(entry, { version, text });
    return text;
  }

  /** The object as an item of a list; items of built-in kinds have neither kind nor apiVersion. */
  itemText(definition: ResourceDefinition, entry: StoredEntry): string {
    const text = this.text(definition, entry);
    if (definition.hasTypedItems) return text;
    const typed = JSON.stringify({ kind: definition.kind, apiVersion: apiVersionOf(definition) });
    return `{${text.slice(typed.length)}`;
  }
}

function viewOf(definition: ResourceDefinition, stored: JsonObject, resourceVersion: string): KubeObject {
  return presented(definition, overlaid(definition, definition.view.fromStorage(stored)), resourceVersion);
}

export function overlaid(definition: ResourceDefinition, value: JsonObject): JsonObject {
  return definition.view.overlay?.over(value) ?? value;
}

/** An object in the shape of its kind, as a client sees it. `resourceVersion` `''`: not stored. */
export function presented(
  definition: ResourceDefinition,
  value: JsonObject,
  resourceVersion: string,
): KubeObject {
  const { resourceVersion: _version, ...source } = metadataOf(value);
  const metadata: JsonObject = {};
  for (const field of BEFORE_VERSION) {
    if (source[field] !== undefined) metadata[field] = source[field];
  }
  if (resourceVersion !== '') metadata['resourceVersion'] = resourceVersion;
  return {
    kind: definition.kind,
    apiVersion: apiVersionOf(definition),
    ...value,
    metadata: { ...metadata, ...source } as KubeObject['metadata'], // every stored object has a name
  };
}

/** The object as it is stored. `stored` is the state that it replaces. */
export function storedForm(
  definition: ResourceDefinition,
  object: JsonObject,
  stored: JsonObject | undefined,
): JsonObject {
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = object;
  const { resourceVersion: _version, ...metadata } = metadataOf(object);
  return definition.view.toStorage({ ...rest, metadata }, stored);
}

export type IncludeObject = 'Metadata' | 'None' | 'Object';

export interface TableOptions {
  readonly includeObject: IncludeObject;
  readonly nowMs: number;
  readonly metadata: JsonObject;
  /** A watch names its columns once. */
  readonly hasColumns: boolean;
  /** `meta.k8s.io/v1` */
  readonly apiVersion: string;
}

/** The requested part of each row's object. Throws 400. */
export function includeObject(query: URLSearchParams): IncludeObject {
  const include = query.get('includeObject') ?? '';
  if (include === 'None' || include === 'Object' || include === 'Metadata') return include;
  if (include === '') return 'Metadata';
  const problem = `Invalid value: ${JSON.stringify(include)}: must be 'Metadata', 'Object', 'None', or empty`;
  throw badRequest(`Unable to convert to Table as requested: includeObject: ${problem}`);
}

export function tableOf(
  definition: ResourceDefinition,
  objects: readonly KubeObject[],
  options: TableOptions,
): JsonObject {
  return {
    kind: 'Table',
    apiVersion: options.apiVersion,
    metadata: options.metadata,
    columnDefinitions: options.hasColumns ? columnsOf(definition).map(definitionOf) : null,
    rows: objects.map((object) => rowOf(definition, object, options)),
  };
}

export function rowOf(definition: ResourceDefinition, object: KubeObject, options: TableOptions): JsonObject {
  return {
    cells: columnsOf(definition).map((column) => cellOf(column.value(object as JsonObject, options.nowMs))), // a view is JSON
    object: rowObject(object, options),
  };
}

function cellOf(value: JsonValue): JsonValue {
  return typeof value === 'string' ? plainText(value) : value;
}

function columnsOf({ columns }: ResourceDefinition): readonly Column[] {
  return columns.length === 0 ? [NAME_COLUMN, CREATED_COLUMN] : columns;
}

function definitionOf({ name, type, format, description, priority }: Column): JsonObject {
  return { name, type, format: format ?? '', description, priority };
}

function rowObject(object: KubeObject, { includeObject, apiVersion }: TableOptions): JsonValue {
  switch (includeObject) {
    case 'None':
      return null;
    case 'Object':
      return object as JsonObject; // a view is JSON
    case 'Metadata':
      return partialMetadata(object, apiVersion);
  }
}

export function partialMetadata(object: KubeObject, apiVersion: string): JsonObject {
  return {
    kind: 'PartialObjectMetadata',
    apiVersion,
    metadata: object.metadata as JsonObject, // metadata is JSON
  };
}

export const NAME_COLUMN: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  priority: 0,
  description: 'The name of the object.',
  value: (object) => text(metadataOf(object), 'name'),
};

const CREATED_COLUMN: Column = {
  name: 'Created At',
  type: 'date',
  priority: 0,
  description: 'When the object was created.',
  value: (object) => text(metadataOf(object), 'creationTimestamp'),
};

export const AGE_COLUMN: Column = {
  name: 'Age',
  type: 'string',
  priority: 0,
  description: 'Time since the object was created.',
  value: (object, nowMs) => ageText(text(metadataOf(object), 'creationTimestamp'), nowMs),
};

/** A column of text. `priority` 1: only with `-o wide`. */
export function textColumn(
  name: string,
  description: string,
  value: (object: JsonObject, nowMs: number) => JsonValue,
  priority = 0,
): Column {
  return { name, type: 'string', priority, description, value };
}

export function ageText(timestamp: string, nowMs: number): string {
  return timestamp === '' ? '<unknown>' : durationText(nowMs - Date.parse(timestamp));
}

/** `119s`, `10m`, `5d8h`, rounded as kubectl does. */
function durationText(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (!(seconds >= -1)) return '<invalid>';
  if (seconds < 120) return `${Math.max(0, seconds)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return pair(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (days < 8) return pair(days, 'd', hours % 24, 'h');
  if (days < 730) return `${days}d`;
  const years = Math.floor(days / 365);
  return years < 8 ? pair(years, 'y', days % 365, 'd') : `${years}y`;
}

function pair(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${big}${bigUnit}` : `${big}${bigUnit}${small}${smallUnit}`;
}
