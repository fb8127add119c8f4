/** Why an API server would not take an object of a file: the rules of the embedded cluster's kinds, with unknown fields refused, as
 * `kubectl create --validate=strict` has them. */

import { isJsonObject, ownValue, textAt, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import {
  errorAtKey,
  errorAtValue,
  formatPath,
  type ConfigPath,
  type Finding,
} from '../../config-file/finding.ts';
import { didYouMean, nearestWord } from '../../base/suggest.ts';
import { allowEverything } from '../../apiserver/request/request-info.ts';
import { validateMetadata, withoutDuplicateOwners } from '../../apiserver/metadata.ts';
import type { DefinitionTable, ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import { inspectObject, type Inspected, type WrongValue } from '../../apiserver/schema/decode.ts';
import {
  META_TYPES,
  TypeTable,
  type ObjectSchema,
  type Schema,
} from '../../apiserver/schema/object-schema.ts';
import type { FieldError } from '../../apiserver/status.ts';
import { builtInKinds } from '../../embedded-cluster/kinds/built-in-kinds.ts';
import { labelProblem, pathSegmentProblem, subdomainProblem } from '../../kube/names.ts';
import { apiVersionOf, groupOf } from '../../kube/object.ts';

export interface ObjectRules {
  /** An object with nothing but metadata stands for any object of its name. */
  readonly nameIsEnough?: boolean;
  /** Default: true. A Service that is there for its selector alone may go without. */
  readonly needsPorts?: boolean;
}

/** Empty: an API server takes the object. The namespace may be absent. Of kinds that are not built in, only the metadata is checked. */
export function objectProblems(
  object: JsonObject,
  { nameIsEnough = false, needsPorts = true }: ObjectRules = {},
): Finding[] {
  const wrongIdentity = identityProblem(object);
  if (wrongIdentity !== undefined) return [wrongIdentity];
  const definition = definitionOf(object);
  const isOther = definition === undefined;
  const schema = definition?.schema ?? anyKind();
  const inspected = inspectObject(schema, isOther ? { metadata: object['metadata'] ?? null } : object);
  const found = [
    ...inspected.unknownFields.map((one) => unknownField(one, schema)),
    ...inspected.wrongValues.map(wrongValue),
  ];
  // A kube-apiserver validates only what it could decode.
  if (inspected.wrongValues.length > 0) return found;
  const isName = nameIsEnough && Object.keys(object).every((key) => IDENTITY.includes(key));
  const errors = [
    ...metadataErrors(inspected.value, definition),
    ...(isOther || isName ? [] : contentErrors(inspected.value, definition)),
  ]
    .filter(({ field }) => needsPorts || field !== 'spec.ports' || isPresent(object, field))
    .map(({ field, key, message }) => errorAtValue(pathOf(field, key), message));
  // Several rules may reject one value.
  const firstOfPath = new Map<string, Finding>();
  for (const error of errors)
    firstOfPath.set(formatPath(error.path), firstOfPath.get(formatPath(error.path)) ?? error);
  return [...found, ...firstOfPath.values()];
}

const IDENTITY = ['apiVersion', 'kind', 'metadata'];

function identityProblem(object: JsonObject): Finding | undefined {
  const kind = ownValue(object, 'kind');
  if (typeof kind !== 'string' || kind === '') return errorAtKey(['kind'], 'an object has no kind');
  const [name, apiVersion] = [textAt(object, 'metadata', 'name'), textAt(object, 'apiVersion')];
  if (name === '') return errorAtKey(['metadata', 'name'], `an object of kind ${kind} has no metadata.name`);
  if (apiVersion === '')
    return errorAtKey(['apiVersion'], `${kind} ${JSON.stringify(name)} has no apiVersion`);
  const notServed = unservedKind(apiVersion, kind);
  if (notServed !== undefined) return notServed;
  // Roles and their like have names such as system:node.
  const isRole = apiVersion.startsWith('rbac.authorization.k8s.io/');
  const problem = isRole ? pathSegmentProblem(name) : subdomainProblem(name);
  if (problem !== undefined)
    return errorAtValue(
      ['metadata', 'name'],
      `${kind} ${JSON.stringify(name)} has a name that no object can have: ${problem}`,
    );
  const namespace = valueAt(object, ['metadata', 'namespace']) ?? '';
  if (typeof namespace === 'string' && (namespace === '' || labelProblem(namespace) === undefined))
    return undefined;
  return errorAtValue(
    ['metadata', 'namespace'],
    `${kind} "${name}" is in namespace ${JSON.stringify(namespace)}, which no cluster can have`,
  );
}

// The kinds.

let known: DefinitionTable | undefined;
let other: ObjectSchema | undefined;

function builtIn(): readonly ResourceDefinition[] {
  known ??= builtInKinds(allowEverything);
  return known.all;
}

function definitionOf(object: JsonObject): ResourceDefinition | undefined {
  const [apiVersion, kind] = [textAt(object, 'apiVersion'), textAt(object, 'kind')];
  return builtIn().find((one) => one.kind === kind && apiVersionOf(one) === apiVersion);
}

/** Of kinds that are not built in. */
function anyKind(): ObjectSchema {
  other ??= new TypeTable([META_TYPES, 'Object = metadata:1 meta.ObjectMeta']).get('Object');
  return other;
}

/** All of `v1`. The core group gets no new kinds. */
const CORE_KINDS = `
  Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod PodTemplate
  ReplicationController ResourceQuota Secret Service ServiceAccount
`
  .trim()
  .split(/\s+/u);

/** Only of groups in which all kinds are Kubernetes' own: a group of custom resources has a dot. */
function unservedKind(apiVersion: string, kind: string): Finding | undefined {
  if (apiVersion === 'v1' && CORE_KINDS.includes(kind)) return undefined;
  const group = groupOf(apiVersion);
  const isServed = builtIn().some((one) => one.kind === kind && apiVersionOf(one) === apiVersion);
  const isOwn = !group.includes('.') || builtIn().some((one) => one.group === group);
  if (isServed || !isOwn) return undefined;
  const usual = builtIn().find((one) => one.kind === kind);
  if (usual !== undefined) {
    const message = `no API server serves ${kind} as ${apiVersion}; write ${apiVersionOf(usual)}`;
    return errorAtValue(['apiVersion'], message);
  }
  if (group !== '') return undefined;
  return apiVersion === 'v1'
    ? errorAtValue(['kind'], `v1 has no kind ${JSON.stringify(kind)}${didYouMean(kind, CORE_KINDS)}`)
    : errorAtValue(['apiVersion'], `no API server serves ${apiVersion}`);
}

// What is wrong with the fields.

function metadataErrors(object: JsonObject, definition: ResourceDefinition | undefined): FieldError[] {
  const { metadata = null } = object;
  const rules = definition ?? { checkName: pathSegmentProblem, needsQualifiedFinalizers: false };
  // A namespace that is not set is the one of the command.
  if (!isJsonObject(metadata)) return [];
  return validateMetadata(withoutDuplicateOwners(metadata), { ...rules, isNamespaced: false });
}

/** `decoded` is a copy, which is changed. */
function contentErrors(decoded: JsonObject, definition: ResourceDefinition): FieldError[] {
  definition.applyDefaults(decoded);
  definition.prepare(decoded, undefined, undefined);
  return definition.validate(decoded, undefined);
}

function isPresent(object: JsonObject, field: string): boolean {
  return valueAt(object, pathOf(field, undefined)) !== undefined;
}

/** `subsets[0].ports[1].name`, and the entry of a map. */
function pathOf(field: string, key: string | undefined): ConfigPath {
  const steps = field.split(/[.[\]]+/u).filter((step) => step !== '');
  const path = steps.map((step) => (/^\d+$/u.test(step) ? Number(step) : step));
  return key === undefined ? path : [...path, key];
}

function unknownField({ path, fields }: Inspected['unknownFields'][number], schema: ObjectSchema): Finding {
  const name = String(path.at(-1));
  const near = nearestWord(name, fields);
  const meant = near === undefined ? pathOfField(name, schema) : formatPath([...path.slice(0, -1), near]);
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
  return errorAtKey(path, `unknown field ${JSON.stringify(name)}${hint}`);
}

/** Where the kind has a field of this name, the nearest to the root: `subsets[*].ports`. */
function pathOfField(name: string, schema: ObjectSchema): string | undefined {
  const seen = new Set<string>();
  let level = [{ schema, above: '' }];
  while (level.length > 0) {
    const next: typeof level = [];
    for (const { schema: one, above } of level) {
      if (seen.has(one.name)) continue;
      seen.add(one.name);
      if (one.fields.has(name)) return `${above}${name}`;
      for (const field of one.fields.values()) {
        const { inner, steps } = elementOf(field.schema);
        // A server sets it.
        if (inner !== undefined && field.name !== 'managedFields')
          next.push({ schema: inner, above: `${above}${field.name}${steps}.` });
      }
    }
    level = next;
  }
  return undefined;
}

function elementOf(schema: Schema): { readonly inner?: ObjectSchema; readonly steps: string } {
  switch (schema.type) {
    case 'scalar':
      return { steps: '' };
    case 'object':
      return { inner: schema, steps: '' };
    case 'list':
    case 'map': {
      const { steps, ...inner } = elementOf(schema.type === 'list' ? schema.items : schema.values);
      return { ...inner, steps: `[*]${steps}` };
    }
  }
}

function wrongValue({ path, value, schema, message }: WrongValue): Finding {
  const wanted = wantedType(schema);
  if (wanted === undefined || typeof value === wanted.of) return errorAtValue(path, message);
  return errorAtValue(path, `must be ${wanted.words}, not ${shown(value)}${quotesHint(value, wanted.of)}`);
}

/** Undefined: the message about the value says it. */
function wantedType(schema: Schema): { readonly of: string; readonly words: string } | undefined {
  if (schema.type === 'list') return { of: 'list', words: 'a list' };
  if (schema.type !== 'scalar') return { of: 'mapping', words: 'a mapping' };
  switch (schema.scalar) {
    case 'bool':
      return { of: 'boolean', words: 'true or false' };
    case 'int32':
    case 'int64':
      return { of: 'number', words: 'a whole number' };
    case 'float64':
      return { of: 'number', words: 'a number' };
    case 'intOrString':
      return { of: 'number', words: 'a whole number or a string' };
    case 'string':
    case 'bytes':
    case 'time':
    case 'microtime':
      return { of: 'string', words: 'a string' };
    case 'quantity':
    case 'any':
      return undefined;
  }
}

function quotesHint(value: JsonValue, wanted: string): string {
  if (wanted === 'string' && ['number', 'boolean', 'bigint'].includes(typeof value)) return ': quote it';
  const isNumber = typeof value === 'string' && /^-?\d+$/u.test(value);
  const isBoolean = value === 'true' || value === 'false';
  const isQuoted = (wanted === 'number' && isNumber) || (wanted === 'boolean' && isBoolean);
  return isQuoted ? `: write ${String(value)} without quotes` : '';
}

function shown(value: JsonValue): string {
  if (Array.isArray(value)) return 'a list';
  if (isJsonObject(value)) return 'a mapping';
  if (value === null) return 'null';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return `the ${typeof value === 'bigint' ? 'number' : typeof value} ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`;
}
