/** Imports in both directions, while other clients write or delete the copies. */

import { expect, test } from 'vitest';
import { seededRandom } from '../support/random.ts';
import { keyOf, type KubeObject } from '../../src/kube/object.ts';
import type { ClusterName } from '../../src/kube/types.ts';
import { CONFIG, PLAIN, SECRET, simConfig, type Settings } from './daemon/sim-config.ts';
import { SimDaemon } from './daemon/sim-daemon.ts';
import { Faults, type RequestFault, type RequestKind } from './world/faults.ts';
import { HOST_NAMESPACE, referencePlaceOf } from './world/names.ts';
import { simClock } from './world/process-clock.ts';
import { SimCluster } from './world/sim-cluster.ts';

const SETTINGS: Settings = { ...PLAIN, hasReferences: true };
const OTHER = { manager: 'other' };
const VIRTUAL = { namespace: 'shop', name: 'tls' };

/** Counts the reads of single objects. */
class CountedRequests extends Faults {
  reads = 0;

  override requestFault(kind: RequestKind): RequestFault | undefined {
    if (kind === 'read') this.reads += 1;
    return super.requestFault(kind);
  }
}

/** A Secret of the virtual cluster, which is imported into the host, or a ConfigMap of the host, and where its copy is. */
const IMPORTS = {
  host: { plural: 'secrets', kind: 'Secret', key: SECRET, copy: referencePlaceOf(VIRTUAL, SETTINGS) },
  virtual: { plural: 'configmaps', kind: 'ConfigMap', key: CONFIG, copy: VIRTUAL },
} as const;

class World {
  readonly requests = new CountedRequests(seededRandom(1));
  readonly #to: ClusterName;
  readonly #clock = simClock();
  readonly #clusters: Readonly<Record<ClusterName, SimCluster>>;

  /** Starts a daemon, in a world with an object to import into `to`, and with an object that names it. */
  constructor(to: ClusterName) {
    const { plural, kind, key } = IMPORTS[to];
    const clock = this.#clock;
    const clusters = { virtual: new SimCluster('virtual', clock), host: new SimCluster('host', clock) };
    this.#to = to;
    this.#clusters = clusters;
    const source = to === 'host' ? VIRTUAL : { ...VIRTUAL, namespace: HOST_NAMESPACE };
    const content = { apiVersion: 'v1', kind, data: { k: 'djE=' } };
    clusters[to === 'host' ? 'virtual' : 'host'].create(plural, { ...content, metadata: source }, OTHER);
    const metadata = { namespace: 'shop', name: 'web', annotations: { [key]: VIRTUAL.name } };
    clusters.virtual.create('endpoints', { apiVersion: 'v1', kind: 'Endpoints', metadata }, OTHER);
    new SimDaemon({
      clusters,
      clock,
      faults: this.requests,
      random: seededRandom(2),
      isDryRun: false,
      config: () => simConfig(SETTINGS),
      wrote: () => undefined,
      trace: () => undefined,
    }).start();
  }

  get copy(): KubeObject | undefined {
    const { plural, copy } = IMPORTS[this.#to];
    return this.#clusters[this.#to].get(plural, `${copy.namespace}/${copy.name}`);
  }

  /** Another client changes the copy. */
  edit(change: (copy: KubeObject) => KubeObject): void {
    const { copy } = this;
    if (copy !== undefined) this.#clusters[this.#to].update(IMPORTS[this.#to].plural, change(copy), OTHER);
  }

  /** The original changes. */
  change(data: string): void {
    const from = this.#to === 'host' ? 'virtual' : 'host';
    const source = this.#to === 'host' ? VIRTUAL : { ...VIRTUAL, namespace: HOST_NAMESPACE };
    const { plural } = IMPORTS[this.#to];
    const original = this.#clusters[from].get(plural, keyOf(source));
    if (original !== undefined)
      this.#clusters[from].update(plural, { ...original, data: { k: data } }, OTHER);
  }

  notesOf(reason: string): unknown[] {
    const events = this.#clusters.virtual.list('events').filter((event) => event['reason'] === reason);
    return events.map((event) => event['note']);
  }

  delete(): void {
    const { plural, copy } = IMPORTS[this.#to];
    this.#clusters[this.#to].delete(plural, copy, OTHER);
  }

  async pass(seconds: number): Promise<void> {
    const endMs = this.#clock.nowMs + seconds * 1000;
    let isOver = false;
    this.#clock.schedule(seconds * 1000, () => (isOver = true));
    while (!isOver) {
      await new Promise((resolve) => setImmediate(resolve));
      if (!this.#clock.step(endMs)) break;
    }
  }
}

function withFinalizers(copy: KubeObject, finalizers: string[]): KubeObject {
  return { ...copy, metadata: { ...copy.metadata, finalizers } };
}

test.each(['host', 'virtual'] as const)(
  'a copy on the side %s that a finalizer keeps is reported once and not read all the time, follows its original, and is created again once it is gone',
  async (to) => {
    const world = new World(to);
    await world.pass(10);
    world.edit((copy) => withFinalizers(copy, ['example.com/hold']));
    await world.pass(10);
    const uid = world.copy?.metadata.uid;
    world.delete();
    await world.pass(5);
    const before = world.requests.reads;
    await world.pass(60);
    expect(world.requests.reads - before).toBeLessThan(30);
    expect(world.copy?.metadata['deletionTimestamp']).toBeDefined();
    const [note, ...others] = world.notesOf('Terminating');
    expect([note, others]).toEqual([
      expect.stringMatching(/ is being deleted since .*, and waits for the finalizer example\.com\/hold\. /),
      [],
    ]);
    world.change('djI=');
    await world.pass(10);
    expect(world.copy).toMatchObject({ metadata: { uid }, data: { k: 'djI=' } });
    world.edit((copy) => withFinalizers(copy, []));
    await world.pass(10);
    expect(world.copy).toMatchObject({ data: { k: 'djI=' } });
    expect(world.copy?.metadata.uid).not.toBe(uid);
  },
);

test.each(['host', 'virtual'] as const)(
  'a copy on the side %s that another client has overwritten again and again is created again soon after its deletion',
  async (to) => {
    const world = new World(to);
    await world.pass(10);
    for (let count = 0; count < 300; count++) {
      world.edit((copy) => ({ ...copy, data: { k: `${count}` } }));
      await world.pass(0.2);
    }
    // The correction is still to come.
    expect(world.copy).not.toMatchObject({ data: { k: 'djE=' } });
    world.delete();
    await world.pass(3);
    expect(world.copy).toMatchObject({ data: { k: 'djE=' } });
  },
);
