/** Nothing stays in memory of histories that have ended, nor of deleted objects: every Map and Set that the daemon's modules create is counted. */

import { afterEach, expect, test } from 'vitest';
import { seededRandom } from '../support/random.ts';
import { garbageCollector } from '../support/garbage.ts';
import { PLAIN, simConfig, type Settings } from './daemon/sim-config.ts';
import { SimDaemon } from './daemon/sim-daemon.ts';
import { seededHistory } from './history/seeded-history.ts';
import { runHistory } from './sim-run.ts';
import { Faults } from './world/faults.ts';
import { HOST_NAMESPACE, hostPlaceOf } from './world/names.ts';
import type { VirtualClock } from '../../src/base/clock.ts';
import { simClock } from './world/process-clock.ts';
import { SimCluster } from './world/sim-cluster.ts';

const SETTINGS: Settings = { ...PLAIN, hasReferences: true };
const OBJECTS = 40;
const HOUR_MS = 3_600_000;

const [PlainMap, PlainSet] = [Map, Set];

afterEach(() => {
  globalThis.Map = PlainMap;
  globalThis.Set = PlainSet;
});

interface Collection {
  readonly size: number;
}

/** From now on, collections that modules of the daemon create are kept, with where that was. */
function trackCollections(): Map<string, WeakRef<Collection>[]> {
  const tracked = new PlainMap<string, WeakRef<Collection>[]>();
  const keep = (collection: Collection): void => {
    const place = /\/src\/([^\s)]*)/.exec(new Error().stack ?? '')?.[1] ?? '';
    if (/^(syncer|kube\/work-queue|base\/backoff)/.test(place))
      tracked.set(place, [...(tracked.get(place) ?? []), new WeakRef(collection)]);
  };
  globalThis.Map = class<K, V> extends PlainMap<K, V> {
    constructor(entries?: Iterable<readonly [K, V]> | null) {
      super(entries);
      keep(this);
    }
  } as MapConstructor; // the same constructor
  globalThis.Set = class<V> extends PlainSet<V> {
    constructor(values?: Iterable<V> | null) {
      super(values);
      keep(this);
    }
  } as SetConstructor; // the same constructor
  return tracked;
}

test('guards, pairs, references and queues release deleted objects', async () => {
  const clock = simClock();
  const clusters = { virtual: new SimCluster('virtual', clock), host: new SimCluster('host', clock) };
  const tracked = trackCollections();
  const daemon = new SimDaemon({
    clusters,
    clock,
    faults: new Faults(seededRandom(1)),
    random: seededRandom(2),
    isDryRun: false,
    config: () => simConfig(SETTINGS),
    wrote: () => undefined,
    trace: () => undefined,
  });
  daemon.start();
  for (let at = 0; at < OBJECTS; at++) schedule(at, clusters, clock);
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve));
    if (!clock.step(HOUR_MS)) break;
  }
  expect(clusters.host.list('endpoints')).toEqual([]);
  expect(daemon.isIdle).toBe(true);
  // What holds entries for the objects would hold some for most of them.
  await expectCollected(() =>
    [...tracked].flatMap(([place, collections]) => {
      const entries = collections.reduce((sum, ref) => sum + (ref.deref()?.size ?? 0), 0);
      return entries >= OBJECTS / 2 ? [`${place}: ${entries}`] : [];
    }),
  );
});

test('a finished history leaves no objects in memory', async () => {
  const run = async (seed: number): Promise<WeakRef<object>> => {
    // Every part of a run holds the function that it traces with.
    const trace = (): void => undefined;
    expect(await runHistory({ ...seededHistory(seed, 20), trace })).toEqual([]);
    return new WeakRef(trace);
  };
  const seeds = [1, 3, 4, 9];
  const traces = new PlainMap<number, WeakRef<object>>();
  for (const seed of seeds) traces.set(seed, await run(seed));
  await expectCollected(() => seeds.filter((seed) => traces.get(seed)?.deref() !== undefined));
});

/** Counted and not timed: on a busy machine, one collection of a large heap takes half a minute. */
const COLLECTIONS_MAX = 20;

/** Collects garbage until `probe` finds nothing. */
async function expectCollected(probe: () => readonly unknown[]): Promise<void> {
  const collect = garbageCollector();
  for (let count = 0; count < COLLECTIONS_MAX && probe().length > 0; count++) {
    // What `probe` has looked at is kept until the end of the turn.
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
  expect(probe()).toEqual([]);
}

/** An object's life: created, overwritten and deleted on the host by another client, named a Secret, deleted. */
function schedule(
  at: number,
  { virtual, host }: Record<'virtual' | 'host', SimCluster>,
  clock: VirtualClock,
): void {
  const name = { namespace: 'shop', name: `web-${at}` };
  const place = hostPlaceOf(name, SETTINGS);
  const subsets = [{ addresses: [{ ip: '10.0.0.1', hostname: 'h' }] }];
  const metadata = { ...name, annotations: { 'example.com/secret': `tls-${at}` } };
  const startMs = at * 1000;
  clock.schedule(startMs, () => {
    virtual.create(
      'endpoints',
      { apiVersion: 'v1', kind: 'Endpoints', metadata, subsets },
      { manager: 'user' },
    );
    const secret = { namespace: 'shop', name: `tls-${at}` };
    virtual.create('secrets', { apiVersion: 'v1', kind: 'Secret', metadata: secret }, { manager: 'user' });
  });
  for (let time = 1; time <= 8; time++)
    clock.schedule(startMs + time * 500, () => {
      const copy = host.get('endpoints', `${HOST_NAMESPACE}/${place.name}`);
      if (copy !== undefined) host.update('endpoints', { ...copy, subsets: [] }, { manager: 'user' });
    });
  for (const time of [20, 25, 30])
    clock.schedule(startMs + time * 1000, () => {
      if (host.get('endpoints', `${HOST_NAMESPACE}/${place.name}`) !== undefined)
        host.delete('endpoints', place, { manager: 'user' });
    });
  clock.schedule(startMs + 60_000, () => {
    virtual.delete('endpoints', name, { manager: 'user' });
    virtual.delete('secrets', { namespace: 'shop', name: `tls-${at}` }, { manager: 'user' });
  });
}
