/** The sync of one virtual cluster as a command sees it: both clusters are read once, and the engine says what it would do with them. */

import { systemClock } from '../../base/clock.ts';
import { messageOf, PatchError, patchErrorLine, TerminalError } from '../../base/errors.ts';
import { plainText } from '../../base/excerpt.ts';
import { missingRights } from '../../kube/access-review.ts';
import { LEASES, leaseWith } from '../../kube/lease.ts';
import {
  isOfKindNamed,
  NAMESPACES,
  printKindName,
  type KindName,
  type NamespacedName,
} from '../../kube/object.ts';
import { ignoreNotFound } from '../../kube/status-error.ts';
import type { ClusterClient } from '../../kube/types.ts';
import type { Config } from '../config/config.ts';
import { copiesLeft } from '../copies-left.ts';
import { leaseName } from '../leadership.ts';
import { describeRight, requiredRights } from '../rights.ts';
import { FIELD_MANAGER } from '../translate/bookkeeping.ts';
import { ADOPTED, KUBE_SYSTEM, readIfAllowed } from '../virtual-identity.ts';
import { reaching, whileConnected, type Connection, type ConnectOptions } from './connection.ts';
import {
  deleteCreated,
  planCleanup,
  type CleanupChoice,
  type CleanupStep,
  type CreatedObject,
} from './created-objects.ts';
import { differencesIn } from './differences.ts';
import { findTarget } from './find-target.ts';
import { kindProblem, wantedKind } from './kind-names.ts';
import { factsOf } from './object-status.ts';
import type { ObjectPlan } from './rehearsal.ts';
import { readEvents } from './reported-events.ts';
import {
  planWorld,
  rehearseSnapshot,
  takeSnapshot,
  type CommandParts,
  type Snapshot,
  type WorldPlan,
} from './snapshot.ts';
import { StageRecorder, writesOf, type Stages } from './stages.ts';
import { eventsOfImport, referrersIn, rowOf, rowsOf, type ObjectRow, type Target } from './status-rows.ts';
import type { DaemonState, LeaseState, ReportedEvent } from './sync-status.ts';

interface LiveParts extends ConnectOptions, CommandParts {
  /** What running daemons say of the whole sync, which is known above the sync of one virtual cluster. */
  readonly readDaemon: (config: Config, host: ClusterClient, nowMs: number) => Promise<DaemonState>;
}

/** Connects for the time of `work`. Rejects with `TerminalError` where a kubeconfig or Secret is missing or a cluster cannot be reached. */
export function withLiveSync<T>(
  config: Config,
  parts: LiveParts,
  work: (sync: LiveSync) => Promise<T>,
): Promise<T> {
  return whileConnected(config, parts, (connection) => work(new LiveSync(connection, parts)));
}

export class LiveSync {
  readonly config: Config;
  readonly host: ClusterClient;
  readonly #connection: Connection;
  readonly #parts: LiveParts;

  constructor(connection: Connection, parts: LiveParts) {
    this.config = connection.config;
    this.host = connection.clusters.host;
    this.#connection = connection;
    this.#parts = parts;
  }

  /** Rejects with `TerminalError` where the host does not respond, or the Lease may not be read. */
  readDaemon(nowMs = systemClock.now()): Promise<DaemonState> {
    return this.#parts.readDaemon(this.config, this.host, nowMs);
  }

  /** What is wrong with a kind that a user writes, and that no object of this configuration can have. */
  kindProblem(kind: string | undefined): string | undefined {
    return kindProblem(this.config, kind);
  }

