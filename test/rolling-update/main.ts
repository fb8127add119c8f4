/**
 * `npm run test:rolling-update -- CHECKOUT [SECONDS]`: two replicas of another build, whose checkout has `node_modules`, are replaced by two of this
 * one while objects change, both builds run beside each other, and the other one comes back. No copy differs, and no build writes what the other has
 * written. Not part of `npm test`, because it needs another build.
 */

import { strict as assert } from 'node:assert';
import { resolve } from 'node:path';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { newEmbeddedWorld } from '../scenarios/embedded-world.ts';
import { slice } from '../scenarios/endpoint-slices.ts';
import { endpoints } from '../scenarios/objects.ts';
import { plain } from '../scenarios/services.ts';
import type { KindName } from '../scenarios/cluster-client.ts';
import type { World } from '../scenarios/world.ts';
import type { Daemon } from '../scenarios/daemon.ts';

const KINDS = ['Endpoints', 'EndpointSlice', 'Service'] as const;
const OBJECTS = 20;
/** Every second object is left alone by everybody but the daemons. */
const isCalm = (object: number): boolean => object % 2 === 0;
const TEAM = 'example.com/team';
const FORWARD = 'example.com/forward';

function configuration(hasLease: boolean): JsonObject {
  const patches = (hostname: string): JsonObject[] => [
    {
      path: `metadata.annotations["${TEAM}"]`,
      expression: '"team-" + value',
      reverseExpression: 'value.replace(/^team-/, "")',
    },
    { path: `metadata.labels["${TEAM}"]`, expression: 'value + "-" + context.vcluster.name' },
    { path: `metadata.annotations["${FORWARD}"]`, expression: 'value.toLowerCase()' },
    { path: hostname, expression: 'value + "-x"', reverseExpression: 'value.replace(/-x$/, "")' },
  ];
  const election = { enabled: true, leaseDuration: '4s', renewDeadline: '3s', retryPeriod: '1s' };
  return {
    sync: {
      toHost: {
        endpoints: { patches: patches('subsets[*].addresses[*].hostname') },
        endpointSlices: { enabled: true, patches: patches('endpoints[*].hostname') },
        services: { patches: patches('metadata.annotations["example.com/host"]') },
      },
    },
    endpointSyncer: { services: 'sync', leaderElection: hasLease ? election : { enabled: false } },
  };
}

function keyOf(object: number): string {
  return `default/o-${object}`;
}

/** What a build makes of an object is its data; the record and the version are not. */
function dataOf(copy: KubeObject): JsonObject {
  const { annotations, labels } = copy.metadata;
  const { 'endpoint-syncer/last-synced': record, ...others } = annotations ?? {};
  assert.ok(record !== undefined, `${copy.metadata.name} has a record`);
  const { metadata: _, ...content } = copy;
  return { annotations: others, labels: labels ?? {}, ...content } as JsonObject; // of an API server
}

class RollingUpdate {
  readonly #world: World;
  readonly #checkouts: Readonly<Record<'before' | 'after', string | undefined>>;
  readonly #running: Daemon[] = [];
  #writes = 0;
  #isOver = false;
  #failure: unknown;

  constructor(world: World, before: string) {
    this.#world = world;
    this.#checkouts = { before, after: undefined };
  }

  async start(build: 'before' | 'after', hasLease = true): Promise<Daemon> {
    const checkout = this.#checkouts[build];
    const config = configuration(hasLease);
    const daemon = await this.#world.startDaemon({ config, ...(checkout && { checkout }) });
    this.#running.push(daemon);
    return daemon;
  }

  async stop(daemon: Daemon): Promise<void> {
    this.#running.splice(this.#running.indexOf(daemon), 1);
    await daemon.stop();
  }

