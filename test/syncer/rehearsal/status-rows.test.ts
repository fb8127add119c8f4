/** The rows of `status`: which objects, what each is on the host, and when either side changed last. */

import { describe, expect, test } from 'vitest';
import { commandParts } from '../../../src/cli/live/command-parts.ts';
import { rehearseSnapshot } from '../../../src/syncer/rehearsal/snapshot.ts';
import { alteredNote, contestedNote } from '../../../src/syncer/references/reference-notices.ts';
import { hostNameShort } from '../../../src/syncer/translate/names.ts';
import { rowsOf, type StatusReports, type StatusRow } from '../../../src/syncer/rehearsal/status-rows.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import {
  applied,
  configOf,
  snapshotOf,
  stored,
  type MemoryClusters,
} from '../../cli/live/memory-clusters.ts';
import {
  ALL_KINDS,
  configWith,
  event,
  NOW,
  object,
  service,
  sliceOf,
  web,
  writtenAt,
} from './status-fixtures.ts';

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

describe('an import that differs', () => {
  const secret = object('Secret', 'shop/password', { type: 'Opaque', data: { a: 'YQ==' } });
  const referrer = web({ secret: 'password' });
  const edited = (one: KubeObject): KubeObject =>
    one.kind === 'Secret'
      ? {
          ...stored({ ...one, data: {} }, one),
          metadata: { ...one.metadata, managedFields: [writtenAt(NOW - 120_000)] },
        }
      : one;
  const [seen, other] = ['password', 'other'].map((name) => ({
    kind: { virtual: { kind: 'Secret' } },
    virtual: { namespace: 'shop', name },
  })) as [Parameters<typeof contestedNote>[0], Parameters<typeof contestedNote>[0]]; // what a note is made of
  const refused = `secrets "${hostNameShort('password', 'shop', 'vc')}" is forbidden: exceeded quota`;

  test.each([
    ['has another writer', 'Contested', contestedNote(seen, 2000), 60_000, 'contested'],
    ['had another writer long ago', 'Contested', contestedNote(seen, 2000), 3_000_000, 'pending'],
    ['is changed by admission', 'Contested', alteredNote(seen, 'host', ['data.a']), 3_000_000, 'contested'],
    ['is refused by the host', 'SyncError', `Writing failed: ${refused}`, 60_000, 'failed'],
    ['was refused before the last write', 'SyncError', `Writing failed: ${refused}`, 180_000, 'pending'],
    ['is beside a contested one', 'Contested', contestedNote(other, 2000), 60_000, 'pending'],
    ['is only imported', 'ReferenceImported', 'Secret "shop/password" is imported.', 60_000, 'pending'],
  ])('and %s', async (_what, reason, note, agoMs, state) => {
    const config = configOf(configWith());
    const before = { virtual: [secret, referrer], host: [] };
    const { changes } = await rehearseSnapshot(snapshotOf(before, config), commandParts());
    const { virtual, host } = applied(before, changes);
    const told = { ...event(reason, note), lastMs: NOW - agoMs };
    const events = new Map([[referrer.metadata.uid ?? '', [told]]]);
    const found = await rows({ virtual, host: host.map(edited) }, { events });
    const row = found.find(({ kind }) => kind === 'Secret');
    expect(row?.status.state).toBe(state);
    const isTold = row?.status.sentence.includes(note.slice(1).replace(/\.$/u, ''));
    expect(isTold).toBe(state !== 'pending');
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
