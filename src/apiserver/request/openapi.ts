/** OpenAPI v3 of one group version, for `kubectl explain` and client-side validation. */

import { createHash } from 'node:crypto';
import type { JsonArray, JsonObject } from '../../base/json.ts';
import {
  type ResourceDefinition,
  type DefinitionTable,
  PATCH_MEDIA,
  patchKindsOf,
  type Verb,
} from '../objects/resource-definition.ts';
import {
  META_TYPES,
  TypeTable,
  type Field,
  type ObjectSchema,
  type Scalar,
  type Schema,
} from '../schema/object-schema.ts';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const STATUS = `${META}.Status`;
const DELETE_OPTIONS = `${META}.DeleteOptions`;
const TEXT: JsonObject = { type: 'string' };
const STATUS_SCHEMA: JsonObject = {
  type: 'object',
  description: 'Status is the result of a request that returns no object.',
  properties: {
    apiVersion: TEXT,
    code: { type: 'integer', format: 'int32' },
    details: { type: 'object' },
    kind: TEXT,
    message: TEXT,
    metadata: { type: 'object' },
    reason: TEXT,
    status: TEXT,
  },
};
const META_SCHEMAS = new TypeTable([
  META_TYPES,
  'meta.DeleteOptions: DeleteOptions may be provided when deleting an object.',
]);

export interface OpenApiDocument {
  /** `api/v1`, `apis/coordination.k8s.io/v1`. */
  readonly path: string;
  readonly text: string;
  /** SHA-512, upper-case hex. */
  readonly hash: string;
}

export function openApiDocument(
  table: DefinitionTable,
  group: string,
  version: string,
  serverVersion: string,
): OpenApiDocument {
  const definitions = table.of(group, version);
  const components = schemasOf(definitions);
  const paths: JsonObject = {};
  for (const definition of definitions) {
    const requests = addRequests(components, definition);
    Object.assign(paths, pathsOf(definition, rootPath(group, version), requests));
  }
  const document: JsonObject = {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: serverVersion },
    paths,
    components: { schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))) },
  };
  const text = JSON.stringify(document);
  const hash = createHash('sha512').update(text).digest('hex').toUpperCase();
  return { path: rootPath(group, version).slice(1), text, hash };
}

/** The schemas of the kinds and of what they consist of, by name. */
export function schemasOf(definitions: readonly ResourceDefinition[]): Map<string, JsonObject> {
  const components = new Map<string, JsonObject>([[STATUS, STATUS_SCHEMA]]);
  addTypedObject(components, META_SCHEMAS.get('meta.DeleteOptions'));
  for (const definition of definitions) addKind(components, definition);
  return components;
}

