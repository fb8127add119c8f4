/** Everything built from one configuration: name translation, compiled patches, sandbox, engine. A reload replaces the generation. */

import { isDeepStrictEqual } from 'node:util';
import type { ObservableInformer } from '../kube/informer/informer.ts';
import { ServerHistory } from '../kube/informer/list-watch.ts';
import type { CacheBudget } from '../kube/informer/cache-budget.ts';
import type { EventRecorder, WatchClient } from '../kube/types.ts';
import type { Config } from '../config/config.ts';
import { jsonEquals, type JsonObject } from '../base/json.ts';
import type { Clusters } from './clusters.ts';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import type { CheckResult, Checks } from '../base/health.ts';
import type { Logger } from '../base/logger.ts';
import type { Metrics } from './metrics/metrics.ts';
import type { Leadership } from './leadership.ts';
import { compileKinds, syncedKinds } from './kinds/synced-kinds.ts';
import { createPatchPipeline, measuredPipeline, type PipelineOptions } from './patch/pipeline.ts';
import type { PatchPipeline } from './patch/types.ts';
import type { SyncedKind } from './kinds/kind.ts';
import { CopyOwner, type SyncListener } from './reconcile/environment.ts';
import { prune } from './sandbox/program-entry.ts';
import type { createSandbox, Sandbox } from './sandbox/sandbox.ts';
import { Engine } from './engine.ts';
import type { ReferenceListener } from './references/environment.ts';
import type { ReferencedKind } from './references/referenced-kind.ts';
import { References } from './references/references.ts';
import type { DryRun } from './reconcile/dry-run.ts';
import type { KindId } from './translate/last-synced.ts';
import { SyncedReferrers } from './synced-referrers.ts';
import { checkSlices } from './slice-check.ts';
import type { VirtualIdentity } from './virtual-identity.ts';
import { createTranslators, pipelineOptions, sandboxSettings } from './translation.ts';

/** Watches get a bookmark every minute, so a cache without an event for this long is stale. */
const STALENESS_MAX_MS = 5 * 60_000;

export interface GenerationOptions {
  readonly config: Config;
  readonly references: readonly ReferencedKind[];
  readonly clusters: Pick<Clusters, 'discoveries' | 'resolveOwner'>;
  /** All writes go through these clients. They reject writes while another replica leads. */
  readonly clients: { readonly virtual: WatchClient; readonly host: WatchClient };
  readonly leadership: Leadership;
  readonly recorder: EventRecorder;
  readonly createSandbox: typeof createSandbox;
  readonly dryRun: DryRun | undefined;
  /** Undefined: copies of objects that are gone are deleted. */
  readonly identity?: Pick<VirtualIdentity, 'objection'> | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** For a rehearsal; undefined in the daemon. */
  readonly listener?: SyncListener | undefined;
  readonly readsUnsynced?: boolean;
  /** Of the caches; undefined: everything is cached. */
  readonly budget?: CacheBudget | undefined;
  readonly referenceDecided?: ReferenceListener | undefined;
  /** Default: {@link createPatchPipeline}. */
  readonly createPipeline?: (kind: SyncedKind, options: PipelineOptions) => PatchPipeline;
}

export interface Generation {
  readonly checks: Checks;
  readonly isCached: () => boolean;
  readonly objects: () => Readonly<Record<string, number>>;
  readonly initialOutcomes: () => Readonly<Record<string, number>>;
  /** The first pass is over: nothing is queued or in progress. */
  readonly isIdle: () => boolean;
  /** `inherited`: the imported kinds of the generation before it. */
  start(inherited?: readonly KindId[]): void;
  readonly importedKinds: () => readonly KindId[];
  stop(): Promise<void>;
  abandon(): number;
}

/** The generations of both configurations do the same: they differ at most in values of vCluster that no expression reads. */
export function isSameGeneration(before: Config, after: Config): boolean {
  const { vclusterValues } = after;
  if (!isDeepStrictEqual({ ...before, vclusterValues }, after)) return false;
  const paths = compileKinds(syncedKinds(after), after.patches).flatMap(({ patches }) =>
    patches.programs.flatMap(({ reads }) => reads.vcluster),
  );
  const read = (config: Config): JsonObject | null => prune({ ...sandboxSettings(config).vcluster }, paths);
  return jsonEquals(read(before), read(after));
}

