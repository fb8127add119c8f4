/** What kube-apiserver 1.37 takes in the kinds that are synced, and an older supported one refuses or leaves out: by the validation and the feature
 * gates of 1.32.13, 1.34.4, 1.36.3 and 1.37.2 (`pkg/apis/{core,discovery}/validation`, `pkg/features/kube_features.go`). What only newer ones refuse
 * has its version in the rule (`Problem.since`). */

import {
  isJsonObject,
  listField,
  objectField,
  ownValue,
  type JsonObject,
  type JsonValue,
} from '../base/json.ts';
import { asJson, ENDPOINT_SLICES, isOfKind, SERVICES, type KubeObject } from './object.ts';
import { LOAD_BALANCER, typeOf } from './service-rules.ts';

export interface OlderDifference {
  /** As in `spec.ports[0].port`. */
  readonly path: string;
  /** What versions before which one do: follows the path. */
  readonly message: string;
}

const KUBELET_PORT = 10_250;
/** The gate PreferSameTrafficDistribution: on by default since 1.34. */
const SAME_DISTRIBUTIONS: readonly JsonValue[] = ['PreferSameZone', 'PreferSameNode'];

export function differencesOfOlder(object: KubeObject): readonly OlderDifference[] {
  if (isOfKind(object, SERVICES)) return ofService(object);
  return isOfKind(object, ENDPOINT_SLICES) ? ofSlice(asJson(object)) : [];
}

function ofService({ metadata, ...object }: KubeObject): readonly OlderDifference[] {
  const spec = objectField(object as JsonObject, 'spec'); // JSON without its metadata
  const distribution = ownValue(spec, 'trafficDistribution') ?? null;
  const found: OlderDifference[] = [];
  // The gate RelaxedServiceNameValidation: on by default since 1.36.
  if (/^\d/u.test(metadata.name))
    found.push(
      refusedBefore('1.36', 'metadata.name', `a name that begins with a digit, as ${metadata.name} does`),
    );
  if (typeOf(spec) === LOAD_BALANCER)
    for (const [index, port] of listField(spec, 'ports').entries())
      if (isJsonObject(port) && port['port'] === KUBELET_PORT)
        found.push(
          refusedBefore(
            '1.33',
            `spec.ports[${index}].port`,
            `the kubelet's port ${KUBELET_PORT} in a load balancer`,
          ),
        );
  if (SAME_DISTRIBUTIONS.includes(distribution))
    found.push(refusedBefore('1.34', 'spec.trafficDistribution', JSON.stringify(distribution)));
  return found;
}

function ofSlice(slice: JsonObject): readonly OlderDifference[] {
  return listField(slice, 'endpoints').flatMap((endpoint, index) => {
    const hints = isJsonObject(endpoint) ? objectField(endpoint, 'hints') : {};
    return listField(hints, 'forNodes').length === 0
      ? []
      : [{ path: `endpoints[${index}].hints.forNodes`, message: 'Kubernetes before 1.34 leaves it out' }];
  });
}

function refusedBefore(version: string, path: string, what: string): OlderDifference {
  return { path, message: `Kubernetes before ${version} refuses ${what}` };
}
