/** One history against the real daemon: the operations in their order, invariants after every write, and the world when all has settled. */

import { jsonEquals } from '../../src/base/json.ts';
import { objectKey, type KubeObject } from '../../src/kube/object.ts';
import { seededRandom } from '../support/random.ts';
import { backedServices, type BackedServices } from './checks/backed-services.ts';
import { ClassHistory } from './checks/class-history.ts';
import { watchContestedSlices } from './checks/contested-slices.ts';
import { editWorld } from './checks/edit-world.ts';
import { Edits } from './checks/edits.ts';
import { LeaderCheck } from './checks/leader.ts';
import { LostCopies } from './checks/lost-copies.ts';
import { isOptedOut, type World } from './checks/naive-model.ts';
import { falseAlarms } from './checks/restores.ts';
import { watchProvenance, type Provenance } from './checks/provenance.ts';
import { isMarking } from './checks/deleters.ts';
import { watchVclusterDeletions } from './checks/vcluster-deletions.ts';
import { settledProblems } from './checks/settled.ts';
import { deletionLimit, watchTermination } from './checks/termination.ts';
import { simConfig, type Settings } from './daemon/sim-config.ts';
import { DAEMON_MANAGER, SimDaemon } from './daemon/sim-daemon.ts';
import { REFERENCED_PLURALS, SYNCED_PLURALS, type Operation, type Side } from './history/operations.ts';
import type { SeededHistory } from './history/seeded-history.ts';
import { admissionOf } from './world/admission.ts';
import { startAgents } from './world/agents.ts';
import { CALM, Faults } from './world/faults.ts';
import { startControllers, type Controllers } from './world/host-controllers.ts';
import { HOST_NAMESPACE, VIRTUAL_NAMES, VIRTUAL_NAMESPACES } from './world/names.ts';
import { NEVER_WAITS, simClock, Steps } from './world/process-clock.ts';
import type { Change } from '../../src/kube/memory-cluster.ts';
import { BEFORE_137, SimCluster, type Admission } from './world/sim-cluster.ts';
import { BOOKMARK_MS } from './world/sim-watch.ts';
import { User } from './world/user.ts';
import { VCLUSTER_MANAGER, VclusterSyncer } from './world/vcluster-syncer.ts';

export interface RunOptions extends SeededHistory {
  /** Called for everything that happens, for a trace. */
  readonly trace?: (line: string) => void;
}

/** Every back-off has ended twice by then, and the guards have forgotten. */
const SETTLE_MS = 35 * 60_000;
/** A namespace that is being deleted is gone by then. */
const NAMESPACE_MS = 200;
/** Between two writes of the other writer. */
const FIGHT_MS = 1000;
const QUIET_MS = 12 * 60_000;
/** Imports that are not referenced any more are deleted by then, as long as the daemon runs. */
const IMPORTS_MS = 60_000;
/** After this time, a reload has ended under faults, too. */
const RELOAD_MS = 30_000;
const EDITS: readonly string[] = ['put', 'putService', 'annotate', 'label', 'addresses', 'delete', 'trouble'];
/** On either side together, of a pair; the first is often enough. */
const WRITES_PER_EDIT_MAX = 2;
const SYNCED: readonly string[] = SYNCED_PLURALS;

/** What was violated, in the order in which it happened; empty: nothing. */
export async function runHistory(options: RunOptions): Promise<string[]> {
  return new SimRun(options).run();
}

class SimRun {
  readonly #options: RunOptions;
  readonly #clock = simClock();
  readonly #steps = new Steps(this.#clock);
  readonly #faults: Faults;
  readonly #clusters: Readonly<Record<Side, SimCluster>>;
  readonly #controllers: Readonly<Record<Side, Controllers>>;
  readonly #user: User;
  readonly #vcluster: VclusterSyncer;
  readonly #edits = new Edits();
  readonly #lostCopies = new LostCopies();
  readonly #classes: ClassHistory;
  readonly #backed: BackedServices;
  readonly #daemons: readonly SimDaemon[];
  readonly #violations: string[] = [];
  readonly #provenance: Provenance;
  #settings: Settings;
  #configuredAtMs = -Infinity;
  #isInterrupted = false;
  /** Another client has removed a sync record that names kinds of references. */
  #isRecordLost = false;
  /** When a daemon wrote a record that names other kinds than the one before. */
  #kindsChangedAtMs = -Infinity;
  readonly #restores = { virtual: 0, host: 0 };
  /** By the daemons; `synced`: of whole objects of the synced kinds. */
  readonly #writes = { all: 0, synced: 0 };