/** Completes every step that can fail, so that the previous generation can run until this one is ready. */
export async function createGeneration(options: GenerationOptions): Promise<Generation> {
  const { config, clusters, logger, createPipeline = (_, parts) => createPatchPipeline(parts) } = options;
  const resolveOwner = () => clusters.resolveOwner(config);
  const owner = new CopyOwner(await resolveOwner(), resolveOwner);
  const servers = { virtual: new ServerHistory(), host: new ServerHistory() };
  const virtualCaches = new Map<string, ObservableInformer>();
  const compiled = compileKinds(syncedKinds(config, virtualCaches), config.patches);
  const sandbox = await sandboxFor(options, compiled);
  const translators = createTranslators(config);
  const referrers = new SyncedReferrers(translators.names);
  const references = new References(
    {
      ...options,
      ...translators,
      discoveries: clusters.discoveries,
      servers,
      owner,
      objection: () => engine.objection(),
    },
    options.references,
    referrers,
  );
  const { lookup, prepare } = references;
  const kinds = compiled.map(({ kind, patches }) => {
    const parts = { config, kind, compiled: patches, evaluator: sandbox, lookup, prepare };
    const pipeline = createPipeline(kind, pipelineOptions(parts));
    return {
      kind,
      pipeline: measuredPipeline(pipeline, options.clock, options.metrics.sync),
      hasExpressions: patches.programs.length > 0,
    };
  });
  const engine = new Engine({
    ...options,
    ...translators,
    kinds,
    virtualCaches,
    references,
    referrers,
    servers,
    owner,
    whenLeading: (signal) => options.leadership.whenLeading(signal),
  });
  const stopping = new AbortController();
  let running: Promise<unknown> | undefined;
  return {
    checks: checksOf({ engine, references, sandbox, leadership: options.leadership }),
    isCached: () => areSynced(Object.values(engine.informers)) && references.kinds.isOpened,
    objects: () => sizesOf(engine.informers),
    initialOutcomes: () => engine.initialOutcomes,
    isIdle: () => engine.isIdle,
    importedKinds: () => references.importedKinds,
    start(inherited = []) {
      references.former.inherit(inherited);
      running ??= Promise.all([
        engine.run().catch((error: unknown) => logger.error({ err: error }, 'the sync engine failed')),
        checkOwnSlices(options, stopping.signal),
      ]);
    },
    abandon: () => abandon(engine, sandbox),
    async stop() {
      stopping.abort();
      await engine.stop();
      await running;
      await sandbox?.[Symbol.asyncDispose]();
    },
  };
}

/** Expressions that had to be stopped before wait for each other, and objects in progress with them: the sandbox rejects them. */
function abandon(engine: Engine, sandbox: Sandbox | undefined): number {
  void sandbox?.[Symbol.asyncDispose]();
  return engine.abandon();
}

function sizesOf(informers: Engine['informers']): Record<string, number> {
  return Object.fromEntries(Object.entries(informers).map(([name, { size }]) => [name, size]));
}

/** Checks the slices that the host mirrors from our Endpoints copies. Only the leader does this. */
async function checkOwnSlices(options: GenerationOptions, signal: AbortSignal): Promise<void> {
  if (!options.config.sync.endpoints.enabled) return;
  await options.leadership.whenLeading(signal);
  await checkSlices({ ...options, ...createTranslators(options.config) }, signal);
}

export const IDLE_GENERATION: Generation = {
  checks: {},
  isCached: () => true,
  objects: () => ({}),
  initialOutcomes: () => ({}),
  isIdle: () => true,
  importedKinds: () => [],
  start: () => undefined,
  stop: async () => undefined,
  abandon: () => 0,
};

async function sandboxFor(
  { config, clock, logger, metrics, createSandbox: create }: GenerationOptions,
  compiled: ReturnType<typeof compileKinds>,
): Promise<Sandbox | undefined> {
  const programs = compiled.flatMap(({ patches }) => patches.programs);
  if (programs.length === 0) return undefined;
  return create({ ...sandboxSettings(config), programs, clock, logger, metrics: metrics.sync });
}

interface CheckedParts {
  readonly engine: Engine;
  readonly references: References;
  readonly sandbox: Sandbox | undefined;
  readonly leadership: Leadership;
}

function checksOf({ engine, references, sandbox, leadership }: CheckedParts): Checks {
  const informers = Object.entries(engine.informers);
  return {
    ...Object.fromEntries(informers.map(([name, informer]) => [name, () => informerCheck(informer)])),
    workers: () => workersCheck(engine, leadership.isLeading),
    references: () => ({ isOk: true, detail: references.kinds.detail }),
    sandbox: () => sandboxCheck(sandbox),
  };
}

function sandboxCheck(sandbox: Sandbox | undefined): CheckResult {
  const detail =
    sandbox === undefined ? 'not needed, no patch has an expression' : `${sandbox.pids.length} processes`;
  return { isOk: true, detail };
}

function workersCheck({ isWorking }: Engine, isLeading: boolean): CheckResult {
  if (isWorking) return { isOk: true };
  return isLeading
    ? { isOk: false, detail: 'waiting for the caches' }
    : { isOk: true, detail: 'waiting for the lease' };
}

export function informerCheck(informer: ObservableInformer): CheckResult {
  const { lastError, isRewound } = informer.condition;
  const why = lastError === undefined ? '' : `, last error: ${lastError}`;
  if (!informer.isSynced) return { isOk: false, detail: `not synced yet${why}` };
  if (isRewound)
    return { isOk: false, detail: `the server was restored, its objects are not listed yet${why}` };
  const staleness = `last event ${Math.round(informer.stalenessMs / 1000)} s ago`;
  return {
    isOk: informer.stalenessMs < STALENESS_MAX_MS,
    detail: `${informer.size} objects, ${staleness}${why}`,
  };
}

function areSynced(informers: readonly ObservableInformer[]): boolean {
  return informers.every(({ isSynced }) => isSynced);
}
