/** Both clusters in memory, and what the engine of the daemon makes of them until it is at rest. */

import {
  ENDPOINTS,
  objectKey,
  SECRETS,
  SERVICES,
  type KubeObject,
  type Resource,
} from '../../src/kube/object.ts';
import { qualifiedPlural } from '../../src/kube/memory-cluster.ts';
import type { ClusterName } from '../../src/kube/types.ts';
import { rehearse, type Rehearsal, type RehearsalInput } from '../../src/syncer/rehearsal/rehearsal.ts';
import { configOf } from '../cli/live/memory-clusters.ts';

const RESOURCES: readonly Resource[] = [ENDPOINTS, SERVICES, SECRETS];

/** Objects by their kind. */
export type Objects = Readonly<Partial<Record<'Endpoints' | 'Service' | 'Secret', readonly KubeObject[]>>>;
export type Clusters = Readonly<Partial<Record<ClusterName, Objects>>>;

const SYNC_OF_ENDPOINTS = `
endpointSyncer: {name: vc, host: {namespace: host}}
sync: {toHost: {endpointSlices: {enabled: false}}}
`;

/** References of the annotation `secret`, in both directions. */
export const WITH_REFERENCES = `
endpointSyncer: {name: vc, host: {namespace: host}}
sync:
  toHost:
    secrets: {enabled: true}
    endpointSlices: {enabled: false}
    endpoints: {patches: [{path: metadata.annotations.secret, reference: {apiVersion: v1, kind: Secret}}]}
`;

export function rehearsed(
  clusters: Clusters,
  input: Partial<RehearsalInput> = {},
  config = SYNC_OF_ENDPOINTS,
): Promise<Rehearsal> {
  const of = (cluster: ClusterName) =>
    RESOURCES.map((resource) => ({
      resource,
      objects: clusters[cluster]?.[resource.kind as keyof Objects] ?? [],
    }));
  const resolveNamespaced = async (apiVersion: string, kind: string): Promise<Resource> => {
    if (apiVersion !== 'v1' || kind !== 'Secret') throw new Error(`${apiVersion} ${kind} is not served`);
    return SECRETS;
  };
  const discovery = { resolve: resolveNamespaced, resolveNamespaced };
  return rehearse({
    config: configOf(config),
    clusters: { virtual: of('virtual'), host: of('host') },
    discoveries: { virtual: discovery, host: discovery },
    owner: undefined,
    createSandbox: async () => Promise.reject(new Error('no patch needs it')),
    nowMs: Date.parse('2026-01-01T00:00:00Z'),
    ...input,
  });
}

/** The clusters as they are then. */
export function clustersAfter({ clusters }: Rehearsal): Required<Clusters> {
  const of = (cluster: ClusterName): Objects =>
    Object.fromEntries(
      RESOURCES.map((resource) => [resource.kind, clusters[cluster].list(qualifiedPlural(resource))]),
    );
  return { virtual: of('virtual'), host: of('host') };
}

/** `cluster key: reason` of every change. */
export function changesOf({ changes }: Rehearsal): string[] {
  return changes.map(({ cluster, before, after, reason }) => {
    const object = after ?? before;
    const how = before === undefined ? 'created' : after === undefined ? 'deleted' : 'updated';
    return `${cluster} ${object === undefined ? '' : objectKey(object)} ${how}: ${reason}`;
  });
}

export function object(metadata: Partial<KubeObject['metadata']> = {}, rest: object = {}): KubeObject {
  return {
    metadata: { name: 'web', namespace: 'shop', uid: 'uid-1', resourceVersion: '1', ...metadata },
    ...rest,
  };
}

/** With other annotations; undefined removes one. The version is later than any other. */
export function annotated(
  { metadata, ...rest }: KubeObject,
  changes: Readonly<Record<string, string | undefined>>,
): KubeObject {
  const annotations = Object.fromEntries(
    Object.entries({ ...metadata.annotations, ...changes }).flatMap(([key, value]) =>
      value === undefined ? [] : [[key, value]],
    ),
  );
  return { ...rest, metadata: { ...metadata, annotations, resourceVersion: '9000' } };
}