  async createAll(): Promise<void> {
    for (let object = 0; object < OBJECTS; object++) {
      const key = keyOf(object);
      const metadata = {
        annotations: { [TEAM]: 'a', [FORWARD]: 'UP', plain: 'p', 'example.com/host': 'h' },
        labels: { [TEAM]: 'b', release: 'r' },
      };
      await this.#world.virtual.create('Service', plain(key, metadata));
      const subsets = [{ addresses: [{ ip: '10.1.0.1', hostname: 'h' }] }];
      await this.#world.virtual.create('Endpoints', endpoints(key, { ...metadata, subsets }));
      const content = { endpoints: [{ addresses: ['10.1.0.1'], hostname: 'h' }] };
      await this.#world.virtual.create(
        'EndpointSlice',
        slice(key, `o-${object}`, { ...metadata, ...content }),
      );
    }
  }

  /** Users of both sides change the other objects until the end. */
  async change(): Promise<void> {
    try {
      while (!this.#isOver) {
        this.#writes += 1;
        const object = ((this.#writes % (OBJECTS / 2)) * 2 + 1) % OBJECTS;
        const kind = KINDS[this.#writes % KINDS.length] ?? 'Endpoints';
        const [side, name] =
          this.#writes % 7 === 0
            ? (['host', this.#world.hostKey(keyOf(object))] as const)
            : (['virtual', ['default', `o-${object}`]] as const);
        const value = `${side === 'host' ? 'team-' : ''}v${this.#writes}`;
        await this.#world[side].merge(kind, [name[0] ?? '', name[1] ?? ''], {
          metadata: { annotations: { [TEAM]: value } },
        });
        await pause(100);
      }
    } catch (error) {
      this.#failure = error;
    }
  }

  /** Users of both sides change objects for so long. */
  async changesFor(ms: number): Promise<void> {
    const changing = this.change();
    await pause(ms);
    await this.end(changing);
  }

  async end(changing: Promise<void>): Promise<void> {
    this.#isOver = true;
    await changing;
    this.#isOver = false;
    if (this.#failure !== undefined) throw this.#failure;
  }

  copies(): Promise<Map<string, KubeObject>> {
    return this.#each(async (kind, object) =>
      this.#world.host.get(kind, ...this.#world.hostKey(keyOf(object))),
    );
  }

  async #each(
    get: (kind: KindName, object: number) => Promise<KubeObject>,
  ): Promise<Map<string, KubeObject>> {
    const found = new Map<string, KubeObject>();
    for (const kind of KINDS)
      for (let object = 0; object < OBJECTS; object++)
        found.set(`${kind} ${object}`, await get(kind, object));
    return found;
  }

  /** All copies hold what their objects translate to, and those of the calm objects what they held before. */
  async check(what: string, calm: ReadonlyMap<string, JsonObject>): Promise<number> {
    await pause(3000);
    const copies = await this.copies();
    const virtual = await this.#each((kind, object) =>
      this.#world.virtual.get(kind, 'default', `o-${object}`),
    );
    let versions = 0;
    for (const [id, copy] of copies) {
      const { [TEAM]: team = '' } = virtual.get(id)?.metadata.annotations ?? {};
      assert.equal(copy.metadata.annotations?.[TEAM], `team-${team}`, `${what}: ${id}`);
      if (calm.has(id)) assert.deepEqual(dataOf(copy), calm.get(id), `${what}: ${id}`);
      if (/"av"/u.test(copy.metadata.annotations?.['endpoint-syncer/last-synced'] ?? '')) versions += 1;
    }
    console.log(`${what}: ${copies.size} copies are right, ${versions} with the version of the rules`);
    return versions;
  }

  /** Nothing changes on the host while no user changes anything. */
  async checkSilence(what: string): Promise<void> {
    const versionsOf = async () =>
      [...(await this.copies())].map(([id, { metadata }]) => `${id} ${metadata.resourceVersion}`);
    const before = await versionsOf();
    await pause(10_000);
    assert.deepEqual(await versionsOf(), before, `${what}: nothing is written without a reason`);
    console.log(`${what}: no write in ten seconds`);
  }

  get writes(): number {
    return this.#writes;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => void setTimeout(done, ms));
}

const [checkout, seconds = '120'] = process.argv.slice(2);
if (checkout === undefined) throw new Error('usage: npm run test:rolling-update -- CHECKOUT [SECONDS]');
const phaseMs = (Number(seconds) * 1000) / 4;

await using world = await newEmbeddedWorld();
const update = new RollingUpdate(world, resolve(checkout));
const old = [await update.start('before'), await update.start('before')] as const;
await update.createAll();
await pause(5000);
const calm = new Map(
  [...(await update.copies())].flatMap(([id, copy]) =>
    isCalm(Number(id.split(' ')[1])) ? [[id, dataOf(copy)] as const] : [],
  ),
);
await update.check('the build before', calm);
const log = await world.log('host');
const calmCopies = Array.from({ length: OBJECTS }, (_, object) => object)
  .filter(isCalm)
  .map((object) => world.hostName(keyOf(object)));
const changing = update.change();

// Forward, one replica after the other, and a step back.
await update.stop(old[0]);
const first = await update.start('after');
await pause(phaseMs);
await update.stop(old[1]);
const second = await update.start('after');
await pause(phaseMs);
await update.stop(first);
const back = await update.start('before');
await update.stop(second);
await pause(phaseMs);
await update.stop(back);
// Without a Lease, both builds write.
const beside = [await update.start('before', false), await update.start('after', false)] as const;
await pause(phaseMs);
await update.end(changing);
await update.check('both builds beside each other', calm);
await update.checkSilence('both builds beside each other');
const written = calmCopies.flatMap((name) => log.of(name)).length;
console.log(
  `${written} writes of ${calmCopies.length} Endpoints that no user has changed, in four terms of the build before`,
);
// A record with what that build does not know is written once by each term of it, and by nobody else.
assert.ok(written <= 4 * calmCopies.length);
await update.stop(beside[0]);
await update.changesFor(3000);
assert.ok((await update.check('this build', calm)) > 0);
await update.checkSilence('this build');
await update.stop(beside[1]);
console.log(`held: ${update.writes} changes of users`);
