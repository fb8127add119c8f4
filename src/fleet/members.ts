/** The members of the fleet: decides about each vCluster that may have changed, and starts, stops and removes members accordingly. */

import type { TransportLimits } from '../kube/client/transport.ts';
import { sleep, type Clock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { CheckResult, Checks } from '../base/health.ts';
import type { Logger } from '../base/logger.ts';
import type { SeriesRegistry } from '../base/metrics/series.ts';
import type { Random } from '../base/random.ts';
import type { Config } from '../syncer/config/config.ts';
import { describeProblem } from '../config-file/source-file.ts';
import { objectKey, parseKey, type KubeObject, type NamespacedName, type ObjectKey } from '../kube/object.ts';
import { WorkQueue, type QueueMetrics } from '../kube/work-queue.ts';
import { createSyncMetrics, type Metrics } from '../syncer/metrics/metrics.ts';
import { Allowances, type Allowance } from './allowances.ts';
import { decideByWorkload, surplusReason, type FleetRules, type Membership } from './decide-member.ts';
import { Decisions } from './decisions.ts';
import type { FleetDiscovery } from './discovery.ts';
import { cacheLimits } from './member-limits.ts';
import {
  Member,
  MEMBER_STATES,
  type MemberState,
  type MemberStatus,
  type MemberSync,
  type StartOptions,
} from './member.ts';
import { plainMemberConfig } from './member-config.ts';
import type { MemberNote } from './member-note.ts';
import type { Removals } from './removals.ts';
import type { SharedCaches } from './shared-caches.ts';
import { Surplus } from './surplus.ts';
import type { ValuesReader } from './values-reader.ts';
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
  readonly reader: Pick<ValuesReader, 'memberConfig'>;
  readonly rules: FleetRules;
  /** Whether this replica syncs the vCluster, and not another one. */
  readonly isPlacedHere: (vcluster: ObjectKey) => boolean;
  /** The Lease of this replica has to be renewed before anything is decided. */
  readonly isRenewalDue: () => boolean;
  readonly startSync: (start: MemberStart) => Promise<MemberSync>;
  readonly removals: Pick<Removals, 'ended' | 'deleted'>;
  readonly caches: SharedCaches;
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
  readonly allowance: Allowance;
  workload: KubeObject | undefined;
  warned: string;
  ending: Promise<void> | undefined;
}

const RETRY = { retryBaseMs: 1000, retryMaxMs: 60_000 };
/** Of the processor time: what deciding may take, whatever there is to decide about. */
const DECIDING_SHARE = 0.2;
/** Without a pause. */
const DECIDING_MS = 5;
const RENEWAL_CHECK_MS = 10;

const LEFT = {
  left: 'the vCluster left the fleet, its copies stay',
  removed: 'the workload of the vCluster is gone, its copies stay as long as its values do',
  deleted: 'the vCluster is deleted',
  surplus: 'the namespace of the vCluster has more members than the limit, its copies stay',
  elsewhere:
    'this replica no longer syncs this vCluster: it is placed on another one, or this one has lost its Lease',
};
/** States of which the cause has to be removed by a user. */
const PROBLEMS: ReadonlySet<MemberState> = new Set(['limited', 'invalid', 'conflicting', 'failed']);

export class Members {
  readonly #options: MembersOptions;
  /** Namespaces take turns in it. */
  readonly #queue: WorkQueue;
  readonly #decisions: Decisions;
  readonly #entries = new Map<ObjectKey, Entry>();
  readonly #surplus: Surplus;
  /** Of those that are reported. */
  readonly #surplusNotes = new Map<ObjectKey, MemberNote>();
  readonly #allowances: Allowances;
  readonly #stopping = new AbortController();
  #rules: FleetRules;
  #working: Promise<unknown> | undefined;

