/** Which daemon is in charge of a virtual cluster by the Leases, as the commands read it. */

import { beforeEach, describe, expect, test } from 'vitest';
import { readDaemon } from '../../../src/fleet/hosted/daemon-state.ts';
import { TerminalError } from '../../../src/base/errors.ts';
import { configurationHash } from '../../../src/syncer/config/config.ts';
import { MemoryClient, MemoryCluster } from '../../../src/kube/memory-cluster.ts';
import { LEASES } from '../../../src/kube/lease.ts';
import { LimitedClient } from '../../cli/live/limited-client.ts';
import { configOf } from '../../cli/live/memory-clusters.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const CONFIG = configOf('endpointSyncer: {name: vc, host: {namespace: ns}, leaderElection: {enabled: true}}');
const ALONE = configOf('endpointSyncer: {name: vc, host: {namespace: ns}, leaderElection: {enabled: false}}');

let cluster: MemoryCluster;
let client: MemoryClient;

beforeEach(() => {
  cluster = new MemoryCluster({ name: 'host', now: () => NOW });
  client = new MemoryClient(cluster, { manager: 'test' });
});

interface LeaseFields {
  readonly holder?: string;
  /** Since it was renewed; it lasts 15 seconds. */
  readonly ageSeconds?: number;
  readonly annotations?: Record<string, string>;
}

async function lease(
  name: string,
  { holder = 'pod-1', ageSeconds = 1, annotations = {} }: LeaseFields,
  namespace = 'ns',
): Promise<void> {
  const renewTime = new Date(NOW - ageSeconds * 1000).toISOString();
  const spec = { holderIdentity: holder, leaseDurationSeconds: 15, renewTime };
  await client.create(LEASES, { metadata: { name, namespace, annotations }, spec });
}

const OWN = 'endpoint-syncer-vc';
const RUNS = { 'endpoint-syncer/configuration': configurationHash(CONFIG) };
const RUNS_OTHER = { 'endpoint-syncer/configuration': 'another' };

describe('the daemon of a sidecar', () => {
  test.each<[string, LeaseFields, holder: string, runsOther: boolean]>([
    ['holds its Lease', { annotations: RUNS }, 'pod-1', false],
    ['runs another configuration', { annotations: RUNS_OTHER }, 'pod-1', true],
    ['has not said which configuration it runs', {}, 'pod-1', false],
    ['is in the last second of its Lease', { ageSeconds: 14 }, 'pod-1', false],
    ['has ended: its Lease expired', { ageSeconds: 15, annotations: RUNS_OTHER }, '', false],
    ['has ended: it released its Lease', { holder: '', annotations: RUNS_OTHER }, '', false],
  ])('%s', async (_, fields, holder, runsOther) => {
    await lease(OWN, fields);
    const daemon = await readDaemon(CONFIG, client, NOW);
    expect(daemon).toMatchObject({ lease: { key: `ns/${OWN}`, holder }, runsOther, fleetNote: undefined });
  });

  test('has not started: there is no Lease', async () => {
    const daemon = await readDaemon(CONFIG, client, NOW);
    expect(daemon).toMatchObject({ lease: { key: `ns/${OWN}`, holder: '' }, runsOther: false });
    expect(daemon.object).toBeUndefined();
  });

  test('without leader election: its Lease has only its configuration, whose time does not matter', async () => {
    await lease(OWN, { holder: '', ageSeconds: 9999, annotations: RUNS_OTHER });
    expect(await readDaemon(ALONE, client, NOW)).toMatchObject({ lease: undefined, runsOther: true });
  });

  test('whose Lease may not be read is an error, except without leader election', async () => {
    const limited = new LimitedClient(cluster, 'leases');
    // A TerminalError, with which `status --watch` goes on.
    const error = new TerminalError(
      'the host cluster: leases is forbidden; grant what "endpoint-syncer rbac" prints to the user of the kubeconfig',
    );
    await expect(readDaemon(CONFIG, limited, NOW)).rejects.toThrow(error);
    expect(await readDaemon(ALONE, limited, NOW)).toMatchObject({ lease: undefined, runsOther: false });
  });
});

describe('the replica of a fleet', () => {
  const replica = 'endpoint-syncer-replica-1';
  const note = (text: string): Record<string, string> => ({
    'endpoint-syncer/fleet': 'fleet',
    'endpoint-syncer/state': `${replica} ${text}`,
  });
  const FAILED = 'failed: no route; the fleet tries again, after a minute at most';

  test.each<[string, LeaseFields | undefined, holder: string]>([
    ['holds the Leases of its members, which it hardly ever renews', { holder: replica }, replica],
    ['has ended: its own Lease has expired', { holder: replica, ageSeconds: 15 }, ''],
    ['has ended: its own Lease is gone', undefined, ''],
  ])('%s', async (_, own, holder) => {
    await lease(OWN, { holder: replica, annotations: { 'endpoint-syncer/fleet': 'fleet' } });
    if (own !== undefined) await lease(replica, own, 'fleet');
    expect(await readDaemon(CONFIG, client, NOW)).toMatchObject({ lease: { holder } });
  });

  test.each<[string, member: LeaseFields, own: LeaseFields | undefined, fleetNote: string | undefined]>([
    ['is limited', { holder: replica, annotations: note('limited: 9 objects') }, {}, 'limited: 9 objects'],
    ['has failed, and holds no Lease', { holder: '', annotations: note('failed: no route') }, {}, FAILED],
    ['has failed, and another one holds the Lease', { annotations: note('failed: no route') }, {}, undefined],
    [
      'has failed, and the Lease of another one has expired',
      { ageSeconds: 15, annotations: note('failed: no route') },
      {},
      FAILED,
    ],
    ['has failed and ended', { holder: '', annotations: note('failed: no route') }, undefined, undefined],
    [
      'has removed its note',
      { holder: replica, annotations: { 'endpoint-syncer/state': '' } },
      {},
      undefined,
    ],
  ])('%s', async (_, member, own, fleetNote) => {
    await lease(OWN, member);
    if (own !== undefined) await lease(replica, { holder: replica, ...own }, 'fleet');
    expect((await readDaemon(CONFIG, client, NOW)).fleetNote).toBe(fleetNote);
  });

  test('may hold its Lease where that may not be read', async () => {
    await lease(OWN, { holder: replica, annotations: { 'endpoint-syncer/fleet': 'fleet' } });
    const limited = new LimitedClient(cluster, 'fleet/leases');
    expect(await readDaemon(CONFIG, limited, NOW)).toMatchObject({ lease: { holder: replica } });
  });
});