  constructor(options: RunOptions) {
    const { servers = { virtual: BEFORE_137, host: BEFORE_137 } } = options;
    this.#options = options;
    this.#clusters = {
      virtual: new SimCluster('virtual', this.#clock, servers.virtual),
      host: new SimCluster('host', this.#clock, servers.host),
    };
    this.#controllers = {
      virtual: startControllers(this.#clusters.virtual, this.#clock, servers.virtual),
      host: startControllers(this.#clusters.host, this.#clock, servers.host),
    };
    this.#vcluster = new VclusterSyncer(this.#clusters, this.#clock);
    this.#classes = new ClassHistory(this.#clusters);
    this.#settings = options.settings;
    const isReloading = (): boolean => this.#clock.nowMs - this.#configuredAtMs < RELOAD_MS;
    this.#user = new User(this.#clusters, () => this.#settings, isReloading);
    this.#faults = new Faults(seededRandom(options.seed ^ 0x5eed));
    this.#backed = backedServices(this.#clusters.virtual, this.#clock, () => this.#faults.hasListedPast);
    const violation = (message: string): void => void this.#violations.push(message);
    const { deletesVirtual } = options.settings;
    this.#provenance = watchProvenance(this.#clusters, {
      deletesVirtual,
      // Without a Lease, each daemon sees what the other one deletes.
      areOwnDeletionsUnknown: () =>
        this.#areTwoWriting || (this.#isInterrupted && this.#faults.hasListedPast),
      areEchoesForgotten: () => this.#areEchoesForgotten,
      isPaused: () => this.#daemons.some((daemon) => daemon.wasPausedSince(this.#clock.nowMs)),
      violation,
    });
    watchContestedSlices(this.#clusters, violation);
    watchVclusterDeletions(this.#clusters, {
      known: () => this.#settings.syncedByVcluster,
      names: () => this.#settings,
      nowMs: () => this.#clock.nowMs,
      violation,
    });
    watchTermination(this.#clusters, violation);
    this.#daemons = this.#createDaemons(violation);
    for (const cluster of Object.values(this.#clusters))
      cluster.subscribe((change) => this.#onChange(cluster.name, change));
    this.#clusters.host.subscribe((change) => this.#onHostChange(change));
    this.#clusters.virtual.subscribe((change) => this.#onVirtualChange(change));
  }

  async run(): Promise<string[]> {
    if (this.#settings.hasOwner) this.#user.createOwner();
    for (const daemon of this.#daemons) daemon.start();
    for (const operation of this.#options.operations) {
      await this.#advance(operation.atMs);
      if (this.#violations.length > 0) return this.#violations;
      this.#perform(operation);
    }
    await this.#settle();
    await this.#close();
    return this.#violations;
  }

  async #settle(): Promise<void> {
    this.#faults.rates = CALM;
    this.#vcluster.restart([]);
    if (this.#settings.syncedByVcluster.length > 0)
      this.#configure({ kind: 'configure', settings: { syncedByVcluster: [] }, isRestart: false });
    this.#endAdmission(this.#clusters.host.admission);
    this.#removeFinalizers();
    await this.#advance(this.#clock.nowMs + NAMESPACE_MS);
    for (const name of VIRTUAL_NAMESPACES) this.#clusters.virtual.setNamespace(name, 'active');
    this.#clusters.host.setNamespace(HOST_NAMESPACE, 'active');
    if (this.#settings.hasOwner) this.#perform({ kind: 'recreateOwner', atMs: this.#clock.nowMs });
    for (const daemon of this.#daemons) {
      daemon.crashAfterWrites(Infinity);
      daemon.resume();
      daemon.start();
    }
    this.#trace('faults off');
    await this.#advance(this.#clock.nowMs + SETTLE_MS);
    const counted = this.#areImportsContested() ? 'synced' : 'all';
    const writesBefore = this.#writes[counted];
    await this.#advance(this.#clock.nowMs + QUIET_MS);
    const late = this.#writes[counted] - writesBefore;
    if (late > 0) this.#violations.push(`${late} writes after all has settled`);
    if (!this.#daemons.some(({ isIdle }) => isIdle)) this.#violations.push('no daemon is idle');
    const world = this.#world;
    this.#violations.push(
      ...settledProblems(world),
      ...this.#edits.lost(editWorld(world)),
      ...this.#lostCopies.survivors(world),
      ...this.#tooManyWrites(),
    );
  }

  /** Two daemons without a Lease, of which only one knows what an object that has opted out, or that fails, names since: one imports it, the
   * other removes it. */
  #areImportsContested(): boolean {
    return (
      this.#areTwoWriting &&
      this.#settings.hasReferences &&
      (SYNCED_PLURALS.some((plural) => this.#isAnyOptedOut(plural)) ||
        this.#clusters.virtual.list('events').some((event) => event['reason'] === 'PatchFailed'))
    );
  }

  get #areTwoWriting(): boolean {
    return this.#options.daemons > 1 && !this.#settings.hasLeaderElection;
  }

  #isAnyOptedOut(plural: string): boolean {
    const { virtual, host } = this.#clusters;
    return [...virtual.list(plural), ...host.list(plural)].some(isOptedOut);
  }

  /** An open watch would keep the whole run in memory. */
  async #close(): Promise<void> {
    for (const daemon of this.#daemons) daemon.crash();
    // A watch of a dead process closes with its next event or bookmark.
    await this.#advance(this.#clock.nowMs + BOOKMARK_MS);
  }

  /** They hold back objects that are being deleted. */
  #removeFinalizers(): void {
    for (const side of ['virtual', 'host'] as const) {
      for (const plural of REFERENCED_PLURALS) this.#user.removeFinalizers(side, plural);
      for (const plural of SYNCED_PLURALS) {
        for (const object of VIRTUAL_NAMES.keys())
          this.#edits.note(
            { kind: 'finalizer', atMs: this.#clock.nowMs, side, plural, object, isSet: false },
            editWorld(this.#world),
          );
        this.#user.removeFinalizers(side, plural);
      }
    }
  }

  async #advance(toMs: number): Promise<void> {
    if (!(await this.#steps.run(toMs))) this.#violations.push(NEVER_WAITS);
  }

  #perform(operation: Operation): void {
    this.#trace(`operation ${JSON.stringify(operation)}`);
    const isInterruption = !EDITS.includes(operation.kind);
    this.#isInterrupted ||= this.#options.daemons > 1 || isInterruption;
    this.#edits.note(operation, editWorld(this.#world));
    switch (operation.kind) {
      case 'trouble': {
        const { rates } = operation;
        this.#faults.rates = rates;
        return this.#later(operation.forMs, () => {
          if (this.#faults.rates === rates) this.#faults.rates = CALM;
        });
      }
      case 'compact':
        return this.#clusters[operation.side].compact();
      case 'restore':
        return this.#restore(operation);
      case 'fight':
        return this.#fight(operation);
      case 'agents':
        return startAgents(
          {
            clusters: this.#clusters,
            clock: this.#clock,
            user: this.#user,
            names: () => this.#settings,
          },
          operation,
        );
      case 'admission':
        return this.#admit(operation);
      case 'vcluster':
        return this.#vcluster.restart(operation.plurals);
      case 'restartController':
        return this.#controllers[operation.side].restart();
      case 'namespace': {
        const { side, name } = operation;
        this.#controllers[side].deleteNamespace(name);
        return this.#later(operation.forMs, () => this.#controllers[side].createNamespace(name));
      }
      case 'crash':
      case 'restart':
      case 'pause':
      case 'clockJump':
        return this.#disturb(this.#daemons[operation.daemon], operation);
      case 'configure':
        return this.#configure(operation);
      default:
        return this.#user.perform(operation);
    }
  }

  /** A daemon that is paused does not notice that the server is away, so the server comes back later. */
  #restore({ side, revisions, downMs, outage, passes }: Extract<Operation, { kind: 'restore' }>): void {
    const cluster = this.#clusters[side];
    const known = cluster.revision;
    // It may bring back an import of a kind that neither the configuration nor a copy names any more: `cleanup --unused` deletes it.
    this.#isRecordLost ||= !this.#settings.hasReferences;
    cluster.restore(revisions, outage);
    this.#controllers[side].restart();
    const restore = ++this.#restores[side];
    const comeBack = (): void => {
      // Another restore has begun, which lasts longer.
      if (restore !== this.#restores[side]) return;
      const sinceMs = this.#clock.nowMs - downMs;
      if (this.#daemons.some((daemon) => daemon.wasPausedSince(sinceMs)))
        return this.#later(downMs, comeBack);
      cluster.comeBack(passes ? known + 1 : 0);
    };
    this.#later(downMs, comeBack);
  }

  #admit({ plural, form, forMs }: Extract<Operation, { kind: 'admission' }>): void {
    const admission = admissionOf(plural, form);
    this.#clusters.host.admission = admission;
    this.#later(forMs, () => this.#endAdmission(admission));
  }

  #endAdmission(admission: Admission): void {
    const { host } = this.#clusters;
    if (host.admission === admission) host.admission = (_plural, object) => object;
  }

  #fight({ plural, object, times }: Extract<Operation, { kind: 'fight' }>): void {
    for (let time = 0; time < times; time++)
      this.#later(time * FIGHT_MS, () =>
        this.#user.perform({ kind: 'addresses', side: 'host', plural, object, ips: 1 + (time % 3) }),
      );
  }

  #disturb(
    daemon: SimDaemon | undefined,
    operation: Extract<Operation, { kind: 'crash' | 'restart' | 'pause' | 'clockJump' }>,
  ): void {
    switch (operation.kind) {
      case 'crash':
        if (operation.afterWrites === 0) daemon?.crash();
        else daemon?.crashAfterWrites(operation.afterWrites);
        return this.#later(operation.downMs, () => daemon?.start());
      case 'restart':
        void daemon?.stop().then(() => this.#later(operation.downMs, () => daemon.start()));
        return;
      case 'pause':
        daemon?.pause();
        return this.#later(operation.forMs, () => daemon?.resume());
      case 'clockJump':
        return daemon?.jumpClock(operation.byMs);
    }
  }

  #configure({ settings, isRestart }: Omit<Extract<Operation, { kind: 'configure' }>, 'atMs'>): void {
    this.#settings = { ...this.#settings, ...settings };
    this.#configuredAtMs = this.#clock.nowMs;
    if (this.#isRecordKeptAway) this.#kindsChangedAtMs = this.#clock.nowMs;
    this.#isRecordLost ||=
      this.#areKindsRemoved && (isRestart || this.#daemons.some(({ isRunning }) => !isRunning));
    for (const daemon of this.#daemons) {
      if (!isRestart) {
        daemon.reload();
        continue;
      }
      daemon.crash();
      daemon.start();
    }
  }

  /** The imports of a kind that no copy names any more are being deleted: after the end of the process, nothing is known of them. */
  get #areKindsRemoved(): boolean {
    return this.#clock.nowMs - this.#kindsChangedAtMs < IMPORTS_MS;
  }

  /** Admission has taken the record from a copy: only the process that wrote the copy knows which kinds it names. */
  get #isRecordKeptAway(): boolean {
    const isWithoutRecord = (object: KubeObject): boolean =>
      this.#provenance.isOurs(object) && !hasRecord(object);
    return SYNCED.some((plural) => this.#clusters.host.list(plural).some(isWithoutRecord));
  }

  #later(delayMs: number, action: () => void): void {
    this.#clock.schedule(delayMs, action);
  }

  #createDaemons(violation: (message: string) => void): readonly SimDaemon[] {
    const random = seededRandom(this.#options.seed ^ 0xda3);
    const leader = new LeaderCheck(this.#clusters.host, this.#clock, violation);
    const common = {
      clusters: this.#clusters,
      clock: this.#clock,
      faults: this.#faults,
      deletedAgain: deletionLimit(violation),
      random,
      config: () => simConfig(this.#settings),
      logger: falseAlarms(
        (cluster) =>
          this.#faults.hasListedPast || this.#restores[cluster === 'host' ? 'host' : 'virtual'] > 0,
        violation,
      ),
      trace: (line: string) => this.#trace(line),
    };
    const daemons = Array.from({ length: this.#options.daemons }, () => {
      const wrote: ConstructorParameters<typeof SimDaemon>[0]['wrote'] = (daemon, resource, isDead) => {
        this.#isRecordLost ||= isDead && this.#areKindsRemoved;
        if (this.#settings.hasLeaderElection) leader.wrote(daemon, resource);
      };
      return new SimDaemon({ ...common, isDryRun: false, wrote });
    });
    const dryRun = (): void => violation('a dry run has written');
    return this.#options.hasDryRun
      ? [...daemons, new SimDaemon({ ...common, isDryRun: true, wrote: dryRun })]
      : daemons;
  }

  #onChange(cluster: string, { object, previous, plural, manager, isDeletion, revision }: Change): void {
    if (manager === DAEMON_MANAGER && plural !== 'leases' && plural !== 'events') {
      this.#writes.all += 1;
      if (SYNCED.includes(plural)) this.#writes.synced += 1;
    }
    const isRecordDropped = hasKinds(previous) && (isDeletion || kindsOf(object) !== kindsOf(previous));
    if (isRecordDropped && manager === DAEMON_MANAGER) this.#kindsChangedAtMs = this.#clock.nowMs;
    else if (isRecordDropped && (isDeletion || !hasKinds(object))) this.#isRecordLost = true;
    // The holder of a Lease has a random name; a repeated Event has no new text.
    if (this.#options.trace === undefined || plural === 'leases') return;
    if (plural === 'events')
      return previous === undefined ? this.#trace(`event ${eventText(object)}`) : undefined;
    const verb = isDeletion ? 'deleted' : 'wrote';
    this.#trace(`${manager} ${verb} ${cluster} ${plural} ${objectKey(object)} @${revision} ${shown(object)}`);
  }

  #onHostChange(change: Change): void {
    const { object, plural, manager, isDeletion } = change;
    const { isCalm, settings } = this.#options;
    if (isCalm && settings.deletesVirtual) this.#lostCopies.note(change, this.#world, this.#clock.nowMs);
    // An old list may show that the copy is not needed.
    const isGoing = isDeletion || isMarking(object, change.previous);
    const isByOldList = this.#faults.hasListedPast && isGoing;
    // The daemon deletes a Service to create it again, and where it has no synced Endpoints for a moment.
    const isLost = isGoing && (manager !== DAEMON_MANAGER || plural === 'services');
    if (!(isLost || isByOldList) || !SYNCED.includes(plural)) return;
    const world = editWorld(this.#world);
    this.#edits.copyDeleted({ plural, key: objectKey(object) }, world);
  }

  #onVirtualChange({ object, previous, plural, isDeletion, manager }: Change): void {
    const { namespace = '', labels } = object.metadata;
    const isSame = jsonEquals(labels ?? {}, previous?.metadata.labels ?? {});
    // It takes an edit of either side for one of the other.
    if (manager === VCLUSTER_MANAGER) this.#edits.clear();
    const isGate = plural === 'endpoints' || plural === 'endpointslices';
    if (isGate && (isDeletion || previous === undefined || !isSame))
      this.#edits.gateChanged(namespace, editWorld(this.#world));
  }

  /** Where nothing goes wrong, an edit costs no more than it must. */
  #tooManyWrites(): string[] {
    const { isCalm, operations } = this.#options;
    const max = operations.length * WRITES_PER_EDIT_MAX;
    return isCalm && this.#writes.synced > max
      ? [`${this.#writes.synced} writes for ${operations.length} edits`]
      : [];
  }

  /** A value that vCluster copied back, and whose earlier value is unknown, may name an object. */
  get #isEchoLeft(): boolean {
    return SYNCED_PLURALS.some((plural) => this.#clusters.virtual.list(plural).some(hasRecord));
  }

  get #world(): World {
    const { virtual, host } = this.#clusters;
    // Two daemons without a Lease may run under two configurations for a while, and imports of a removed kind are listed once.
    const isRecordLost = this.#isRecordLost || this.#faults.hasListedPast || this.#areTwoWriting;
    return {
      settings: this.#settings,
      virtual,
      host,
      isOurs: (object) => this.#provenance.isOurs(object),
      isCopiedBack: (object, key) => this.#provenance.isCopiedBack(object, key),
      isBesideVcluster: this.#options.operations.some(({ kind }) => kind === 'vcluster'),
      isRecordLost,
      areImportsContested: this.#areImportsContested() || this.#isEchoLeft,
      classes: this.#classes,
      backed: this.#backed,
      areEchoesForgotten: this.#areEchoesForgotten,
      isInterrupted: this.#isInterrupted,
    };
  }

  get #areEchoesForgotten(): boolean {
    return this.#isInterrupted || this.#settings.hasOwner;
  }

  #trace(line: string): void {
    this.#options.trace?.(`${(this.#clock.nowMs / 1000).toFixed(3).padStart(10)}  ${line}`);
  }
}

/** Its sync record names kinds of references. */
function hasKinds(object: KubeObject | undefined): boolean {
  return kindsOf(object) !== undefined;
}

function kindsOf(object: KubeObject | undefined): string | undefined {
  return /"k":"[^"]*"/.exec(object?.metadata.annotations?.['endpoint-syncer/last-synced'] ?? '')?.[0];
}

function hasRecord({ metadata: { annotations } }: KubeObject): boolean {
  return annotations?.['endpoint-syncer/last-synced'] !== undefined;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function eventText(event: KubeObject): string {
  return `${text(event['reason'])} on ${event.metadata.namespace}: ${text(event['note'])}`;
}

function shown({ metadata: { annotations = {}, labels = {}, uid }, ...content }: KubeObject): string {
  const { apiVersion: _, kind: __, ...shownContent } = content;
  return `${uid} ${JSON.stringify({ annotations, labels, ...shownContent })}`;
}
