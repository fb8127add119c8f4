/** What a rehearsal says beyond what it writes; that it writes what the daemon writes is compared in the simulation. */

import { expect, test } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import { ENDPOINTS, SERVICES } from '../../src/kube/object.ts';
import { rehearse, type RehearsalInput } from '../../src/syncer/rehearsal.ts';
import { configOf } from '../cli/live/memory-clusters.ts';

const CONFIG = configOf(`
endpointSyncer: {name: vc, host: {namespace: host}}
sync: {toHost: {endpointSlices: {enabled: false}}}
`);

function rehearsed(virtual: readonly KubeObject[], input: Partial<RehearsalInput> = {}) {
  const unserved = async (): Promise<never> => {
    throw new Error('no kind is referenced');
  };
  const discovery = { resolve: unserved, resolveNamespaced: unserved };
  return rehearse({
    config: CONFIG,
    clusters: {
      virtual: [
        { resource: ENDPOINTS, objects: virtual },
        { resource: SERVICES, objects: [] },
      ],
      host: [
        { resource: ENDPOINTS, objects: [] },
        { resource: SERVICES, objects: [] },
      ],
    },
    discoveries: { virtual: discovery, host: discovery },
    owner: undefined,
    createSandbox: async () => Promise.reject(new Error('no patch needs it')),
    nowMs: Date.parse('2026-01-01T00:00:00Z'),
    ...input,
  });
}

function endpoints(metadata: object): KubeObject {
  return { metadata: { name: 'web', namespace: 'shop', uid: 'uid-1', resourceVersion: '1', ...metadata } };
}

test('an object of the virtual cluster is copied', async () => {
  const { changes, objection } = await rehearsed([endpoints({})]);
  expect(changes.map(({ cluster, after }) => [cluster, after?.metadata.name])).toContainEqual([
    'host',
    'web-x-shop-x-vc',
  ]);
  expect(objection).toBeUndefined();
});

test('a defect of the engine is an error, not an object that seems not to be synced', async () => {
  await expect(rehearsed([endpoints({ managedFields: null })])).rejects.toThrow(
    /^the sync cannot be predicted: list-watch interrupted: SinkError: storing objects in the cache failed\n/u,
  );
});
