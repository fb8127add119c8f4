/** One history against the real engine: the operations in their order, invariants after every write, and the world when all has settled. */

import { objectKey, type KubeObject } from '../../src/kube/object.ts';
import type { RecordedEvent } from '../../src/kube/types.ts';
import { seededRandom } from '../apiserver/storage/sqlite/random.ts';
import { Edits, type EditWorld } from './checks/edits.ts';
import { CALM, Faults } from './world/faults.ts';
import { EndpointsController } from './world/host-controllers.ts';
import {
  addressesOf,
  expectedCopy,
  hostKeyOf,
  isOptedOut,
  plainLabels,
  rivalsOf,
  wantsCopy,
  type World,
} from './checks/naive-model.ts';
import { VIRTUAL_NAMES } from './world/names.ts';
import type { Operation } from './history/operations.ts';
import { watchProvenance, type Provenance } from './checks/provenance.ts';
import { SimClock } from './world/sim-clock.ts';
import { SimCluster } from './world/sim-cluster.ts';
import { FORWARD, simConfig } from './daemon/sim-config.ts';
import { DAEMON_MANAGER, SimDaemon } from './daemon/sim-daemon.ts';
import { User } from './world/user.ts';

export interface RunOptions {
  readonly seed: number;
  readonly operations: readonly Operation[];
  readonly daemons: number;
  /** Called for everything that happens, for a trace. */
  readonly trace?: (line: string) => void;
}

/** Long enough for every back-off to have ended twice. */
const SETTLE_MS = 75 * 60_000;
const QUIET_MS = 15 * 60_000;
/** Far more than any history needs; a loop that never waits is found by it. */
const STEPS_MAX = 400_000;

/** What was violated, in the order in which it happened; empty: nothing. */
export async function runHistory(options: RunOptions): Promise<string[]> {
  return new SimRun(options).run();
}

