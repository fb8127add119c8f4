/** One history of a fleet against the real program: one writer of each member after every write, and the host when all has settled. */

import { textAt } from '../../../src/base/json.ts';
import type { Config } from '../../../src/syncer/config/config.ts';
import { parseConfig } from '../../../src/cli/config/parse.ts';
import {
  asJson,
  objectKey,
  type KubeObject,
  type Resource,
  type StringMap,
} from '../../../src/kube/object.ts';
import type { Change } from '../../../src/kube/memory-cluster.ts';
import { hostNameOf } from '../../scenarios/expected-copy.ts';
import { seededRandom } from '../../support/random.ts';
import { CALM, Faults } from '../world/faults.ts';
import { NEVER_WAITS, simClock, Steps } from '../world/process-clock.ts';
import { SimCluster } from '../world/sim-cluster.ts';
import { BOOKMARK_MS } from '../world/sim-watch.ts';
import {
  MEMBER_NAMES,
  OBJECT_NAMES,
  REPLICAS,
  type FleetHistory,
  type FleetOperation,
} from './fleet-history.ts';
import { ANCHOR, BY, SimMember } from './sim-member.ts';
import { SimReplica } from './sim-replica.ts';

export interface FleetRunOptions extends FleetHistory {
  /** Called for everything that happens, for a trace. */
  readonly trace?: (line: string) => void;
}

/** Every back-off has ended twice by then. */
const SETTLE_MS = 8 * 60_000;
/** A change is copied by then. */
const CHANGE_MS = 60_000;
const QUIET_MS = 3 * 60_000;
/** An event and a request, the longest latency each: until then, a removal cannot know that its vCluster was installed again. */
const UNKNOWN_MS = 1020;
const FLEET_NAMESPACE = 'fleet';
const MARKER = 'vcluster.loft.sh/managed-by';

let parsed: Config | undefined;

function fleetConfig(): Config {
  if (parsed !== undefined) return parsed;
  const include = MEMBER_NAMES.map((name) => `team-${name}`).join(', ');
  const text = `endpointSyncer: {host: {namespace: ${FLEET_NAMESPACE}}, fleet: {enabled: true, namespaces: {include: [${include}]}}}`;
  const options = { env: {}, flags: {}, acceptsFleet: true };
  const { config, problems } = parseConfig({ text, file: '' }, options);
  if (config === undefined) throw new Error(problems.map(({ message }) => message).join('\n'));
  parsed = config;
  return config;
}

/** What was violated, in the order in which it happened; empty: nothing. */
export async function runFleetHistory(options: FleetRunOptions): Promise<string[]> {
  return new FleetRun(options).run();
}

class FleetRun {
  readonly #options: FleetRunOptions;
  readonly #clock = simClock();
  readonly #steps = new Steps(this.#clock);
  readonly #faults: Faults;
  readonly #host = new SimCluster('host', this.#clock);
  readonly #members: readonly SimMember[];
  readonly #replicas: readonly SimReplica[];
  readonly #violations: string[] = [];
  /** Copies at the time at which a vCluster left or fell asleep, with the uids of their objects, by its key. */
  readonly #kept = new Map<string, Map<string, string>>();
  /** The change that the write made which is being committed. */
  #change: Change | undefined;
  #updates = 0;
  #writes = 0;

