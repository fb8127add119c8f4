/** The members of the fleet: decides about each vCluster that may have changed, and starts, stops and removes members accordingly. */

import type { TransportLimits } from '../kube/client/transport.ts';
import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { Checks } from '../base/health.ts';
import { limitedLogger, type Logger } from '../base/logger.ts';
import type { SeriesRegistry } from '../base/metrics/series.ts';
import type { Random } from '../base/random.ts';
import type { Config } from '../config/config.ts';
import { describeProblem } from '../config/source-file.ts';

import type { Rate } from '../base/token-bucket.ts';
import { objectKey, parseKey, type KubeObject, type NamespacedName, type ObjectKey } from '../kube/object.ts';
import { WorkQueue, type QueueMetrics } from '../kube/work-queue.ts';
import type { ClusterSync } from '../syncer/cluster-sync.ts';
import { createSyncMetrics, type Metrics } from '../syncer/metrics/metrics.ts';
import {
  decideByWorkload,
  decideMember,
  type FleetRules,
  type MemberDecision,
  type Membership,
} from './decide-member.ts';
import type { FleetDiscovery } from './discovery.ts';
import { cacheLimits, inputBudget, virtualLimits } from './member-limits.ts';
import { Member, MEMBER_STATES, type MemberState, type MemberStatus, type StartOptions } from './member.ts';
import { plainMemberConfig } from './member-config.ts';
import type { MemberNote } from './member-note.ts';
import type { VclusterObjects } from './vcluster.ts';

export interface MemberStart extends StartOptions {
  readonly vcluster: NamespacedName;
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly virtualClient: TransportLimits;
}

export interface MembersOptions {
  readonly discovery: FleetDiscovery;
  readonly rules: FleetRules;
  /** Whether this replica syncs the vCluster, and not another one. */
  readonly isPlacedHere: (vcluster: ObjectKey) => boolean;
  readonly startSync: (start: MemberStart) => Promise<ClusterSync>;
  /** Removes the copies of a deleted vCluster. A failure is retried. */
  readonly remove: (config: Config, logger: Logger) => Promise<void>;
  /** Reports on its workload that a vCluster is not synced. */
  readonly report: (workload: KubeObject, note: string) => void;
  readonly createNote: (vcluster: NamespacedName) => MemberNote | undefined;
  readonly queueMetrics: QueueMetrics;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

interface Entry {
  readonly member: Member;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly note: MemberNote | undefined;
  workload: KubeObject | undefined;
  warned: string;
}

/** One waits for the end of a member, which takes seconds; the others do not. */
const WORKERS = 64;
const RETRY = { retryBaseMs: 1000, retryMaxMs: 60_000 };
/** Of the processor time: what parsing the contents of one vCluster may take, whose values may be long and change all the time. */
const DECIDING_SHARE = 0.05;
const DECIDING_WAIT_MAX_MS = 10_000;
const LOG_RATE: Rate = { burst: 500, perSecond: 20 };

const LEFT = {
  left: 'the vCluster left the fleet, its copies stay',
  removed: 'the workload of the vCluster is gone, its copies stay as long as its values do',
};
/** States of which the cause has to be removed by a user. */
const PROBLEMS: ReadonlySet<MemberState> = new Set(['limited', 'invalid', 'conflicting', 'failed']);

export class Members {
  readonly #options: MembersOptions;
  readonly #queue: WorkQueue;
  readonly #entries = new Map<ObjectKey, Entry>();
  readonly #input = inputBudget();
  /** vClusters that are no members any more, and whose copies are removed when they are deleted. */
  readonly #removals = new Map<ObjectKey, Config>();
  /** When the contents of each vCluster may be parsed again, monotonic. */
  readonly #notBeforeMs = new Map<ObjectKey, number>();
  #rules: FleetRules;
  #working: Promise<unknown> | undefined;

  constructor(options: MembersOptions) {
    this.#options = options;
    this.#rules = options.rules;
    this.#queue = new WorkQueue({ clock: options.clock, metrics: options.queueMetrics, ...RETRY });
  }