export function openApiIndex(documents: readonly OpenApiDocument[]): JsonObject {
  const paths: JsonObject = {};
  for (const { path, hash } of documents) {
    paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` };
  }
  return { paths };
}

function rootPath(group: string, version: string): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
}

function addKind(components: Map<string, JsonObject>, definition: ResourceDefinition): void {
  const { group, version, kind, schema } = definition;
  const gvk = { group, kind, version };
  const object = addTypedObject(components, schema);
  object['x-kubernetes-group-version-kind'] = [gvk];
  const list = {
    type: 'object',
    description: `A list of ${definition.plural}.`,
    required: ['items'],
    properties: {
      apiVersion: { type: 'string' },
      items: { type: 'array', items: reference(schema) },
      kind: { type: 'string' },
      metadata: { type: 'object' },
    },
    'x-kubernetes-group-version-kind': [{ ...gvk, kind: `${kind}List` }],
  };
  components.set(`${componentName(schema)}List`, list);
}

function addTypedObject(components: Map<string, JsonObject>, schema: ObjectSchema): JsonObject {
  const object = addType(components, schema);
  const properties = object['properties'] as JsonObject; // addType sets it
  object['properties'] = {
    apiVersion: { type: 'string', description: 'The versioned schema of this representation of an object.' },
    kind: { type: 'string', description: 'The REST resource that this object represents.' },
    ...properties,
  };
  return object;
}

/** Adds the request kinds of actions; returns their names by the suffix of the operation. */
function addRequests(
  components: Map<string, JsonObject>,
  { group, version, subresources }: ResourceDefinition,
): Record<string, string> {
  const requests: Record<string, string> = {};
  for (const { name, action } of subresources) {
    if (!action) continue;
    const object = addTypedObject(components, action.schema);
    object['x-kubernetes-group-version-kind'] = [{ group, kind: action.kind, version }];
    requests[capitalized(name)] = componentName(action.schema);
  }
  return requests;
}

function addType(components: Map<string, JsonObject>, schema: ObjectSchema): JsonObject {
  const name = componentName(schema);
  const known = components.get(name);
  if (known) return known;
  const component: JsonObject = { type: 'object', description: schema.description };
  components.set(name, component); // before its fields, which may refer to it
  const properties: JsonObject = {};
  const required: JsonArray = [];
  for (const field of schema.fields.values()) {
    properties[field.name] = property(components, field);
    if (field.isRequired) required.push(field.name);
  }
  component['properties'] = properties;
  if (required.length > 0) component['required'] = required;
  if (schema.isAtomic) component['x-kubernetes-map-type'] = 'atomic';
  return component;
}

function property(components: Map<string, JsonObject>, field: Field): JsonObject {
  const value = schemaOf(components, field.schema);
  const { patchStrategies, mergeKey, description, schema } = field;
  const extras: JsonObject = {};
  if (schema.type === 'list') {
    extras['x-kubernetes-list-type'] = schema.listType;
    if (schema.listType === 'map') extras['x-kubernetes-list-map-keys'] = [...schema.keys];
  }
  if (patchStrategies.length > 0) extras['x-kubernetes-patch-strategy'] = patchStrategies.join(',');
  if (mergeKey !== '') extras['x-kubernetes-patch-merge-key'] = mergeKey;
  // A $ref may have no siblings, so the description is a sibling of allOf.
  if (schema.type === 'object') return { description, allOf: [value], ...extras };
  return { description, ...value, ...extras };
}

function schemaOf(components: Map<string, JsonObject>, schema: Schema): JsonObject {
  switch (schema.type) {
    case 'object':
      addType(components, schema);
      return reference(schema);
    case 'list':
      return { type: 'array', items: schemaOf(components, schema.items) };
    case 'map': {
      const map: JsonObject = { type: 'object', additionalProperties: schemaOf(components, schema.values) };
      if (schema.isAtomic) map['x-kubernetes-map-type'] = 'atomic';
      return map;
    }
    case 'scalar':
      return SCALARS[schema.scalar];
  }
}

const SCALARS: Readonly<Record<Scalar, JsonObject>> = {
  string: TEXT,
  bool: { type: 'boolean' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  float64: { type: 'number', format: 'double' },
  bytes: { type: 'string', format: 'byte' },
  time: { type: 'string', format: 'date-time' },
  microtime: { type: 'string', format: 'date-time' },
  intOrString: { oneOf: [{ type: 'integer' }, TEXT], format: 'int-or-string' },
  quantity: { oneOf: [TEXT, { type: 'number' }] },
  any: { type: 'object' },
};

function reference(schema: ObjectSchema): JsonObject {
  return { $ref: `#/components/schemas/${componentName(schema)}` };
}

/** `EndpointSubset` → `io.k8s.api.core.v1.EndpointSubset`, `events.Event` → `io.k8s.api.events.v1.Event`. */
function componentName({ name }: ObjectSchema): string {
  const parts = name.split('.');
  const type = parts.pop() ?? '';
  const packageName = parts.join('.');
  if (packageName === 'meta') return `${META}.${type}`;
  return `io.k8s.api.${packageName === '' ? 'core' : packageName}.v1.${type}`;
}

// The operations on a kind, as the OpenAPI document of a kube-apiserver describes them.

/** The request kinds of subresources that are actions, by the suffix of their operation: `Rotate`. */
type Requests = Readonly<Record<string, string>>;

const SELECTION = [
  'continue',
  'fieldSelector',
  'labelSelector',
  'limit',
  'resourceVersion',
  'resourceVersionMatch',
  'sendInitialEvents',
  'timeoutSeconds',
];
const STREAM = ['allowWatchBookmarks', 'watch'];
const WRITE = ['dryRun', 'fieldManager', 'fieldValidation'];
const DELETION = ['dryRun', 'gracePeriodSeconds', 'orphanDependents', 'propagationPolicy'];
const QUERY_TYPES: Readonly<Record<string, string>> = {
  allowWatchBookmarks: 'boolean',
  force: 'boolean',
  gracePeriodSeconds: 'integer',
  limit: 'integer',
  orphanDependents: 'boolean',
  sendInitialEvents: 'boolean',
  timeoutSeconds: 'integer',
  watch: 'boolean',
};

const RESPONSE_MEDIA = ['application/json', 'application/yaml'];
const WATCH_MEDIA = 'application/json;stream=watch';

type Operation = readonly [
  verb: Verb,
  method: string,
  idPrefix: string,
  query: readonly string[],
  codes: readonly string[],
  response: 'object' | 'list' | 'status',
];

const COLLECTION: readonly Operation[] = [
  ['list', 'get', 'list', [...SELECTION, ...STREAM].toSorted(), ['200'], 'list'],
  ['create', 'post', 'create', WRITE, ['200', '201', '202'], 'object'],
  ['deletecollection', 'delete', 'delete', [...SELECTION, ...DELETION].toSorted(), ['200'], 'status'],
];
const PATCH: Operation = ['patch', 'patch', 'patch', [...WRITE, 'force'], ['200', '201'], 'object'];
const ITEM: readonly Operation[] = [
  ['get', 'get', 'read', [], ['200'], 'object'],
  ['update', 'put', 'replace', WRITE, ['200', '201'], 'object'],
  PATCH,
  ['delete', 'delete', 'delete', DELETION, ['200', '202'], 'status'],
];

const ACTION: Operation = ['create', 'post', 'create', WRITE, ['201'], 'object'];

function pathsOf(definition: ResourceDefinition, root: string, requests: Requests): JsonObject {
  const { plural, isNamespaced, verbs } = definition;
  const base = `${root}${isNamespaced ? '/namespaces/{namespace}' : ''}/${plural}`;
  const scope = isNamespaced ? ['namespace'] : [];
  const paths: JsonObject = {};
  const add = (
    path: string,
    operations: readonly Operation[],
    names: readonly string[],
    suffix = '',
  ): void => {
    if (operations.length === 0) return;
    const item: JsonObject = names.length === 0 ? {} : { parameters: names.map(pathParameter) };
    for (const operation of operations) {
      const [, method] = operation;
      item[method] = describe(definition, operation, requests, suffix);
    }
    paths[path] = item;
  };
  add(base, served(COLLECTION, verbs), scope);
  // kubectl reads from PATCH whether the server validates fields. Without it, kubectl would not create kinds that are never stored.
  add(`${base}/{name}`, definition.respond ? [PATCH] : served(ITEM, verbs), ['name', ...scope]);
  for (const { name, verbs: own, action } of definition.subresources) {
    const operations = action ? [ACTION] : served(ITEM, own);
    add(`${base}/{name}/${name}`, operations, ['name', ...scope], capitalized(name));
  }
  if (isNamespaced) {
    const everywhere = served(COLLECTION, verbs).filter(([verb]) => verb === 'list');
    add(`${root}/${plural}`, everywhere, [], 'ForAllNamespaces');
  }
  return paths;
}

function served(operations: readonly Operation[], verbs: readonly Verb[]): readonly Operation[] {
  return operations.filter(([verb]) => verbs.includes(verb));
}

function describe(
  definition: ResourceDefinition,
  operation: Operation,
  requests: Requests,
  suffix: string,
): JsonObject {
  const { group, version, kind, schema } = definition;
  const [verb, method, , query, codes, response] = operation;
  const object = componentName(schema);
  const content = contentOf(
    [...RESPONSE_MEDIA, ...(verb === 'list' ? [WATCH_MEDIA] : [])],
    { object, list: `${object}List`, status: STATUS }[response],
  );
  const action = { create: 'post', update: 'put' }[verb as string] ?? verb;
  return {
    operationId: idOf(definition, operation, suffix),
    ...(query.length === 0 ? {} : { parameters: query.map(queryParameter) }),
    ...(method === 'get'
      ? {}
      : { requestBody: requestBody(definition, operation, requests[suffix] ?? object) }),
    responses: Object.fromEntries(
      codes.map((code) => [code, { description: RESPONSES[code] ?? '', content }]),
    ),
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group, kind, version },
  };
}

