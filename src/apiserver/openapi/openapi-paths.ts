/** The operations on a kind, as the OpenAPI document of a kube-apiserver describes them. */

import type { JsonObject } from '../../base/json.ts';
import { PATCH_MEDIA, type ResourceDefinition, type Verb } from '../objects/resource-definition.ts';

/** Names of the document's schemas, as `$ref` has them behind `#/components/schemas/`. */
export interface PathSchemas {
  readonly object: string;
  readonly list: string;
  readonly status: string;
  readonly deleteOptions: string;
  /** Request kinds of the subresources that are actions, by the suffix of their operation: `Rotate`. */
  readonly requests: Readonly<Record<string, string>>;
}

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
/** Types of query parameters; all others are strings. */
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

interface Operation {
  readonly verb: Verb;
  readonly method: string;
  readonly idPrefix: string;
  readonly query: readonly string[];
  readonly codes: readonly string[];
  readonly response: 'object' | 'list' | 'status';
}

const COLLECTION: readonly Operation[] = [
  {
    verb: 'list',
    method: 'get',
    idPrefix: 'list',
    query: [...SELECTION, ...STREAM].toSorted(),
    codes: ['200'],
    response: 'list',
  },
  {
    verb: 'create',
    method: 'post',
    idPrefix: 'create',
    query: WRITE,
    codes: ['200', '201', '202'],
    response: 'object',
  },
  {
    verb: 'deletecollection',
    method: 'delete',
    idPrefix: 'delete',
    query: [...SELECTION, ...DELETION].toSorted(),
    codes: ['200'],
    response: 'status',
  },
];
const PATCH: Operation = {
  verb: 'patch',
  method: 'patch',
  idPrefix: 'patch',
  query: [...WRITE, 'force'],
  codes: ['200', '201'],
  response: 'object',
};
const ITEM: readonly Operation[] = [
  { verb: 'get', method: 'get', idPrefix: 'read', query: [], codes: ['200'], response: 'object' },
  {
    verb: 'update',
    method: 'put',
    idPrefix: 'replace',
    query: WRITE,
    codes: ['200', '201'],
    response: 'object',
  },
  PATCH,
  {
    verb: 'delete',
    method: 'delete',
    idPrefix: 'delete',
    query: DELETION,
    codes: ['200', '202'],
    response: 'status',
  },
];

/** POST to a subresource that is an action. */
const ACTION: Operation = {
  verb: 'create',
  method: 'post',
  idPrefix: 'create',
  query: WRITE,
  codes: ['201'],
  response: 'object',
};

/** `root`: `/api/v1`, `/apis/coordination.k8s.io/v1`. */
export function pathsOf(definition: ResourceDefinition, root: string, schemas: PathSchemas): JsonObject {
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
    for (const operation of operations)
      item[operation.method] = describe(definition, operation, schemas, suffix);
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
    const everywhere = served(COLLECTION, verbs).filter(({ verb }) => verb === 'list');
    add(`${root}/${plural}`, everywhere, [], 'ForAllNamespaces');
  }
  return paths;
}

function served(operations: readonly Operation[], verbs: readonly Verb[]): readonly Operation[] {
  return operations.filter(({ verb }) => verbs.includes(verb));
}

function describe(
  definition: ResourceDefinition,
  operation: Operation,
  schemas: PathSchemas,
  suffix: string,
): JsonObject {
  const { group, version, kind } = definition;
  const { verb, method, query, codes, response } = operation;
  const content = contentOf(
    [...RESPONSE_MEDIA, ...(verb === 'list' ? [WATCH_MEDIA] : [])],
    schemas[response],
  );
  const action = { create: 'post', update: 'put' }[verb as string] ?? verb;
  return {
    operationId: idOf(definition, operation, suffix),
    ...(query.length === 0 ? {} : { parameters: query.map(queryParameter) }),
    ...(method === 'get' ? {} : { requestBody: requestBody(definition, operation, schemas, suffix) }),
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
  { verb, idPrefix }: Operation,
  suffix: string,
): string {
  const groupWords = group === '' ? ['core'] : group.replace(/\.k8s\.io$/, '').split('.');
  const words = [...groupWords, version].map(capitalized);
  const collection = verb === 'deletecollection' ? 'Collection' : '';
  const where = isNamespaced && suffix !== 'ForAllNamespaces' ? 'Namespaced' : '';
  return `${idPrefix}${words.join('')}${collection}${where}${kind}${suffix}`;
}

export function capitalized(word: string): string {
  return `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;
}

function pathParameter(name: string): JsonObject {
  return { name, in: 'path', required: true, schema: { type: 'string', uniqueItems: true } };
}

function queryParameter(name: string): JsonObject {
  return { name, in: 'query', schema: { type: QUERY_TYPES[name] ?? 'string', uniqueItems: true } };
}

function requestBody(
  { patchKinds }: ResourceDefinition,
  { verb, method }: Operation,
  { object, deleteOptions, requests }: PathSchemas,
  suffix: string,
): JsonObject {
  if (method === 'delete') return { content: contentOf(['*/*'], deleteOptions) };
  if (verb !== 'patch') return { content: contentOf(['*/*'], requests[suffix] ?? object), required: true };
  const media = patchKinds.map((kind): [string, JsonObject] => [
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