  /** The state of each object: of the plan, and of what running daemons report afterwards. */
  async status(kind: string | undefined) {
    const plan = await planWorld(this.#connection, this.#parts);
    const nowMs = systemClock.now();
    const [events, daemon] = await Promise.all([
      readEvents(this.#connection.clusters.virtual),
      this.readDaemon(nowMs),
    ]);
    const wanted = wantedKind(kind);
    const rows = rowsOf(plan, { ...daemon, events, nowMs }).filter((row) => isOfKindNamed(row, wanted));
    return { rows, pathsNeverMatched: plan.pathsNeverMatched };
  }

  /**
   * Why an object is, or is not, synced. Rejects with `TerminalError` where a cluster does not respond, where there is no such object, and where objects of
   * several groups have this kind and name.
   */
  async explain(name: string, { isHost, kind }: ObjectChoice): Promise<Explanation | Unreadable> {
    const missing = await missingOf(this.#connection);
    const snapshot = await snapshotOrMissing(this.#connection, missing, this.#parts);
    if (snapshot === undefined) return { unreadableWithout: missing };
    const { config } = snapshot;
    const key = isHost && !name.includes('/') ? `${config.host.namespace}/${name}` : name;
    const wanted = wantedKind(kind);
    await using recorder = new StageRecorder();
    const { sandbox, createPipeline } = recorder;
    const plan = await rehearseSnapshot(snapshot, { ...this.#parts, sandbox, createPipeline });
    const target = findTarget(plan, { key, isHost, kind: wanted });
    if (target === undefined) {
      const where = isHost
        ? 'does not exist on the host'
        : 'exists neither in the virtual cluster nor on the host';
      throw new TerminalError(`${describeName(wanted, key)} ${where}`);
    }
    const nowMs = systemClock.now();
    const daemon = await this.readDaemon(nowMs);
    const events = await eventsAbout(target, plan, this.#connection);
    const facts = { ...factsOf(plan, { ...daemon, nowMs }), events, missingRights: missing };
    return {
      ...rowOf(target, facts, config),
      stages: target.kind === 'object' ? await recorder.stagesOf(target.plan) : undefined,
      write: target.kind === 'other' ? [] : writesOf(target.plan.changes),
      events,
      lease: daemon.lease,
      nowMs,
    };
  }

  /** What a sync would change, of these virtual objects; without names and kind, of all. */
  async differences(names: readonly string[], kind: string | undefined) {
    const { config, clusters } = this.#connection;
    const wanted = wantedKind(kind);
    const isEverything = names.length === 0 && wanted === undefined;
    const plan = await planWorld(this.#connection, this.#parts);
    const found = differencesIn(
      plan,
      isEverything
        ? undefined
        : (key, resource) => (names.length === 0 || names.includes(key)) && isOfKindNamed(resource, wanted),
    );
    const exists = (key: string): boolean =>
      found.keys.includes(key) || findTarget(plan, { key, isHost: false, kind: wanted }) !== undefined;
    return {
      ...found,
      /** Named, and in neither cluster. */
      unknown: names.filter((name) => !exists(name)).map((name) => describeName(wanted, name)),
      /** Copies that this configuration does not update; only of everything. */
      copiesLeft: isEverything ? await copiesLeft({ config, clients: clusters }, () => undefined) : [],
    };
  }

  /** What becomes of each virtual object that there is. */
  async outcomes() {
    const { objects } = await planWorld(this.#connection, { ...this.#parts, isOwnerNeeded: false });
    return objects.filter(({ seen }) => seen.virtual !== undefined).map(outcomeOf);
  }

  /** What this program created for the virtual cluster, and may delete. */
  planCleanup(choice: CleanupChoice) {
    return planCleanup(this.#connection, choice, this.#parts);
  }

  delete(groups: readonly (readonly CreatedObject[])[], report: (step: CleanupStep) => void): Promise<void> {
    return deleteCreated(groups, this.#connection, { ...this.#parts, report });
  }

  /**
   * Records on the Lease, whose name is the result, that the copies on the host may be of this virtual cluster, whichever it was before. Undefined: it may not
   * be told from others.
   */
  async adopt(): Promise<NamespacedName | undefined> {
    const { config, clusters } = this.#connection;
    const namespace = await reaching('virtual', () =>
      readIfAllowed(clusters.virtual, NAMESPACES, KUBE_SYSTEM),
    );
    const uid = namespace?.metadata.uid;
    if (uid === undefined) return undefined;
    const place = { namespace: config.host.namespace, name: leaseName(config.name) };
    const lease = await reaching('host', () => ignoreNotFound(clusters.host.get(LEASES, place)));
    const wanted = leaseWith(lease, place, { [ADOPTED]: uid });
    const options = { fieldManager: FIELD_MANAGER };
    await reaching('host', () =>
      lease === undefined
        ? clusters.host.create(LEASES, wanted, options)
        : clusters.host.update(LEASES, wanted, options),
    );
    return place;
  }
}

function describeName(kind: KindName | undefined, name: string): string {
  return `${kind === undefined ? 'object' : printKindName(kind)} "${name}"`;
}

// An explanation.

interface ObjectChoice {
  /** The name is that of a host object; without a namespace it is in the host namespace. */
  readonly isHost: boolean;
  /** As a user writes it; undefined: of any kind. If objects of several groups have the kind and the name, the group is needed. */
  readonly kind: string | undefined;
}

export interface Explanation extends ObjectRow {
  /** Undefined for an object that is imported, or is no copy. */
  readonly stages: Stages | undefined;
  readonly write: Stages['write'];
  /** Of the daemon about the object, the latest first. */
  readonly events: readonly ReportedEvent[];
  readonly lease: LeaseState | undefined;
  /** When it was read. */
  readonly nowMs: number;
}

interface Unreadable {
  /** The rights, described, for want of which nothing could be read. */
  readonly unreadableWithout: readonly string[];
}

async function eventsAbout(
  target: Target,
  plan: WorldPlan,
  { clusters }: Connection,
): Promise<readonly ReportedEvent[]> {
  if (target.kind === 'other') return [];
  if (target.kind === 'object') {
    const { uid, namespace } = target.plan.seen.virtual?.metadata ?? {};
    return uid === undefined ? [] : ((await readEvents(clusters.virtual, namespace)).get(uid) ?? []);
  }
  const all = await readEvents(clusters.virtual);
  const events = referrersIn(plan)(target.plan).flatMap(({ metadata }) => all.get(metadata.uid ?? '') ?? []);
  return eventsOfImport(target.plan, events);
}

/** Rights that the daemon needs and that the user of this command does not have. */
async function missingOf({ config, clusters }: Connection): Promise<string[]> {
  const rights = requiredRights(config, { isDryRun: false });
  const reviews = (['virtual', 'host'] as const).map((cluster) => {
    const needed = rights.filter((right) => right.cluster === cluster);
    return reaching(cluster, () => missingRights(clusters[cluster], needed));
  });
  return (await Promise.all(reviews)).flat().map(describeRight);
}

/** Undefined where the clusters may not be read. */
async function snapshotOrMissing(
  connection: Connection,
  missing: readonly string[],
  parts: CommandParts,
): Promise<Snapshot | undefined> {
  try {
    return await takeSnapshot(connection, { ...parts, everyKind: true });
  } catch (error) {
    if (error instanceof TerminalError && missing.length > 0) return undefined;
    throw error;
  }
}

// What becomes of an object.

function outcomeOf({ kind, key, seen, decision, error, changes }: ObjectPlan) {
  const isRefused = decision.kind === 'refuse' || error !== undefined;
  return {
    kind: kind.resource.kind,
    virtual: key,
    host: seen.target,
    /** Undefined: it is synced. */
    whyNot: whyNotSynced(decision, error),
    change: changes.length === 0 ? 'unchanged' : decision.kind,
    /** It has a copy today that would not be updated. */
    isLost: isRefused && seen.host !== undefined,
  };
}

function whyNotSynced(decision: ObjectPlan['decision'], error: unknown): string | undefined {
  if (error instanceof PatchError) return `fails: ${patchErrorLine(error)}`;
  if (error !== undefined) return `fails: ${plainText(messageOf(error))}`;
  if (decision.kind === 'refuse') return `refused: ${decision.reason}`;
  return decision.kind === 'ignore' ? `not synced: ${decision.reason}` : undefined;
}
