/** Predicts a sync: the daemon's engine on two clusters in memory, on a virtual clock, until it is at rest. */

import { systemClock, VirtualClock, type Clock } from '../../base/clock.ts';
import { InvariantError, messageOf } from '../../base/errors.ts';
import { silentLogger, type LogFields, type Logger } from '../../base/logger.ts';
import type { Config } from '../config/config.ts';
import {
  MemoryClient,
  MemoryCluster,
  qualifiedPlural,
  type MemoryClusterOptions,
} from '../../kube/memory-cluster.ts';
import {
  isTerminating,
  keyOf,
  objectKey,
  type KubeObject,
  type ObjectKey,
  type Resource,
} from '../../kube/object.ts';
import type { ClusterName, RecordedEvent } from '../../kube/types.ts';
import { createEngine, type EngineParts } from '../engine.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import { isSyncedByVcluster, syncedKinds } from '../kinds/synced-kinds.ts';
import { startLeadership } from '../leadership.ts';
import { createMetrics } from '../metrics/metrics.ts';
import type { TranslatedReference } from '../patch/types.ts';
import { LEFT_TO_VCLUSTER_MS } from '../reconcile/copy-deletion.ts';
import type { Attempt, SyncListener } from '../reconcile/environment.ts';
import { isCopyOf, type Decision, type Observation } from '../reconcile/decide.ts';
import { FIELD_MANAGER } from '../translate/bookkeeping.ts';
import type { ReferenceDecision, ReferenceObservation } from '../references/decide-reference.ts';
import { kindPolicy, resolveNamedKinds, type Discoveries } from '../references/referenced-kind.ts';
import type { SandboxOptions } from '../../expressions/sandbox.ts';
import type { Sandbox } from '../../expressions/types.ts';
import type { OwnerReference } from '../translate/forge.ts';
import { objectionOf, type CopiesEvidence, type Identity } from '../virtual-identity.ts';

export interface Collection {
  readonly resource: Resource;
  readonly objects: readonly KubeObject[];
}

export interface RehearsalInput {
  readonly config: Config;
  readonly clusters: Readonly<Record<ClusterName, readonly Collection[]>>;
  /** Of the host, that take no new objects: the one that is being deleted; undefined: there is none of this name. */
  readonly closedNamespaces?: ReadonlyMap<string, KubeObject | undefined>;
  readonly discoveries: Discoveries;
  readonly owner: OwnerReference | undefined;
  /** Undefined: the objects are those of the right virtual cluster. */
  readonly identity?: Identity;
  readonly admit?: MemoryClusterOptions['admit'];
  readonly createSandbox: (options: SandboxOptions) => Promise<Sandbox>;
  readonly createPipeline?: EngineParts['createPipeline'];
  /** Wall clock at the start, milliseconds since the epoch. */
  readonly nowMs: number;
  readonly progress?: (decided: number) => void;
}

/** One object on one side, before and after; undefined: it does not exist. */
export interface Change {
  readonly cluster: ClusterName;
  readonly resource: Resource;
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
  readonly reason: string;
}

/** The object is deleted, and another one is created in its place. */
export function isRecreation({ before, after }: Change): boolean {
  return before !== undefined && after !== undefined && before.metadata.uid !== after.metadata.uid;
}

/** Finalizers may hold it. What is created in its place then is not seen. */
export function isDeletion({ before, after }: Change): boolean {
  return before !== undefined && (after === undefined || (isTerminating(after) && !isTerminating(before)));
}

export interface ObjectPlan extends Attempt {
  readonly key: ObjectKey;
  readonly kind: SyncedKind;
  readonly seen: Observation;
  /** The first one; the attempt is the last one. */
  readonly decision: Decision;
  /** What the engine tells of the object. */
  readonly events: readonly RecordedEvent[];
  readonly references: readonly TranslatedReference[];
  /** Of the object and its copies; empty: both sides are in sync, or no write is allowed. */
  readonly changes: readonly Change[];
}

/** The observation is the first one, all else the last one: a source is known to be refused only when it has been read. */
export interface ReferencePlan extends Attempt {
  readonly seen: ReferenceObservation;
  readonly decision: ReferenceDecision;
  readonly isReferenced: boolean;
  readonly changes: readonly Change[];
}