const RESPONSES: Readonly<Record<string, string>> = { 200: 'OK', 201: 'Created', 202: 'Accepted' };

/** `readCoreV1NamespacedConfigMap`. */
function idOf(
  { group, version, kind, isNamespaced }: ResourceDefinition,
  [verb, , idPrefix]: Operation,
  suffix: string,
): string {
  const groupWords = group === '' ? ['core'] : group.replace(/\.k8s\.io$/, '').split('.');
  const words = [...groupWords, version].map(capitalized);
  const collection = verb === 'deletecollection' ? 'Collection' : '';
  const where = isNamespaced && suffix !== 'ForAllNamespaces' ? 'Namespaced' : '';
  return `${idPrefix}${words.join('')}${collection}${where}${kind}${suffix}`;
}

function capitalized(word: string): string {
  return `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;
}

function pathParameter(name: string): JsonObject {
  return { name, in: 'path', required: true, schema: { type: 'string', uniqueItems: true } };
}

function queryParameter(name: string): JsonObject {
  return { name, in: 'query', schema: { type: QUERY_TYPES[name] ?? 'string', uniqueItems: true } };
}

function requestBody(definition: ResourceDefinition, [verb, method]: Operation, sent: string): JsonObject {
  if (method === 'delete') return { content: contentOf(['*/*'], DELETE_OPTIONS) };
  if (verb !== 'patch') return { content: contentOf(['*/*'], sent), required: true };
  const media = patchKindsOf(definition).map((kind): [string, JsonObject] => [
    PATCH_MEDIA[kind],
    { schema: { type: 'object' } },
  ]);
  return { content: Object.fromEntries(media), required: true };
}

function contentOf(media: readonly string[], schema: string): JsonObject {
  return Object.fromEntries(
    media.map((type) => [type, { schema: { $ref: `#/components/schemas/${schema}` } }]),
  );
}
