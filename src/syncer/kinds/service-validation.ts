/** Checks that an API server accepts a patched Service, and that no patch gives the copy what the translation withholds. */

import { isJsonObject, jsonEquals, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import { isHeadless, SERVICE_RULES, withoutOtherTypes } from '../../kube/service-rules.ts';
import type { ResultProblem } from '../patch/pipeline.ts';
import { identityProblem, METADATA_RULES, newViolation } from '../patch/validate-object.ts';
import { isEmptyValue } from '../../kube/field-rules.ts';

/** Allocated by the host for its copy. */
const ALLOCATED = ['clusterIP', 'clusterIPs', 'healthCheckNodePort'];
const IS_ALLOCATED = 'is allocated by the host, so a patch may not set it';
const RULES = [...METADATA_RULES, ...SERVICE_RULES];

/** The first problem of `after` that `before` did not have. `withheld`: address fields that the configuration does not allow. */
export function validateService(
  before: JsonObject,
  after: JsonObject,
  withheld: readonly string[],
): ResultProblem | undefined {
  const identity = identityProblem(before, after);
  if (identity !== undefined) return identity;
  if (!jsonEquals(before['status'], after['status']))
    return { path: ['status'], message: 'is kept by each cluster, so a patch may not set it' };
  const [old, spec] = [before['spec'], after['spec']];
  if (spec === old || !isJsonObject(spec)) {
    return newViolation(before, after, () => RULES);
  }
  const oldSpec = isJsonObject(old) ? old : {};
  return (
    withheldProblem(oldSpec, spec, withheld) ??
    newViolation(before, { ...after, spec: withoutAllocated(oldSpec, spec) }, () => RULES)
  );
}

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
  const nodePorts = new Set(portsOf(old).map(nodePortOf));
  const index = portsOf(spec).findIndex(
    (port) => !isEmptyValue(nodePortOf(port)) && !nodePorts.has(nodePortOf(port)),
  );
  return index < 0 ? undefined : at(['ports', index, 'nodePort'], IS_ALLOCATED);
}

/** As the copy will be: without fields of another type, and with the node ports of the host. */
function withoutAllocated(old: JsonObject, spec: JsonObject): JsonObject {
  const { ports } = spec;
  const left = withoutOtherTypes(spec, old);
  if (!Array.isArray(ports)) return left;
  const unallocated = ports.map((port) => {
    if (!isJsonObject(port)) return port;
    const { nodePort: _allocated, ...rest } = port;
    return rest;
  });
  return { ...left, ports: unallocated };
}

function portsOf({ ports }: JsonObject): readonly JsonValue[] {
  return Array.isArray(ports) ? ports : [];
}

function nodePortOf(port: JsonValue): JsonValue | undefined {
  return valueAt(port, ['nodePort']);
}
