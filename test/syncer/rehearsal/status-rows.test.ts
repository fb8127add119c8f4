/** The rows of `status`: which objects, what each is on the host, and when either side changed last. */

import { describe, expect, test } from 'vitest';
import { commandParts } from '../../../src/cli/live/command-parts.ts';
import { rehearseSnapshot } from '../../../src/syncer/rehearsal/snapshot.ts';
import { rowsOf, type StatusReports, type StatusRow } from '../../../src/syncer/rehearsal/status-rows.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { configOf, snapshotOf, type MemoryClusters } from '../../cli/live/memory-clusters.ts';
import { ALL_KINDS, configWith, event, NOW, object, service, sliceOf, web } from './status-fixtures.ts';

async function rows(
  clusters: MemoryClusters,
  { config = configWith(), ...reports }: { config?: string } & Partial<StatusReports> = {},
): Promise<StatusRow[]> {
  const plan = await rehearseSnapshot(snapshotOf(clusters, configOf(config)), commandParts());
  const nothing = { events: new Map(), nowMs: NOW, lease: undefined, runsOther: false, fleetNote: undefined };
  return rowsOf(plan, { ...nothing, ...reports });
}

describe('the rows', () => {
  test('are synced objects of every kind, then references, each with its name on the host', async () => {
    const secret = object('Secret', 'shop/password', { type: 'Opaque' });
    const virtual = [secret, web({ secret: 'password' }), service(), sliceOf('web')];
    const found = await rows({ virtual, host: [] }, { config: ALL_KINDS });
    expect(
      found.map(({ kind, group, virtual, host }) => [kind, group, virtual.name, host.namespace]),
    ).toEqual([
      ['Endpoints', '', 'web', 'host'],
      ['EndpointSlice', 'discovery.k8s.io', 'web-1', 'host'],
      ['Service', '', 'web', 'host'],
      ['Secret', '', 'password', 'host'],
    ]);
    expect(found.every(({ host }) => host.name !== '')).toBe(true);
  });

  test('of an object whose namespace is not mapped have no host name', async () => {
    const config = configWith({
      sync: '    namespaces: {enabled: true, mappingsOnly: true, mappings: {byName: {other: there}}}',
    });
    expect(await rows({ virtual: [web()], host: [] }, { config })).toMatchObject([
      { virtual: { namespace: 'shop', name: 'web' }, host: { namespace: '', name: '' } },
    ]);
  });

  test('show an Event to the object that it is about, by its uid', async () => {
    const [one, other] = [object('Endpoints', 'shop/one'), object('Endpoints', 'shop/other')];
    const events = new Map([[other.metadata.uid ?? '', [event('Contested', 'another client wins.')]]]);
    const found = await rows({ virtual: [one, other], host: [] }, { events });
    expect(found.map(({ virtual, status }) => [virtual.name, status.reason])).toEqual([
      ['one', 'no host copy'],
      ['other', 'Contested'],
    ]);
  });
});

describe('the last change', () => {
  const managed = (...managers: [manager: string, second: number][]): object => ({
    creationTimestamp: at(1),
    managedFields: managers.map(([manager, second]) => ({ manager, operation: 'Update', time: at(second) })),
  });
  const at = (second: number): string => `2026-01-01T00:00:0${second}Z`;
  const copy = (metadata: object): KubeObject => object('Endpoints', 'host/web-x-shop-x-vc', {}, metadata);

  test.each<[string, virtual: object, host: object | undefined, lastChange: string]>([
    ['is that of this program to the host', managed(['kubectl', 9]), managed(['endpoint-syncer', 3]), at(3)],
    [
      'is the later one of this program to either side',
      managed(['endpoint-syncer', 5]),
      managed(['endpoint-syncer', 3]),
      at(5),
    ],
    ['is not of another client of the host', managed(['kubectl', 4]), managed(['kubectl', 8]), at(4)],
    [
      'is the latest to the virtual object, where this program wrote nothing',
      managed(['a', 2], ['b', 7], ['c', 3]),
      undefined,
      at(7),
    ],
    ['is the creation, where no manager is recorded', managed(), undefined, at(1)],
    ['is not known', {}, undefined, ''],
  ])('%s', async (_, virtual, host, lastChange) => {
    const found = await rows({
      virtual: [object('Endpoints', 'shop/web', {}, virtual)],
      host: host === undefined ? [] : [copy(host)],
    });
    expect(found.map((row) => row.lastChange)).toEqual([lastChange]);
  });
});