  constructor(options: FleetRunOptions) {
    this.#options = options;
    this.#faults = new Faults(seededRandom(options.seed ^ 0x5eed));
    this.#members = MEMBER_NAMES.map((name) => new SimMember(name, this.#host, this.#clock));
    for (const cluster of [this.#host, ...this.#members.map((member) => member.cluster)])
      cluster.subscribe((change) => this.#onChange(cluster, change));
    const random = seededRandom(options.seed ^ 0xda3);
    this.#replicas = Array.from(
      { length: REPLICAS },
      (_, index) =>
        new SimReplica({
          name: String(index),
          host: this.#host,
          members: this.#members,
          config: fleetConfig(),
          clock: this.#clock,
          faults: this.#faults,
          random,
          wrote: (...write) => this.#wrote(...write),
          failed: (violation) => void this.#violations.push(violation),
          trace: (line) => this.#trace(line),
        }),
    );
  }

  async run(): Promise<string[]> {
    for (const member of this.#members) member.install();
    for (const replica of this.#replicas.slice(0, this.#options.replicas)) replica.start();
    for (const operation of this.#options.operations) {
      await this.#advance(operation.atMs);
      if (this.#violations.length > 0) break;
      this.#trace(`operation ${JSON.stringify(operation)}`);
      this.#perform(operation);
    }
    if (this.#violations.length === 0) await this.#settle();
    for (const replica of this.#replicas) replica.crash();
    // A watch of a dead process closes with its next event or bookmark.
    await this.#advance(this.#clock.nowMs + BOOKMARK_MS);
    return this.#violations;
  }

  async #settle(): Promise<void> {
    this.#faults.rates = CALM;
    for (const member of this.#members) {
      if (member.isAwake) member.startServer();
      member.setValues(member.by);
    }
    for (const replica of this.#replicas) {
      replica.crashAfterWrites(Infinity);
      replica.resume();
    }
    if (!this.#replicas.some(({ isRunning }) => isRunning)) this.#replicas[0]?.start();
    this.#trace('faults off');
    await this.#advance(this.#clock.nowMs + SETTLE_MS);
    const idle = this.#members.filter(({ isMember }) => !isMember);
    const before = idle.map((member) => this.#shown(member));
    for (const member of this.#members) for (const name of [ANCHOR, ...OBJECT_NAMES]) this.#put(member, name);
    await this.#advance(this.#clock.nowMs + CHANGE_MS);
    const written = this.#writes;
    await this.#advance(this.#clock.nowMs + QUIET_MS);
    if (this.#writes > written)
      this.#violations.push(`${this.#writes - written} writes after all has settled`);
    for (const [at, member] of idle.entries())
      if (this.#shown(member) !== before[at])
        this.#violations.push(`${member.key} is no member, and its copies have changed`);
    this.#violations.push(...this.#members.flatMap((member) => this.#problemsOf(member)));
  }

  async #advance(toMs: number): Promise<void> {
    if (!(await this.#steps.run(toMs))) this.#violations.push(NEVER_WAITS);
  }

  #perform(operation: FleetOperation): void {
    switch (operation.kind) {
      case 'trouble': {
        const { rates, forMs } = operation;
        this.#faults.rates = rates;
        return this.#later(forMs, () => {
          if (this.#faults.rates === rates) this.#faults.rates = CALM;
        });
      }
      case 'compact':
        return this.#host.compact();
      case 'crash':
      case 'stop':
      case 'pause':
        return this.#disturb(operation);
      default: {
        const member = this.#members[operation.member];
        if (member !== undefined) this.#changeMember(member, operation);
      }
    }
  }

  #disturb(operation: Extract<FleetOperation, { replica: number }>): void {
    const replica = this.#replicas[operation.replica];
    if (replica === undefined) return;
    switch (operation.kind) {
      case 'crash':
        if (operation.afterWrites === 0) replica.crash();
        else replica.crashAfterWrites(operation.afterWrites);
        return this.#later(operation.downMs, () => replica.start());
      case 'stop':
        void replica.stop().then(() => this.#later(operation.downMs, () => replica.start()));
        return undefined;
      case 'pause':
        replica.pause();
        return this.#later(operation.forMs, () => replica.resume());
    }
  }

  #changeMember(member: SimMember, operation: Extract<FleetOperation, { member: number }>): void {
    switch (operation.kind) {
      case 'install':
        if (!member.isInstalled) member.install();
        break;
      case 'uninstall':
        if (member.isInstalled) member.uninstall(operation.secretsAfterMs);
        break;
      case 'select':
        member.setWorkload({ isSelected: operation.isSelected });
        break;
      case 'sleep':
        member.setWorkload({ isAwake: false });
        member.stopServer();
        break;
      case 'wake':
        member.setWorkload({ isAwake: true });
        this.#later(operation.afterMs, () => (member.isAwake ? member.startServer() : undefined));
        break;
      case 'rotate':
        member.rotateAccess();
        break;
      case 'values':
        member.setValues(operation.by);
        break;
      case 'invalid':
        member.writeValues('sync: {');
        break;
      case 'workers':
        member.setWorkers(operation.workers);
        break;
      case 'outage':
        member.stopServer();
        this.#later(operation.forMs, () => (member.isAwake ? member.startServer() : undefined));
        break;
      case 'put':
        this.#put(member, operation.object);
        break;
      case 'delete':
        // What is deleted while it is not synced has its copy until it is.
        if (member.isMember) member.deleteEndpoints(operation.object);
        break;
    }
    this.#noteKept(member);
  }

  #noteKept(member: SimMember): void {
    if (member.isMember || !member.isInstalled) this.#kept.delete(member.key);
    else if (!this.#kept.has(member.key))
      this.#kept.set(
        member.key,
        new Map(this.#copiesOf(member).map(({ metadata }) => [metadata.name, uidOf(metadata.annotations)])),
      );
  }

  /** A copy whose deletion was sent before its vCluster was known to be installed again. */
  #excuse({ metadata: { name, namespace } }: KubeObject): void {
    const member = this.#members.find((one) => one.namespace === namespace);
    if (member !== undefined && this.#clock.nowMs - member.installedMs <= UNKNOWN_MS)
      this.#kept.get(member.key)?.delete(name);
  }

  #put(member: SimMember, name: string): void {
    member.putEndpoints(name, ++this.#updates);
  }

  #later(delayMs: number, action: () => void): void {
    this.#clock.schedule(delayMs, action);
  }

  /** Only the holder of a member's Lease writes its copies, and into its virtual cluster. */
  #wrote(identity: string, { plural }: Resource, member: SimMember | undefined): void {
    const change = this.#change;
    this.#change = undefined;
    if (plural === 'leases' || plural === 'events' || change === undefined) return;
    this.#writes += 1;
    const { namespace } = change.object.metadata;
    const written = member ?? this.#members.find((one) => one.namespace === namespace);
    if (written === undefined) return void this.#violations.push(`${identity} wrote into ${namespace}`);
    const lease = this.#host.get('leases', `${written.namespace}/endpoint-syncer-${written.name}`);
    const holder = textAt(lease && asJson(lease), 'spec', 'holderIdentity');
    if (holder !== identity)
      this.#violations.push(
        `${identity} wrote ${plural} of ${written.key}, which ${holder || 'no replica'} holds`,
      );
  }

  #problemsOf(member: SimMember): string[] {
    const copies = this.#copiesOf(member);
    const names = new Set(copies.map(({ metadata }) => metadata.name));
    if (!member.isInstalled) {
      const lease = this.#host.get('leases', `${member.namespace}/endpoint-syncer-${member.name}`);
      return [
        ...copies.map((copy) => `${objectKey(copy)} is a copy of a deleted vCluster`),
        ...(lease === undefined ? [] : [`${objectKey(lease)} is the Lease of a deleted vCluster`]),
      ];
    }
    const wanted = new Map(
      member.cluster.list('endpoints').map((virtual) => [this.#nameOf(member, virtual), virtual]),
    );
    if (!member.isMember) {
      const kept = this.#faults.hasListedPast ? [] : [...(this.#kept.get(member.key) ?? [])];
      return kept
        .filter(([name, uid]) => wanted.get(name)?.metadata.uid === uid && !names.has(name))
        .map(([name]) => `${member.namespace}/${name} is gone, and its vCluster has only left`);
    }
    return [
      ...copies
        .filter(({ metadata }) => !wanted.has(metadata.name))
        .map((copy) => `${objectKey(copy)} is a copy without its object`),
      ...[...wanted].flatMap(([name, virtual]) =>
        wrongCopy(`${member.namespace}/${name}`, virtual, member, this.#host),
      ),
    ];
  }

  #nameOf({ name: vcluster, namespace }: SimMember, { metadata }: KubeObject): string {
    return hostNameOf({ vcluster, hostNamespace: namespace }, metadata.namespace ?? '', metadata.name);
  }

  #copiesOf({ namespace, name }: SimMember): readonly KubeObject[] {
    return this.#host
      .list('endpoints')
      .filter(({ metadata }) => metadata.namespace === namespace && metadata.labels?.[MARKER] === name);
  }

  #shown(member: SimMember): string {
    return JSON.stringify(this.#copiesOf(member));
  }

  #onChange(cluster: SimCluster, change: Change): void {
    this.#change = change;
    if (cluster === this.#host && change.isDeletion) this.#excuse(change.object);
    if (this.#options.trace === undefined || change.plural === 'events') return;
    const { object, plural, manager, isDeletion } = change;
    const verb = isDeletion ? 'deleted' : 'wrote';
    const content =
      plural === 'leases'
        ? textAt(asJson(object), 'spec', 'holderIdentity')
        : JSON.stringify(object['subsets'] ?? '');
    this.#trace(`${manager} ${verb} ${cluster.name} ${plural} ${objectKey(object)} ${content}`);
  }

  #trace(line: string): void {
    this.#options.trace?.(`${(this.#clock.nowMs / 1000).toFixed(3).padStart(10)}  ${line}`);
  }
}

function uidOf(annotations: StringMap = {}): string {
  return annotations['vcluster.loft.sh/object-uid'] ?? '';
}

function wrongCopy(key: string, virtual: KubeObject, member: SimMember, host: SimCluster): string[] {
  const copy = host.get('endpoints', key);
  if (copy === undefined) return [`${key} is missing`];
  const [held, wanted] = [copy['subsets'], virtual['subsets']].map((subsets) => JSON.stringify(subsets));
  const by = copy.metadata.annotations?.[BY];
  return [
    ...(held === wanted ? [] : [`${key} has ${held}, expected ${wanted}`]),
    ...(by === member.by ? [] : [`${key} is patched by ${by}, expected ${member.by}`]),
  ];
}