  constructor(options: MembersOptions) {
    const { clock, discovery, queueMetrics, reader, rules } = options;
    this.#options = options;
    this.#rules = rules;
    const groupOf = (key: ObjectKey): string => parseKey(key).namespace;
    this.#queue = new WorkQueue({ clock, metrics: queueMetrics, groupOf, ...RETRY });
    this.#allowances = new Allowances(options);
    this.#surplus = new Surplus(discovery, (key) => this.#queue.add(key));
    this.#decisions = new Decisions({
      discovery,
      reader,
      rules,
      clock,
      again: (key, afterMs) => {
        if (afterMs === 0) this.#queue.forget(key);
        this.#queue.addAfter(key, afterMs);
      },
      failed: (key, error) => this.#failed(key, error),
    });
  }

  /** Nothing is decided before every cache is filled. */
  start(): void {
    const { discovery } = this.#options;
    discovery.subscribe((key) => {
      // A Secret or a ConfigMap alone proves no vCluster: any client that can create one chooses its name.
      if (!this.#entries.has(key) && discovery.known(key).workloads.length === 0)
        this.#options.removals.deleted(parseKey(key));
      else this.#queue.add(key);
    });
    discovery.subscribeWorkloads((key) => {
      this.#surplus.outdated(parseKey(key).namespace);
      this.#queue.add(key);
    });
    this.decideAll();
    this.#working ??= this.#decideInTurns();
  }

  use(rules: FleetRules): void {
    this.#rules = rules;
    this.#decisions.use(rules);
    this.#surplus.clear();
    for (const { member } of this.#entries.values()) member.limitsChanged();
    this.decideAll();
  }

  /** After a change of the placement too. */
  decideAll(): void {
    const workloads = this.#options.discovery.workloads().map(objectKey);
    for (const key of new Set([...workloads, ...this.#entries.keys()])) this.#queue.add(key);
  }

  /** It is synced, or was until now: its member has not ended. */
  has(vcluster: ObjectKey): boolean {
    return this.#entries.has(vcluster);
  }

  /** A vCluster is being read, or the sync of a member is starting. */
  get areStarting(): boolean {
    return (
      !this.#queue.isIdle ||
      this.#decisions.isReading ||
      [...this.#entries.values()].some(({ member }) => member.isStarting)
    );
  }

  states(): readonly MemberState[] {
    const limited = this.#surplus.shown().map(() => 'limited' as const);
    return [...[...this.#entries.values()].map(({ member }) => member.status.state), ...limited];
  }

  /** Of the members that are synced: what does not run, such as a vCluster that sleeps, raises no alert. */
  registries(): readonly SeriesRegistry[] {
    const running = [...this.#entries.values()].filter(({ member }) => member.isSyncing);
    return running.map(({ metrics }) => metrics.registry);
  }

  checks(): Checks {
    const limited = { isOk: true, detail: `limited: ${surplusReason(this.#rules.fleet)}` };
    const checks: (readonly [ObjectKey, () => CheckResult])[] = [
      ...[...this.#entries].map(([key, { member }]) => [key, () => member.check()] as const),
      ...this.#surplus.shown().map((key) => [key, () => limited] as const),
    ];
    return Object.fromEntries(
      checks.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, check]) => [`vcluster ${key}`, check]),
    );
  }

  /** Stops all members at the same time; their copies stay. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#queue.abandon();
    await this.#working;
    await Promise.all([...this.#entries].map(([key, entry]) => this.#end(key, entry)));
  }

  /** Each step is short and waits for nothing: what takes time, such as reading values or ending a member, queues its key again. */
  async #decideInTurns(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    let spentMs = 0;
    for (let key = await this.#queue.take(); key !== undefined; key = await this.#queue.take()) {
      while (this.#options.isRenewalDue() && !signal.aborted) await sleep(clock, RENEWAL_CHECK_MS, signal);
      const startedMs = clock.monotonicMs();
      if (!signal.aborted) this.#step(key);
      this.#queue.done(key);
      spentMs += clock.monotonicMs() - startedMs;
      if (spentMs < DECIDING_MS) continue;
      await sleep(clock, spentMs / DECIDING_SHARE - spentMs, signal);
      spentMs = 0;
    }
  }

  #step(key: ObjectKey): void {
    try {
      this.#reconcile(key);
    } catch (error) {
      this.#failed(key, error);
    }
  }

  #failed(key: ObjectKey, error: unknown): void {
    const fields = { vcluster: key, error: messageOf(error) };
    this.#allowances.logger(parseKey(key)).warn(fields, 'vCluster cannot be read, retrying');
    this.#queue.addRateLimited(key);
  }

  #reconcile(key: ObjectKey): void {
    const { discovery, isPlacedHere } = this.#options;
    const entry = this.#entries.get(key);
    if (entry?.ending !== undefined) return;
    const known = discovery.known(key);
    if (!isPlacedHere(key)) {
      this.#hideSurplus(key);
      if (entry !== undefined) void this.#leave(key, entry, LEFT.elsewhere);
      return;
    }
    const isSurplus = this.#surplus.has(key, this.#rules.fleet);
    const decided = decideByWorkload(known, this.#rules);
    if (decided?.kind === 'left' || decided?.kind === 'removed' || decided?.kind === 'deleted') {
      this.#hideSurplus(key);
      this.#decisions.forget(key);
      if (entry !== undefined) this.#leaveFleet(key, entry, LEFT[decided.kind]);
      else if (decided.kind === 'deleted') this.#options.removals.deleted(known);
      return;
    }
    if (isSurplus) {
      this.#showSurplus(key, known);
      this.#decisions.forget(key);
      if (entry !== undefined) this.#leaveFleet(key, entry, LEFT.surplus);
      return;
    }
    this.#hideSurplus(key);
    const decision = decided ?? this.#decisions.of(known);
    if (decision !== undefined) this.#follow(key, decision, known);
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
    const allowance = this.#allowances.take(vcluster.namespace);
    const { changes, virtualClient } = allowance;
    const logger = allowance.logger.child({ vcluster: key });
    const syncLogger = allowance.syncLogger.child({ vcluster: key });
    const metrics = createSyncMetrics(() => clock.monotonicMs(), { vcluster: key });
    const { caches } = this.#options;
    const member = new Member({
      limits: () => cacheLimits(this.#rules.fleet),
      caches: {
        create: (limits) => caches.budget(vcluster.namespace, limits),
        release: (budget) => caches.release(budget),
        hasRoom: (bytes) => caches.hasRoom(bytes),
      },
      startSync: (config, options) =>
        startSync({ ...options, vcluster, config, logger: syncLogger, metrics, virtualClient }),
      reported: (status) => this.#report(entry, status),
      changes,
      clock,
      random,
      logger,
    });
    const note = createNote(vcluster);
    const entry: Entry = {
      member,
      logger,
      metrics,
      note,
      allowance,
      workload: undefined,
      warned: '',
      ending: undefined,
    };
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

  #showSurplus(key: ObjectKey, { namespace, workloads }: VclusterObjects): void {
    const { limits } = this.#rules.fleet;
    // There may be thousands: all are counted, and as many are reported as there are members.
    if (!this.#surplus.show(key) || this.#surplus.countShown(namespace) > limits.membersPerNamespace) return;
    const reason = surplusReason(this.#rules.fleet);
    const fields = { vcluster: key, state: 'limited', reason };
    this.#allowances.logger({ namespace }).warn(fields, 'the state of the member changed');
    const note = this.#options.createNote(parseKey(key));
    note?.show({ state: 'limited', reason });
    if (note !== undefined) this.#surplusNotes.set(key, note);
    const [workload] = workloads;
    if (workload !== undefined) this.#options.report(workload, `Not synced, limited: ${reason}`);
  }

  #hideSurplus(key: ObjectKey): void {
    this.#surplus.hide(key);
    void this.#surplusNotes.get(key)?.remove();
    this.#surplusNotes.delete(key);
  }

  /** Its copies are removed when it is deleted. */
  #leaveFleet(key: ObjectKey, entry: Entry, message: string): void {
    const plain = plainMemberConfig({ ...this.#rules, vcluster: parseKey(key) });
    const own = entry.member.config;
    if (plain !== undefined)
      this.#options.removals.ended(own === undefined ? plain : { ...plain, references: own.references });
    void this.#leave(key, entry, message);
  }

  async #leave(key: ObjectKey, entry: Entry, message: string): Promise<void> {
    await this.#end(key, entry);
    entry.logger.info({}, message);
    this.#queue.add(key);
  }

  #end(key: ObjectKey, entry: Entry): Promise<void> {
    const end = async (): Promise<void> => {
      await entry.member.end();
      await entry.note?.remove();
      this.#allowances.giveBack(parseKey(key).namespace, entry.allowance);
      this.#entries.delete(key);
    };
    return (entry.ending ??= end());
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