class SimRun {
  readonly #options: RunOptions;
  readonly #clock = new SimClock();
  readonly #faults: Faults;
  readonly #clusters = {
    virtual: new SimCluster('virtual', this.#clock),
    host: new SimCluster('host', this.#clock),
  };
  readonly #user = new User(this.#clusters);
  readonly #edits = new Edits();
  readonly #daemons: readonly SimDaemon[];
  readonly #violations: string[] = [];
  readonly #provenance: Provenance;
  #isPatched = true;
  #isInterrupted = false;
  #steps = 0;
  #writes = 0;

  constructor(options: RunOptions) {
    this.#options = options;
    const random = seededRandom(options.seed ^ 0x5eed);
    this.#faults = new Faults(random);
    const recorded = ({ reason, note }: RecordedEvent): void => this.#trace(`event ${reason}: ${note}`);
    this.#daemons = Array.from({ length: options.daemons }, () => {
      const [clusters, clock, faults] = [this.#clusters, this.#clock, this.#faults];
      return new SimDaemon({ clusters, clock, faults, random, recorded });
    });
    new EndpointsController(this.#clusters.host, this.#clock);
    new EndpointsController(this.#clusters.virtual, this.#clock);
    const violation = (message: string): void => void this.#violations.push(message);
    this.#provenance = watchProvenance(this.#clusters.host, this.#clusters.virtual, violation);
    for (const cluster of Object.values(this.#clusters))
      cluster.subscribe(({ object, plural, manager, isDeletion, revision }) => {
        if (manager === DAEMON_MANAGER) this.#writes += 1;
        const verb = isDeletion ? 'deleted' : 'wrote';
        this.#trace(
          `${manager} ${verb} ${cluster.name} ${plural} ${objectKey(object)} @${revision} ${shown(object)}`,
        );
      });
  }

  async run(): Promise<string[]> {
    for (const daemon of this.#daemons) daemon.start(simConfig(this.#isPatched));
    for (const operation of this.#options.operations) {
      await this.#advance(operation.atMs);
      if (this.#violations.length > 0) return this.#violations;
      this.#perform(operation);
    }
    await this.#settle();
    return this.#violations;
  }

  async #settle(): Promise<void> {
    this.#faults.rates = CALM;
    for (const daemon of this.#daemons) {
      daemon.crashAfterWrites(Infinity);
      daemon.resume();
      if (!daemon.isRunning) daemon.start(simConfig(this.#isPatched));
    }
    this.#trace('faults off');
    await this.#advance(this.#clock.nowMs + SETTLE_MS);
    const writesBefore = this.#writes;
    await this.#advance(this.#clock.nowMs + QUIET_MS);
    if (this.#writes !== writesBefore)
      this.#violations.push(`${this.#writes - writesBefore} writes after all has settled`);
    this.#violations.push(...this.#wrongCopies(), ...this.#orphans(), ...this.#edits.lost(this.#editWorld()));
  }

  async #advance(toMs: number): Promise<void> {
    for (;;) {
      // Promises that can settle do so before the next thing happens.
      await new Promise((resolve) => setImmediate(resolve));
      if (!this.#clock.step(toMs)) return;
      if (++this.#steps > STEPS_MAX) {
        this.#violations.push(`more than ${STEPS_MAX} steps: something never waits`);
        return;
      }
    }
  }

  #perform(operation: Operation): void {
    this.#trace(`operation ${JSON.stringify(operation)}`);
    this.#isInterrupted ||=
      this.#daemons.length > 1 || operation.kind === 'crash' || operation.kind === 'pause';
    this.#edits.note(operation, this.#editWorld());
    switch (operation.kind) {
      case 'trouble': {
        const { rates } = operation;
        this.#faults.rates = rates;
        this.#clock.schedule(operation.forMs, () => {
          if (this.#faults.rates === rates) this.#faults.rates = CALM;
        });
        return;
      }
      case 'compact':
        return this.#clusters[operation.side].compact();
      case 'crash': {
        const daemon = this.#daemons[operation.daemon];
        if (operation.afterWrites === 0) daemon?.crash();
        else daemon?.crashAfterWrites(operation.afterWrites);
        this.#clock.schedule(operation.downMs, () => {
          if (daemon?.isRunning === false) daemon.start(simConfig(this.#isPatched));
        });
        return;
      }
      case 'pause': {
        const daemon = this.#daemons[operation.daemon];
        daemon?.pause();
        this.#clock.schedule(operation.forMs, () => daemon?.resume());
        return;
      }
      case 'configure': {
        this.#isPatched = operation.isPatched;
        for (const daemon of this.#daemons) {
          daemon.crash();
          daemon.start(simConfig(this.#isPatched));
        }
        return;
      }
      default:
        return this.#user.perform(operation);
    }
  }

  get #world(): World {
    return {
      virtual: (plural, key) => this.#clusters.virtual.get(plural, key),
      host: (plural, key) => this.#clusters.host.get(plural, key),
    };
  }

  /** Every virtual object that wants a copy has exactly the right one, unless a foreign object holds its place. */
  #wrongCopies(): string[] {
    const world = this.#world;
    return VIRTUAL_NAMES.flatMap((name) => {
      const rivals = rivalsOf(name).filter((rival) => wantsCopy(rival, world));
      if (rivals.length === 0 || !rivals.includes(name)) return [];
      const copy = world.host('endpoints', hostKeyOf(name));
      if (copy !== undefined && (!this.#provenance.isOurs(copy.metadata.uid) || isOptedOut(copy))) return [];
      // The copy of an object that opted out stays as it is, and holds the name.
      const isHeld = rivalsOf(name).some(({ namespace, name: own }) =>
        isOptedOut(world.virtual('endpoints', `${namespace}/${own}`)),
      );
      if (isHeld) return [];
      const expected = rivals.flatMap(({ namespace, name: own }) => {
        const virtual = world.virtual('endpoints', `${namespace}/${own}`);
        return virtual === undefined ? [] : [expectedCopy(virtual, this.#isPatched)];
      });
      if (copy === undefined) return [`${name.namespace}/${name.name} has no copy`];
      const problems = expected.map((one) => differences(copy, one));
      return problems.some((found) => found.length === 0)
        ? []
        : [`${objectKey(copy)}: ${problems[0]?.join('; ')}`];
    });
  }

  /** Every copy has its object. */
  #orphans(): string[] {
    const world = this.#world;
    return this.#clusters.host.list('endpoints').flatMap((copy) => {
      if (!this.#provenance.isOurs(copy.metadata.uid) || isOptedOut(copy)) return [];
      // Without its bookkeeping nobody can know whose copy it was.
      if (copy.metadata.annotations?.['vcluster.loft.sh/object-name'] === undefined) return [];
      const names = VIRTUAL_NAMES.filter((name) => hostKeyOf(name) === objectKey(copy));
      const isWanted = names.some((name) => {
        const virtual = world.virtual('endpoints', `${name.namespace}/${name.name}`);
        return wantsCopy(name, world) || isOptedOut(virtual);
      });
      return isWanted ? [] : [`${objectKey(copy)} is a copy without its object`];
    });
  }

  #editWorld(): EditWorld {
    const world = this.#world;
    const nameOf = (object: number) => {
      const name = VIRTUAL_NAMES[object];
      if (name === undefined) throw new Error(`there is no object ${object}`);
      return name;
    };
    const virtual = (object: number): KubeObject | undefined => {
      const { namespace, name } = nameOf(object);
      return world.virtual('endpoints', `${namespace}/${name}`);
    };
    const host = (object: number): KubeObject | undefined =>
      world.host('endpoints', hostKeyOf(nameOf(object)));
    return {
      isPatched: this.#isPatched,
      isInterrupted: this.#isInterrupted,
      rivals: (object) => rivalsOf(nameOf(object)).map((name) => VIRTUAL_NAMES.indexOf(name)),
      virtual,
      host,
      isInStep: (object) => {
        const [own, copy] = [virtual(object), host(object)];
        if (own === undefined || copy === undefined) return false;
        return differences(copy, expectedCopy(own, this.#isPatched)).length === 0;
      },
      isWholePair: (object) => {
        const [own, copy] = [virtual(object), host(object)];
        if (own === undefined || copy === undefined || !this.#provenance.isOurs(copy.metadata.uid))
          return false;
        const { annotations = {}, labels = {} } = copy.metadata;
        return (
          wantsCopy(nameOf(object), world) &&
          !isOptedOut(copy) &&
          annotations['vcluster.loft.sh/object-uid'] === own.metadata.uid &&
          annotations['vcluster.loft.sh/object-namespace'] === own.metadata.namespace &&
          annotations['endpoint-syncer/last-synced'] !== undefined &&
          labels['vcluster.loft.sh/managed-by'] !== undefined
        );
      },
    };
  }

  #trace(line: string): void {
    this.#options.trace?.(`${(this.#clock.nowMs / 1000).toFixed(3).padStart(10)}  ${line}`);
  }
}

function differences(copy: KubeObject, expected: ReturnType<typeof expectedCopy>): string[] {
  const { annotations = {}, labels = {} } = copy.metadata;
  const ignored = /^vcluster\.loft\.sh\/(object-kind|object-host|managed-annotations)|^endpoint-syncer\//;
  const shownAnnotations = Object.fromEntries(
    Object.entries(annotations).filter(([key]) => !ignored.test(key)),
  );
  return [
    ...mapDifferences(
      'annotation',
      withoutHostsOwn(shownAnnotations, expected.annotations),
      expected.annotations,
    ),
    ...mapDifferences('label', plainLabels(labels), expected.labels),
    ...(addressesOf(copy).join() === expected.addresses.join()
      ? []
      : [`addresses are ${addressesOf(copy).join()}, expected ${expected.addresses.join()}`]),
  ];
}

/** What another client added at a path that does not flow back, and the virtual object never had, is the host's. */
function withoutHostsOwn(
  actual: Readonly<Record<string, string>>,
  expected: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(actual).filter(([key]) => key !== FORWARD || expected[key] !== undefined),
  );
}

function mapDifferences(
  what: string,
  actual: Readonly<Record<string, string>>,
  expected: Readonly<Record<string, string>>,
): string[] {
  const keys = new Set([...Object.keys(actual), ...Object.keys(expected)]);
  return [...keys].flatMap((key) =>
    actual[key] === expected[key] ? [] : [`${what} ${key} is ${actual[key]}, expected ${expected[key]}`],
  );
}

function shown({ metadata: { annotations = {}, labels = {}, uid }, subsets }: KubeObject): string {
  return `${uid} ${JSON.stringify({ annotations, labels, subsets })}`;
}
