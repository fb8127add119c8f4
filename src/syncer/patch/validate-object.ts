/** Checks that an API server can accept a patched object, by its rules (`kube/field-rules.ts`), and that no patch sets what only the host or the
 * translation decides. Only violations by patches are reported; those that the object had before are left to the API server. */

import { Field, isEmptyValue, map, struct, type FieldRule, type Violation } from '../../kube/field-rules.ts';
import { labelKeyProblem, labelValueProblem } from '../../kube/names.ts';
import { isHeadless, SERVICE_RULES, withoutOtherTypes } from '../../kube/service-rules.ts';
import {
  isJsonObject,
  jsonEquals,
  listField,
  objectField,
  valueAt,
  type JsonObject,
  type JsonValue,
} from '../../base/json.ts';
import type { ResultProblem, ValidateOptions, ValidateResult } from './types.ts';
import { wordingOf } from './violation-wording.ts';

/** For an object of any kind. */
export const validateMetadata: ValidateResult = (before, after, options) =>
  newViolation(before, after, () => METADATA_RULES, options);

/** `rules`: of the content of one kind. */
export function validateBy(rules: RulesOf): ValidateResult {
  const all: RulesOf = (object, old) => [...METADATA_RULES, ...rules(object, old)];
  return (before, after, options) =>
    identityProblem(before, after) ?? newViolation(before, after, all, options);
}

/** As the newest version of Kubernetes judges, without a host that is asked afterwards. */
export function byNewestVersion(validate: ValidateResult): ValidateResult {
  return (before, after, options) => validate(before, after, { ...options, by: 'newest version' });
}

/** `withheld`: address fields that the configuration does not allow. */
export function validateService(
  before: JsonObject,
  after: JsonObject,
  withheld: readonly string[],
  options?: ValidateOptions,
): ResultProblem | undefined {
  const identity = identityProblem(before, after);
  if (identity !== undefined) return identity;
  if (!jsonEquals(before['status'], after['status']))
    return { path: ['status'], message: 'is kept by each cluster, so a patch may not set it' };
  const [old, { spec }] = [objectField(before, 'spec'), after];
  if (spec === before['spec'] || !isJsonObject(spec))
    return newViolation(before, after, () => SERVICE, options);
  return (
    withheldProblem(old, spec, withheld) ??
    newViolation(before, { ...after, spec: withoutAllocated(old, spec) }, () => SERVICE, options)
  );
}

/** Allocated by the host for its copy. */
const ALLOCATED = ['clusterIP', 'clusterIPs', 'healthCheckNodePort'];
const IS_ALLOCATED = 'is allocated by the host, so a patch may not set it';

/** What the translation or the host decides, and no patch. */
function withheldProblem(
  old: JsonObject,
  spec: JsonObject,
  withheld: readonly string[],
): ResultProblem | undefined {
  const isSet = (field: string): boolean =>
    !isEmptyValue(spec[field]) && !jsonEquals(spec[field], old[field]);
  const at = (path: readonly (string | number)[], message: string): ResultProblem => ({
    path: ['spec', ...path],
    message,
  });
  if (isSet('selector')) return at(['selector'], 'is never copied: a selector would match Pods of the host');
  const address = withheld.find(isSet);
  if (address !== undefined) {
    const why = `takes traffic of the host, so it is copied only if endpointSyncer.services.allow names ${address}`;
    return at([address], why);
  }
  if (isHeadless(old) !== isHeadless(spec))
    return at(['clusterIP'], 'a patch may not change whether a Service is headless');
  const allocated = ALLOCATED.find(isSet);
  if (allocated !== undefined) return at([allocated], IS_ALLOCATED);
  if (isSet('ipFamilies'))
    return at(['ipFamilies'], 'is that of the virtual Service, so a patch may not set it');
  const nodePorts = new Set(listField(old, 'ports').map(nodePortOf));
  const index = listField(spec, 'ports').findIndex(
    (port) => !isEmptyValue(nodePortOf(port)) && !nodePorts.has(nodePortOf(port)),
  );
  return index < 0 ? undefined : at(['ports', index, 'nodePort'], IS_ALLOCATED);
}

/** As the copy will be: without fields of another type, and with the node ports of the host. */
function withoutAllocated(old: JsonObject, spec: JsonObject): JsonObject {
  const { ports, clusterIPs: _allocated, ...others } = spec;
  const left = withoutOtherTypes({ ...others, ...(ports !== undefined && { ports }) }, old);
  if (!Array.isArray(ports)) return left;
  const unallocated = ports.map((port) => {
    if (!isJsonObject(port)) return port;
    const { nodePort: _allocated, ...rest } = port;
    return rest;
  });
  return { ...left, ports: unallocated };
}

function nodePortOf(port: JsonValue): JsonValue | undefined {
  return valueAt(port, ['nodePort']);
}

function identityProblem(before: JsonObject, after: JsonObject): ResultProblem | undefined {
  const path = IDENTITY.find((path) => !jsonEquals(valueAt(before, path), valueAt(after, path)));
  return path && { path, message: `a patch may not change ${path.join('.')}` };
}

const IDENTITY = [['apiVersion'], ['kind'], ['metadata', 'name'], ['metadata', 'namespace']];

type RulesOf = (object: JsonObject, old: JsonObject | undefined) => readonly FieldRule[];

/** The first violation of `after`, unless `before` has one like it: the same value may be at another index. */
function newViolation(
  before: JsonObject,
  after: JsonObject,
  rules: RulesOf,
  { concerns = () => true, by = 'any version' }: ValidateOptions = {},
): ResultProblem | undefined {
  const found = Field.violations(rules(after, before), after, before).filter(
    (violation) => by === 'newest version' || !isAcceptedBefore(violation),
  );
  if (found.length === 0) return undefined;
  const known = Field.violations(rules(before, after), before, after).map(identityOf);
  const first = found.find((violation) => {
    const at = known.indexOf(identityOf(violation));
    if (at >= 0) known.splice(at, 1);
    return at < 0 && concerns(violation.path);
  });
  return first && { path: first.path, message: wordingOf(first) };
}

/** By a supported version. */
function isAcceptedBefore(violation: Violation): boolean {
  return 'since' in violation;
}

function identityOf({ path, ...violation }: Violation): string {
  const steps = path.filter((step) => typeof step === 'string');
  return JSON.stringify({ ...violation, field: steps });
}

/** Kubernetes' `TotalAnnotationSizeLimitB`: the sum over all keys and values. */
const ANNOTATION_BYTES_MAX = 256 * 1024;

const ANNOTATIONS = map(
  // The prefix may have upper-case letters.
  (key) => labelKeyProblem(key.toLowerCase()),
  () => undefined,
);

function annotations(field: Field): void {
  ANNOTATIONS(field);
  const bytes = mapBytes(field.value);
  if (bytes > ANNOTATION_BYTES_MAX && bytes > mapBytes(field.old))
    field.invalid(`must have at most ${ANNOTATION_BYTES_MAX} bytes in all`, bytes);
}

function mapBytes(value: JsonValue | undefined): number {
  if (!isJsonObject(value)) return 0;
  return Object.entries(value).reduce(
    (sum, [key, entry]) =>
      sum + Buffer.byteLength(key) + (typeof entry === 'string' ? Buffer.byteLength(entry) : 0),
    0,
  );
}

/** No patch changes other metadata. */
const METADATA_RULES: readonly FieldRule[] = [
  ['metadata', struct(['labels', map(labelKeyProblem, labelValueProblem)], ['annotations', annotations])],
];

const SERVICE = [...METADATA_RULES, ...SERVICE_RULES];