/** Why there is no import, as decided, or as the API server has answered; undefined: there is one, or it needs none. */
export function problemOf({
  decision,
  result,
}: Pick<ReferencePlan, 'decision' | 'result'>):
  | { readonly reason: string; readonly note: string }
  | undefined {
  if (decision.problem !== undefined || result?.outcome !== 'refused') return decision.problem;
  return { reason: result.reason, note: result.note ?? result.reason };
}

export interface RehearsedEvent extends RecordedEvent {
  readonly resource: Resource;
  readonly regarding: KubeObject;
}

export interface Rehearsal {
  /** In the order of kinds, then of keys. */
  readonly objects: readonly ObjectPlan[];
  readonly references: readonly ReferencePlan[];
  /** Of each object that differs at the end. */
  readonly changes: readonly Change[];
  readonly events: readonly RehearsedEvent[];
  readonly objection: string | undefined;
  /** `endpoints: patches[2], path metadata.labels.tier`. */
  readonly pathsNeverMatched: readonly string[];
  readonly clusters: Readonly<Record<ClusterName, MemoryCluster>>;
}

/** The engine is at rest when it has written nothing for this long: waits for re-checks are shorter, and back-offs of failures are not awaited. */
const REST_MS = 6000;
/** An engine that still writes after this long is in a loop, which its guards slow down. */
const DURATION_MAX_MS = 60_000;

/** Rejects with `TerminalError` and `StatusError` of the discoveries, with the errors of `createSandbox`, and with `InvariantError`. */
export async function rehearse(input: RehearsalInput): Promise<Rehearsal> {
  const { config, owner, discoveries } = input;
  const clock = new VirtualClock(input.nowMs);
  const record = new Recorder(input);
  const clusters = { virtual: loaded('virtual', input, clock), host: loaded('host', input, clock) };
  for (const [name, namespace] of input.closedNamespaces ?? [])
    clusters.host.setNamespace(name, namespace === undefined ? 'gone' : 'terminating');
  const before = { virtual: statesOf(clusters.virtual, input), host: statesOf(clusters.host, input) };
  const clients = {
    virtual: new MemoryClient(clusters.virtual, { manager: FIELD_MANAGER }),
    host: new MemoryClient(clusters.host, { manager: FIELD_MANAGER }),
  };
  const metrics = createMetrics({ monotonicMs: () => clock.monotonicMs(), version: 'rehearsal' });
  const common = { clock, random: () => 0.5, logger: record.logger, metrics };
  const leadership = startLeadership({ ...common, config, client: clients.host, isDryRun: true });
  const parts: EngineParts = {
    ...common,
    clusters: { discoveries, resolveOwner: async () => owner },
    clients,
    leadership,
    recorder: { event: (...event) => record.event(...event), flush: async () => undefined },
    // Its processes take real time.
    createSandbox: async (options) =>
      record.counting(await input.createSandbox({ ...options, clock: systemClock })),
    dryRun: undefined,
    identity: { objection: async (evidence) => record.objection(evidence) },
    listener: record,
    readsUnsynced: true,
    referenceDecided: (...decided) => record.referenceDecided(...decided),
    ...(input.createPipeline && { createPipeline: input.createPipeline }),
  };
  const named = await resolveNamedKinds(kindPolicy(config.sync), discoveries, () => undefined, {});
  const engine = await createEngine(parts, config, named);
  try {
    engine.start();
    await untilRest(clock, record, { isIdle: () => engine.isIdle, restMs: restMsOf(config) });
  } finally {
    engine.abandon();
    await engine.stop();
  }
  const changes = record.changes(before, clusters);
  const { held, defect } = record;
  if (defect !== undefined) throw new InvariantError(`the sync cannot be predicted: ${defect}`);
  const { pathsNeverMatched } = engine;
  return {
    ...record.plans(changes),
    changes: [...changes.values()],
    objection: held?.reason,
    pathsNeverMatched,
    clusters,
  };
}

/** Of a kind that vCluster syncs as well, the engine leaves deletions to vCluster for a while. */
function restMsOf(config: Config): number {
  const isShared = syncedKinds(config).some(({ kind }) => isSyncedByVcluster(config, kind.resource));
  return isShared ? REST_MS + LEFT_TO_VCLUSTER_MS : REST_MS;
}