  /** Nothing is decided before every cache is filled. */
  start(): void {
    this.#options.discovery.subscribe((key) => this.#queue.add(key));
    this.decideAll();
    this.#working ??= this.#queue.process(WORKERS, (key) => this.#work(key));
  }

  use(rules: FleetRules): void {
    this.#rules = rules;
    for (const { member } of this.#entries.values()) member.limitsChanged();
    this.decideAll();
  }

  /** After a change of the placement too. */
  decideAll(): void {
    const workloads = this.#options.discovery.workloads().map(objectKey);
    for (const key of new Set([...workloads, ...this.#entries.keys(), ...this.#removals.keys()]))
      this.#queue.add(key, 'initial');
  }

  /** A member of an earlier process, of which copies may be left. */
  addFormer(key: ObjectKey): void {
    if (this.#entries.has(key) || !this.#options.isPlacedHere(key)) return;
    const config = this.#plainConfig(key);
    // A member may be ending: its own configuration comes first while it is known.
    if (config !== undefined && !this.#removals.has(key)) this.#removals.set(key, config);
    this.#queue.add(key);
  }

  /** A vCluster is being read, or the sync of a member is starting. */
  get areStarting(): boolean {
    return !this.#queue.isIdle || [...this.#entries.values()].some(({ member }) => member.isStarting);
  }

  states(): readonly MemberState[] {
    return [...this.#entries.values()].map(({ member }) => member.status.state);
  }

  /** Of the members that are synced: what does not run, such as a vCluster that sleeps, raises no alert. */
  registries(): readonly SeriesRegistry[] {
    const running = [...this.#entries.values()].filter(({ member }) => member.isSyncing);
    return running.map(({ metrics }) => metrics.registry);
  }

  checks(): Checks {
    const entries = [...this.#entries].toSorted(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(
      entries.map(([key, { member }]) => [`vcluster ${key}`, () => member.check()] as const),
    );
  }

  /** Stops all members at the same time; their copies stay. */
  async stop(): Promise<void> {
    this.#queue.abandon();
    await this.#working; // a worker may be adding a member
    await Promise.all([...this.#entries.keys()].map((key) => this.#end(key)));
  }

  async #work(key: ObjectKey): Promise<void> {
    try {
      await this.#reconcile(key);
      this.#queue.forget(key);
    } catch (error) {
      this.#options.logger.warn(
        { vcluster: key, error: messageOf(error) },
        'vCluster cannot be read, retrying',
      );
      this.#queue.addRateLimited(key);
    } finally {
      this.#queue.done(key);
    }
  }

  async #reconcile(key: ObjectKey): Promise<void> {
    if (!this.#options.isPlacedHere(key)) {
      this.#removals.delete(key);
      await this.#leave(
        key,
        'this replica no longer syncs this vCluster: it is placed on another one, or this one has lost its Lease',
      );
      return;
    }
    const { clock, discovery } = this.#options;
    const known = discovery.known(key);
    const decided = decideByWorkload(known, this.#rules);
    const waitMs = (this.#notBeforeMs.get(key) ?? 0) - clock.monotonicMs();
    if (decided === undefined && waitMs > 0) {
      this.#queue.addAfter(key, waitMs);
      return;
    }
    const objects = decided === undefined ? await discovery.read(key) : known;
    const decision = decided ?? this.#decide(key, objects);
    switch (decision.kind) {
      case 'left':
      case 'removed': {
        const config = this.#knownConfig(key);
        if (config !== undefined) this.#removals.set(key, config);
        await this.#leave(key, LEFT[decision.kind]);
        break;
      }
      case 'deleted':
        this.#notBeforeMs.delete(key);
        await this.#remove(key);
        break;
      default:
        this.#removals.delete(key);
        this.#follow(key, decision, objects);
    }
  }

  #decide(key: ObjectKey, objects: VclusterObjects): MemberDecision {
    const { clock } = this.#options;
    const startedMs = clock.monotonicMs();
    const decision = decideMember(objects, this.#rules);
    const nowMs = clock.monotonicMs();
    const waitMs = Math.min((nowMs - startedMs) / DECIDING_SHARE, DECIDING_WAIT_MAX_MS);
    this.#notBeforeMs.set(key, nowMs + waitMs);
    return decision;
  }

  #follow(key: ObjectKey, decision: Membership, { access, workloads }: VclusterObjects): void {
    const entry = this.#entries.get(key) ?? this.#join(key);
    entry.workload = workloads[0];
    if (decision.kind === 'joined')
      warnOnce(
        entry,
        decision.warnings.map((one) => describeProblem(one)),
      );
    entry.member.follow(decision, access?.metadata.resourceVersion ?? '');
  }

  #join(key: ObjectKey): Entry {
    const { clock, createNote, random, startSync } = this.#options;
    const vcluster = parseKey(key);
    const limited = (): Logger =>
      limitedLogger(this.#options.logger.child({ vcluster: key }), LOG_RATE, clock);
    // Lines about the state are not left out because the sync writes many.
    const [logger, syncLogger] = [limited(), limited()];
    const metrics = createSyncMetrics(() => clock.monotonicMs(), { vcluster: key });
    // Kept over its restarts, which would otherwise read at full speed each.
    const virtualClient = virtualLimits(clock, this.#input);
    const member = new Member({
      limits: () => cacheLimits(this.#rules.fleet),
      startSync: (config, options) =>
        startSync({ ...options, vcluster, config, logger: syncLogger, metrics, virtualClient }),
      reported: (status) => this.#report(entry, status),
      clock,
      random,
      logger,
    });
    const note = createNote(vcluster);
    const entry: Entry = { member, logger, metrics, note, workload: undefined, warned: '' };
    this.#entries.set(key, entry);
    return entry;
  }

  #report({ logger, note, workload }: Entry, status: MemberStatus): void {
    const { state, reason } = status;
    note?.show(status);
    const fields = reason === '' ? { state } : { state, reason };
    if (!PROBLEMS.has(state)) {
      logger.info(fields, 'the state of the member changed');
      return;
    }
    logger.warn(fields, 'the state of the member changed');
    if (workload !== undefined) this.#options.report(workload, `Not synced, ${state}: ${reason}`);
  }

  /** Of a member; one that was asleep or invalid from the start has no configuration of its own. */
  #knownConfig(key: ObjectKey): Config | undefined {
    const entry = this.#entries.get(key);
    return entry && (entry.member.config ?? this.#plainConfig(key));
  }

  async #leave(key: ObjectKey, message: string): Promise<void> {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    await this.#end(key);
    entry.logger.info({}, message);
  }

  async #remove(key: ObjectKey): Promise<void> {
    const config = this.#knownConfig(key) ?? this.#removals.get(key);
    await this.#end(key);
    if (config === undefined) return;
    this.#removals.set(key, config);
    await this.#options.remove(config, this.#options.logger.child({ vcluster: key }));
    this.#removals.delete(key);
  }

  async #end(key: ObjectKey): Promise<void> {
    const entry = this.#entries.get(key);
    await entry?.member.end();
    await entry?.note?.remove();
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }

  #plainConfig(key: ObjectKey): Config | undefined {
    return plainMemberConfig({ ...this.#rules, vcluster: parseKey(key) });
  }
}

function warnOnce(entry: Entry, warnings: readonly string[]): void {
  const text = warnings.join('\n');
  if (text === entry.warned) return;
  entry.warned = text;
  for (const warning of warnings) entry.logger.warn({ warning }, 'configuration of the member');
}

/** How many members are in which state; `states` is read at each scrape. */
export function fleetSeries(registry: SeriesRegistry, states: () => readonly MemberState[]): void {
  const members = registry.gauge(
    {
      name: 'endpoint_syncer_fleet_members',
      help: 'Members of the fleet by state; joined ones are synced.',
      labels: ['state'],
    },
    () => {
      const all = states();
      for (const state of MEMBER_STATES) byState.get(state)?.(all.filter((one) => one === state).length);
    },
  );
  const byState = new Map(MEMBER_STATES.map((state) => [state, members.of({ state })]));
}
