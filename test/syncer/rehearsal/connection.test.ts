/** What live commands say when an API server refuses a request: which cluster, why, and what to do. */

import { expect, test } from 'vitest';
import { listAll, reaching, type Connection } from '../../../src/syncer/rehearsal/connection.ts';
import { commandParts } from '../../../src/cli/live/command-parts.ts';
import { takeSnapshot } from '../../../src/syncer/rehearsal/snapshot.ts';
import { ENDPOINTS, NAMESPACES, type Resource } from '../../../src/kube/object.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import { TransportError, type ClusterClient } from '../../../src/kube/types.ts';
import { configOf } from '../../cli/live/memory-clusters.ts';

function status(code: number, message: string): StatusError {
  const common = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' } as const;
  return new StatusError({ ...common, reason: 'Any', code, message });
}

test.each([
  [status(401, 'Unauthorized'), 'the host cluster: Unauthorized; renew the token or certificate there'],
  [
    status(403, 'endpoints is forbidden'),
    'the host cluster: endpoints is forbidden; grant what "endpoint-syncer rbac" prints to the user of the kubeconfig',
  ],
  [status(500, 'broken'), 'the host cluster: broken'],
  [new TransportError('no response'), 'cannot connect to the host cluster: no response'],
])('%s', async (error, message) => {
  await expect(reaching('host', () => Promise.reject(error))).rejects.toThrow(
    expect.objectContaining({ message }),
  );
});

test.each(['virtual', 'host'] as const)(
  'the %s cluster is named that does not say which one it is',
  async (failing) => {
    const client = (cluster: 'virtual' | 'host') => ({
      cluster,
      list: async () => ({ items: [], continueToken: '', resourceVersion: '1' }),
      get: async ({ plural }: Resource) => {
        if (cluster === failing && ['leases', NAMESPACES.plural].includes(plural))
          throw status(500, 'broken');
        return { metadata: { name: 'any', uid: 'any' } };
      },
    });
    const clusters = {
      virtual: client('virtual'),
      host: client('host'),
      resolveOwner: async () => undefined,
    };
    const config = configOf('endpointSyncer: {name: vc, host: {namespace: host}}');
    const connection = { config, clusters } as unknown as Connection; // nothing else is used
    await expect(takeSnapshot(connection, commandParts())).rejects.toThrow(`the ${failing} cluster: broken`);
  },
);

test('more objects are listed than a call takes as arguments', async () => {
  const items = Array.from({ length: 200_000 }, (_, at) => ({ metadata: { name: `x${at}` } }));
  const client = { cluster: 'host', list: async () => ({ items, continueToken: '', resourceVersion: '1' }) };
  const found = await listAll(client as unknown as ClusterClient, ENDPOINTS, ['']); // nothing else is used
  expect(found.length).toBe(200_000);
  expect(found.at(-1)).toEqual({ apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'x199999' } });
});