/** Time passes only here, when nothing else happens. */
async function untilRest(
  clock: VirtualClock,
  record: Recorder,
  { isIdle, restMs }: { readonly isIdle: () => boolean; readonly restMs: number },
): Promise<void> {
  let lastWriteMs = 0;
  let writes = 0;
  for (;;) {
    await settled(record, isIdle);
    if (record.writes > writes) lastWriteMs = clock.monotonicMs();
    writes = record.writes;
    const endMs = Math.min(lastWriteMs + restMs, DURATION_MAX_MS);
    if (!clock.step(endMs)) return;
    while (clock.step(clock.nowMs));
  }
}

/** Until no evaluation is in progress and the engine waits for the clock or for an event. */
async function settled(record: Recorder, isIdle: () => boolean): Promise<void> {
  for (let turns = 0; turns < 2; turns++) {
    await new Promise((resolve) => setImmediate(resolve));
    if (record.isEvaluating) {
      await record.evaluated();
      turns = -1;
    } else if (isIdle()) return;
  }
}

class Recorder implements SyncListener {
  writes = 0;
  readonly #input: RehearsalInput;
  readonly #objects = new Map<string, Omit<ObjectPlan, 'events' | 'references' | 'changes'>>();
  /** Those that had their host object, or were to write it, at any time: what refuses one may go. */
  readonly #holders = new Set<string>();
  readonly #references = new Map<string, readonly TranslatedReference[]>();
  readonly #referenced = new Map<string, Omit<ReferencePlan, 'changes'>>();
  readonly #reasons = new Map<string, string>();
  readonly #events: RehearsedEvent[] = [];
  /** Of the engine. Without it, only a consequence would be seen: objects that seem not to be synced. */
  defect: string | undefined;
  readonly logger: Logger = {
    ...silentLogger,
    child: () => this.logger,
    error: (...line) => this.#noteDefect(...line),
  };
  /** Of the objects as they were loaded. */
  held: { readonly reason: string | undefined } | undefined;
  #evaluations = 0;
  #evaluated: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(input: RehearsalInput) {
    this.#input = input;
  }

  decided(kind: SyncedKind, seen: Observation, decision: Decision, attempt: Attempt): void {
    // Related objects cause reconciles of objects that never existed.
    if (seen.virtual === undefined && seen.host === undefined && seen.strays.length === 0) return;
    const id = `${kind.resource.plural} ${seen.key}`;
    const first = this.#objects.get(id) ?? { seen, decision };
    if (isCopyOf(seen) || !['ignore', 'refuse'].includes(decision.kind)) this.#holders.add(id);
    this.#objects.set(id, { key: seen.key, kind, seen: first.seen, decision: first.decision, ...attempt });
    this.#input.progress?.(this.#objects.size);
  }

  referenced({ resource }: SyncedKind, key: ObjectKey, references: readonly TranslatedReference[]): void {
    this.#references.set(`${resource.plural} ${key}`, references);
  }

  referenceDecided(
    seen: ReferenceObservation,
    decision: ReferenceDecision,
    isReferenced: boolean,
    attempt: Attempt,
  ): void {
    const id = `${seen.kind.id} ${keyOf(seen.virtual)}`;
    const first = this.#referenced.get(id)?.seen ?? seen;
    this.#referenced.set(id, { seen: first, decision, isReferenced, ...attempt });
  }

  written(cluster: ClusterName, resource: Resource, key: ObjectKey, reason: string): void {
    this.writes += 1;
    const place = changeId(cluster, resource, key);
    // Of what is deleted and created again, it is the reason of the deletion.
    if (!this.#reasons.has(place)) this.#reasons.set(place, reason);
  }

  event(regarding: KubeObject, resource: Resource, event: RecordedEvent): void {
    this.#events.push({ ...event, regarding, resource });
  }

  #noteDefect({ err, stack, controller }: LogFields, message: string): void {
    // What a controller reports is the error of one object.
    if (controller === undefined) this.defect ??= `${message}: ${messageOf(stack ?? err)}`;
  }

  objection(evidence: () => CopiesEvidence): string | undefined {
    const { identity } = this.#input;
    this.held ??= { reason: identity && objectionOf(identity, evidence()) };
    return this.held.reason;
  }

  get isEvaluating(): boolean {
    return this.#evaluations > 0;
  }

  evaluated(): Promise<void> {
    return this.#evaluated.promise;
  }

  counting(sandbox: Sandbox): Sandbox {
    return {
      pids: sandbox.pids,
      define: (program) => sandbox.define(program),
      forget: (id) => sandbox.forget(id),
      evaluate: async (request) => {
        this.#evaluations += 1;
        const response = await sandbox.evaluate(request);
        this.#evaluations -= 1;
        this.#evaluated.resolve();
        this.#evaluated = Promise.withResolvers();
        return response;
      },
      [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
    };
  }

  plans(changes: Changes): Pick<Rehearsal, 'objects' | 'references' | 'events'> {
    const at = (places: readonly string[]): Change[] =>
      [...new Set(places)].flatMap((place) => changes.get(place) ?? []);
    const kinds = syncedKinds(this.#input.config).map(({ kind }) => kind.resource.plural);
    const events = Map.groupBy(
      this.#events,
      ({ resource, regarding }) => `${resource.plural} ${objectKey(regarding)}`,
    );
    const objects = sortedById(this.#objects).map(([id, plan]): ObjectPlan => {
      return {
        ...plan,
        events: events.get(id) ?? [],
        references: this.#references.get(id) ?? [],
        changes: at(placesOfObject(plan, this.#holders.has(id))),
      };
    });
    return {
      objects: kinds.flatMap((plural) => objects.filter(({ kind }) => kind.resource.plural === plural)),
      references: sortedById(this.#referenced).map(([, plan]) => ({
        ...plan,
        changes: at(placesOfReference(plan)),
      })),
      events: this.#events,
    };
  }

  changes(before: Readonly<Record<ClusterName, States>>, after: Rehearsal['clusters']): Changes {
    const changes = new Map<string, Change>();
    for (const cluster of ['host', 'virtual'] as const) {
      const now = statesOf(after[cluster], this.#input);
      for (const place of [...new Set([...before[cluster].keys(), ...now.keys()])].toSorted()) {
        const [was, is] = [before[cluster].get(place), now.get(place)];
        const resource = (is ?? was)?.resource;
        if (was?.object === is?.object || resource === undefined) continue;
        const reason = this.#reasons.get(place) ?? '';
        changes.set(place, { cluster, resource, before: was?.object, after: is?.object, reason });
      }
    }
    return changes;
  }
}

type Changes = ReadonlyMap<string, Change>;

/** `isHolder`: another object may write the host object of one that is refused. */
function placesOfObject(
  { kind: { resource }, key, seen: { target, strays } }: Pick<ObjectPlan, 'kind' | 'key' | 'seen'>,
  isHolder: boolean,
): string[] {
  return [
    ...strays.map((stray) => changeId('host', resource, objectKey(stray))),
    changeId('virtual', resource, key),
    ...(isHolder && target !== undefined ? [changeId('host', resource, keyOf(target))] : []),
  ];
}

function placesOfReference({ seen, decision }: Omit<ReferencePlan, 'changes'>): string[] {
  const { kind, ours, imported, target, virtual } = seen;
  const isToHost = decision.action === 'to-host' && target !== undefined;
  const isToVirtual = decision.action === 'to-virtual' || imported !== undefined;
  return [
    ...ours.map((copy) => changeId('host', kind.host, objectKey(copy))),
    ...(isToVirtual ? [changeId('virtual', kind.virtual, keyOf(virtual))] : []),
    ...(isToHost ? [changeId('host', kind.host, keyOf(target))] : []),
  ];
}

type States = ReadonlyMap<string, { readonly resource: Resource; readonly object: KubeObject }>;

function statesOf(cluster: MemoryCluster, { clusters }: RehearsalInput): States {
  return new Map(
    clusters[cluster.name].flatMap(({ resource }) =>
      cluster
        .list(qualifiedPlural(resource))
        .map(
          (object) => [changeId(cluster.name, resource, objectKey(object)), { resource, object }] as const,
        ),
    ),
  );
}

function changeId(cluster: ClusterName, resource: Resource, key: ObjectKey): string {
  return `${cluster} ${qualifiedPlural(resource)} ${key}`;
}

function loaded(name: ClusterName, { admit, clusters }: RehearsalInput, clock: Clock): MemoryCluster {
  const cluster = new MemoryCluster({ name, now: () => clock.now(), ...(admit && { admit }) });
  for (const { resource, objects } of clusters[name])
    for (const object of objects) cluster.load(qualifiedPlural(resource), object);
  return cluster;
}

function sortedById<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].toSorted(([a], [b]) => (a < b ? -1 : 1));
}
