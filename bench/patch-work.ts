/** The workload of the patch benchmark: one expression on every hostname of an Endpoints object. All implementations run it. */

import type { JsonObject } from '../src/base/json.ts';

export const VCLUSTER_NAME = 'my-vcluster';
export const PATH = 'subsets[*].addresses[*].hostname';
export const EXPRESSION = 'context.vcluster.name + "-" + value';

/** Different objects, so that caching the last one does not help; limited by memory. */
export function poolOf(matches: number): JsonObject[] {
  return Array.from({ length: poolSize(matches) }, (_, id) => endpoints(matches, id));
}

export function poolSize(matches: number): number {
  return Math.max(1, Math.min(512, Math.floor(20_000 / matches)));
}

/** As parsed from a response of an API server. `peers/goja` builds the same objects. */
function endpoints(matches: number, id: number): JsonObject {
  const addresses = Array.from({ length: matches }, (_, index) => ({
    ip: `10.${id % 250}.${Math.floor(index / 250)}.${(index % 250) + 1}`,
    hostname: `host-${id}-${index}`,
    nodeName: 'node-1',
    targetRef: { kind: 'Pod', name: `pod-${id}-${index}`, namespace: 'default' },
  }));
  const object: JsonObject = {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: {
      name: `service-${id}`,
      namespace: 'default',
      labels: { app: 'web' },
      annotations: { 'example.com/owner': 'team' },
    },
    subsets: [{ addresses, ports: [{ name: 'http', port: 80, protocol: 'TCP' }] }],
  };
  return JSON.parse(JSON.stringify(object)) as JsonObject;
}

/** Throws if the first object of a pool was not patched correctly. */
export function checkPatched(object: JsonObject, matches: number): void {
  const [subset] = object['subsets'] as { addresses: { hostname: string }[] }[];
  const last = subset?.addresses[matches - 1]?.hostname;
  const wanted = `${VCLUSTER_NAME}-host-0-${matches - 1}`;
  if (last !== wanted) throw new Error(`patched to ${last}, want ${wanted}`);
}

export interface Rate {
  readonly objectsPerSecond: number;
  readonly matchesPerSecond: number;
}

export function rateOf(objects: number, elapsedMs: number, matches: number): Rate {
  const objectsPerSecond = (objects / elapsedMs) * 1000;
  return { objectsPerSecond, matchesPerSecond: objectsPerSecond * matches };
}
