/** Tables: the rows that `kubectl get` prints. */

import { plainText } from '../../base/excerpt.ts';
import type { JsonObject, JsonValue } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { Column, ResourceDefinition } from './resource-definition.ts';
import { badRequest } from '../status.ts';
import { metadataOf, text } from '../metadata.ts';

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

/** For a terminal. */
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
  if (seconds < -1) return '<invalid>';
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
