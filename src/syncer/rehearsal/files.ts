/** Syncs objects from files, without a cluster: the daemon's engine on the objects of the files. */

import { systemClock } from '../../base/clock.ts';
import { TerminalError } from '../../base/errors.ts';
import { jsonEquals } from '../../base/json.ts';
import type { Config } from '../config/config.ts';
import type { Discovery } from '../../kube/discovery.ts';
import { qualifiedPlural, type MemoryCluster } from '../../kube/memory-cluster.ts';
import {
  asJson,
  asObject,
  isOfKind,
  keyOf,
  objectKey,
  qualifiedKey,
  qualifiedKeyOf,
  SERVER_SET,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type Resource,
} from '../../kube/object.ts';
import { guessedResource } from '../kinds/guessed-resource.ts';
import { NO_EFFECT } from '../kinds/kind.ts';
import { disablingSetting, SHARED_KEYS, SYNCABLE_RESOURCES, syncedKinds } from '../kinds/synced-kinds.ts';
import { createPatchPipeline } from '../patch/pipeline.ts';
import { tracingPipeline, type TracedPatch } from '../patch/trace.ts';
import type { Direction } from '../patch/types.ts';
import { byNewestVersion } from '../patch/validate-object.ts';
import { translatedBack } from '../reconcile/copy.ts';
import { problemOf, rehearse, type ObjectPlan, type Rehearsal, type RehearsalInput } from './rehearsal.ts';
import {
  isBookkeepingAnnotation,
  isUnservedMark,
  LAST_SYNCED,
  virtualOf,
  withoutKeys,
} from '../translate/bookkeeping.ts';
import { markerLabels } from '../translate/labels.ts';
import { withoutRevision, kindIdOf, recordOf } from '../translate/last-synced.ts';
import { createTranslators } from '../translation.ts';
import {
  isSyncedBy,
  kindsIn,
  marking,
  ownerIn,
  placedWorld,
  resourceOf,
  type FileWorld,
} from './file-world.ts';
import { CoverageRun, type PatchCoverage } from './coverage.ts';
import { KeptSandbox, type KindPipeline } from './pipelines.ts';
import { roundTrips, type RoundTrip } from './round-trip.ts';

/** The result for one object, in the order of the input. */
export type Rendered =
  /** `original`: the virtual object, if it was given. */
  | {
      readonly kind: 'object';
      readonly object: KubeObject;
      readonly original: KubeObject | undefined;
      readonly isImport: boolean;
    }
  /** An import that would be written to the other cluster. */
  | { readonly kind: 'elsewhere'; readonly object: KubeObject }
  /** `of`: the kind of the object; `refused`: a referenced object that is not imported. */
  | {
      readonly kind: 'skipped' | 'refused';
      readonly of: string;
      readonly key: ObjectKey;
      readonly reason: string;
    }
  | { readonly kind: 'failed'; readonly of: string; readonly key: ObjectKey; readonly error: unknown };

/** What the patches did with one object. */
interface ObjectTrace {
  /** Such as `EndpointSlice team-a/web-x-shop-x-my-vcluster`. */
  readonly object: string;
  readonly patches: readonly TracedPatch[];
}

export interface RenderedWorld {
  readonly rendered: readonly Rendered[];
  readonly events: Rehearsal['events'];
  /** What the tenant would be told of copies that nothing can use, as `Endpoints shop/web: …`. */
  readonly notes: readonly string[];
  /** Referenced objects that are in no file, as `Secret "shop/tls"`. */
  readonly missing: readonly string[];
  /** The kinds that the configuration syncs. */
  readonly kinds: readonly string[];
  /** Why there are none. */
  readonly whyNone: string | undefined;
  /** The given objects, each in a namespace. */
  readonly world: FileWorld;
  /** Those of kinds that are synced, in the order of the kinds. */
  readonly synced: FileWorld;
  /** Others of the side that is synced. `setting`: what leaves their kind out; undefined: no setting syncs it. */
  readonly unsynced: readonly { readonly object: KubeObject; readonly setting: string | undefined }[];
  /** Only with `isTraced`. */
  readonly traces: readonly ObjectTrace[];
  /** Only with `checksRoundTrip`: of the copies. */
  readonly roundTrips: readonly RoundTrip[];
}

interface FileSyncOptions {
  /** What an API server makes of an object that is written. */
  readonly admit: NonNullable<RehearsalInput['admit']>;
  /** Records for {@link FileSync.coverage} what patches run on. */
  readonly isCovered?: boolean;
}

interface RunOptions {
  readonly direction: Direction;
  /** Each patch runs twice. */
  readonly isTraced?: boolean;
  readonly checksRoundTrip?: boolean;
  /** Of the objects that are synced. */
  readonly progress?: (done: number, total: number) => void;
}

/** Syncs objects of files, in one direction at a time. Keeps one sandbox for all runs of the same settings; runs are one after another. */
export class FileSync implements AsyncDisposable {
  readonly #admit: FileSyncOptions['admit'];
  readonly #covered: CoverageRun | undefined;
  readonly #sandbox = new KeptSandbox();

  constructor({ admit, isCovered = false }: FileSyncOptions) {
    this.#admit = admit;
    this.#covered = isCovered ? new CoverageRun() : undefined;
  }

  /** Objects without a namespace are in the default one of their cluster, as for kubectl. */
  async run(files: FileWorld, config: Config, options: RunOptions): Promise<RenderedWorld> {
    const { direction, isTraced = false, checksRoundTrip = false, progress } = options;
    const world = placedWorld(files, config);
    const ofSynced = (objects: readonly KubeObject[]): KubeObject[] =>
      kindsIn(objects, config).map(([, object]) => object);
    const synced = { virtual: ofSynced(world.virtual), host: ofSynced(world.host) };
    const [given, own] = direction === 'toHost' ? [world.virtual, synced.virtual] : [world.host, synced.host];
    const traces = new Map<string, ObjectTrace>();
    const render = direction === 'toHost' ? renderToHost : renderToVirtual;
    const { pipelines, ...result } = await render(world, config, {
      admit: this.#admit,
      createSandbox: (parts) => this.#sandbox.open(parts),
      createPipeline: isTraced ? tracing(direction, traces) : this.#covered?.createPipeline,
      progress: (done) => progress?.(done, own.length),
    });
    const isStopped = [...traces.values()].some(({ patches }) =>
      patches.some(({ error }) => error !== undefined && STOPS.has(error.kind)),
    );
    if (isStopped) this.#sandbox.forgetPrograms();
    const copies = result.rendered.flatMap((one) => (one.kind === 'object' ? [one.object] : []));
    const kinds = syncedKinds(config).map(({ kind }) => kind.resource.kind);
    return {
      ...result,
      kinds,
      whyNone: kinds.length === 0 ? NO_KIND : undefined,
      world,
      synced,
      unsynced: given
        .filter((object) => !own.includes(object))
        .map((object) => ({ object, setting: settingWithout(object, config) })),
      traces: [...traces.values()],
      roundTrips: checksRoundTrip ? await roundTrips(world.virtual, copies, pipelines) : [],
    };
  }

  /** Of the patches of the configuration with which all runs were; empty without `isCovered`. */
  async coverage(config: Config): Promise<readonly PatchCoverage[]> {
    return (await this.#covered?.report(config)) ?? [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandbox[Symbol.asyncDispose]();
  }
}

const NO_KIND = `no kind is synced: set ${SHARED_KEYS.map((key) => `sync.toHost.${key}.enabled`).join(' or ')} to true`;

/** Errors after which the sandbox does not run an expression on the object for a while. */
const STOPS: ReadonlySet<string> = new Set(['timeout', 'memory', 'killed']);

/** Traces the patches of one direction; of each object the first run. */
function tracing(
  wanted: Direction,
  traces: Map<string, ObjectTrace>,
): NonNullable<RehearsalInput['createPipeline']> {
  return ({ resource }, options) =>
    tracingPipeline(
      { ...options, monotonicMs: () => systemClock.monotonicMs() },
      (direction, { object: traced, patches }) => {
        const object = `${resource.kind} ${objectKey(asObject(traced))}`;
        if (direction === wanted && !traces.has(object)) traces.set(object, { object, patches });
      },
    );
}

function settingWithout(object: KubeObject, config: Config): string | undefined {
  const resource = SYNCABLE_RESOURCES.find((one) => isOfKind(object, one));
  return resource && disablingSetting(config, resource);
}

interface RenderOptions
  extends Pick<FileSyncOptions, 'admit'>, Pick<RehearsalInput, 'createSandbox' | 'progress'> {
  readonly createPipeline: RehearsalInput['createPipeline'];
}

interface RenderedFiles extends Pick<RenderedWorld, 'rendered' | 'events' | 'notes' | 'missing'> {
  readonly pipelines: readonly KindPipeline[];
}

/** The host objects after a sync of `world.virtual` to `world.host`. A host object without annotations counts as the copy. */
async function renderToHost(
  world: FileWorld,
  config: Config,
  options: RenderOptions,
): Promise<RenderedFiles> {
  const marked = { ...world, host: world.host.map(marking(world, config)) };
  const rehearsed = await rehearseFiles(marked, config, options);
  const { clusters } = rehearsed.rehearsal;
  const given = byId(marked.host);
  const rendered = kindsIn(world.virtual, config).map(([resource, object]): OfKind => {
    const key = objectKey(object);
    const plan = rehearsed.plans(resource, key);
    const stored = plan?.seen.target && storedAt(clusters.host, resource, plan.seen.target, given);
    const copy = stored && withoutUnservedMark(stored);
    const before = copy && given.get(qualifiedKeyOf(copy));
    const after = copy && object.metadata.resourceVersion === undefined ? unversioned(copy) : copy;
    const absent = plan === undefined ? 'never synced' : 'no copy';
    return {
      resource,
      results: resultOf({ of: resource.kind, key }, plan, { before, after, original: object, absent }),
    };
  });
  return renderedWorld(rendered, rehearsed, { direction: 'to-host', world: marked, config });
}

/**
 * The virtual objects after the changes in `world.host` have been synced back. If a host object has no sync record, every difference from
 * the translation counts as a change on the host. If there is no virtual object, the whole host object is translated back.
 */
async function renderToVirtual(
  world: FileWorld,
  config: Config,
  options: RenderOptions,
): Promise<RenderedFiles> {
  const { names } = createTranslators(config);
  const mark = marking(world, config);
  const isSynced = isSyncedBy(config);
  const host = world.host.map((object) => (isSynced(object) ? object : mark(object)));
  const recorded = await withRecords({ ...world, host }, config, options);
  const rehearsed = await rehearseFiles(recorded, config, options);
  const given = byId(world.virtual);
  const rendered = kindsIn(world.host, config).map(async ([resource, object]): Promise<OfKind> => {
    const of = resource.kind;
    const virtual = virtualOf(object, resource, names);
    if (virtual === undefined)
      return {
        resource,
        results: [skipped(of, objectKey(object), 'it is not a copy from this virtual cluster')],
      };
    const key = keyOf(virtual);
    const before = given.get(qualifiedKey(resource, virtual));
    if (before === undefined)
      return { resource, results: [await translateBack(object, virtual, rehearsed.pipelines)] };
    const after = storedAt(rehearsed.rehearsal.clusters.virtual, resource, virtual, given);
    const plan = rehearsed.plans(resource, key);
    return {
      resource,
      results: resultOf({ of, key }, plan, { before, after, original: before, absent: 'deleted' }),
    };
  });
  return renderedWorld(await Promise.all(rendered), rehearsed, { direction: 'to-virtual', world, config });
}

interface RenderedParts {
  readonly direction: 'to-host' | 'to-virtual';
  readonly world: FileWorld;
  readonly config: Config;
}

/** What becomes of one object of a synced kind. */
interface OfKind {
  readonly resource: Resource;
  readonly results: readonly Rendered[];
}

function renderedWorld(
  rendered: readonly OfKind[],
  { rehearsal, pipelines }: RehearsedFiles,
  parts: RenderedParts,
): RenderedFiles {
  return {
    rendered: inOrder(rendered, rehearsal, parts),
    events: rehearsal.events,
    notes: notesOf(rehearsal),
    missing: missingReferences(rehearsal),
    pipelines,
  };
}

function notesOf({ events }: Rehearsal): readonly string[] {
  const notes = events.flatMap(({ reason, regarding, resource, note }) =>
    reason === NO_EFFECT.reason ? [`${resource.kind} ${objectKey(regarding)}: ${note}`] : [],
  );
  return [...new Set(notes)];
}

/** Of one object. `before` and `after` a sync: the object that is written; `absent`: why there is none afterwards. */
function resultOf(
  { of, key }: { readonly of: string; readonly key: ObjectKey },
  plan: ObjectPlan | undefined,
  {
    before,
    after,
    original,
    absent,
  }: Partial<Record<'before' | 'after', KubeObject | undefined>> & { original: KubeObject; absent: string },
): Rendered[] {
  const why = plan && skippedReason(plan);
  if (why !== undefined) return [skipped(of, key, why)];
  const object: Rendered[] =
    after === undefined ? [] : [{ kind: 'object', object: after, original, isImport: false }];
  if (plan?.error === undefined) return after === undefined ? [skipped(of, key, absent)] : object;
  // With `onError: path`, everything but the path of the failed patch is written.
  const isWritten = after && (before === undefined || !jsonEquals(asJson(before), asJson(after)));
  return [...(isWritten ? object : []), { kind: 'failed', of, key, error: plan.error }];
}

function skipped(of: string, key: ObjectKey, reason: string): Rendered {
  return { kind: 'skipped', of, key, reason };
}

function missingReferences({ references }: Rehearsal): string[] {
  return references.flatMap(({ seen, decision, isReferenced }) =>
    isReferenced && decision.problem?.reason === 'ReferenceNotFound'
      ? [`${seen.kind.virtual.kind} "${keyOf(seen.virtual)}"`]
      : [],
  );
}

/** Undefined: the object is synced, or its sync fails. */
function skippedReason({ decision, result }: ObjectPlan): string | undefined {
  switch (decision.kind) {
    case 'ignore':
    case 'delete':
      return decision.reason;
    case 'refuse':
      return `${decision.reason}: ${decision.note}`;
    case 'takeOver':
      return result?.outcome === 'pending' ? result.reason : undefined;
    case 'terminating':
      return decision.next === 'recreate' ? undefined : 'the host object is being deleted';
    case 'create':
    case 'update':
    case 'rewrite':
      return undefined;
  }
}

interface RehearsedFiles {
  readonly rehearsal: Rehearsal;
  readonly plans: (resource: Resource, key: ObjectKey) => ObjectPlan | undefined;
  readonly pipelines: readonly KindPipeline[];
}

async function rehearseFiles(
  world: FileWorld,
  config: Config,
  { createPipeline = (_, parts) => createPatchPipeline(parts), ...options }: RenderOptions,
): Promise<RehearsedFiles> {
  const pipelines: KindPipeline[] = [];
  const discovery = discoveryFor(config);
  const rehearsal = await rehearse({
    ...options,
    config,
    clusters: {
      virtual: collectionsOf(world.virtual, config),
      // By its uid, the engine recognizes a copy that it has written.
      host: collectionsOf(world.host.map(withUid), config),
    },
    discoveries: { virtual: discovery, host: discovery },
    owner: ownerIn(world, config),
    createPipeline(kind, parts) {
      const judged = { ...parts, validate: byNewestVersion(kind.validate) };
      const pipeline = createPipeline(kind, judged);
      const { references, labels } = parts;
      pipelines.push({ kind, options: judged, pipeline, names: references.names, labels });
      return pipeline;
    },
    nowMs: systemClock.now(),
  });
  const planned = new Map(
    rehearsal.objects.map((plan) => [`${plan.kind.resource.plural} ${plan.key}`, plan]),
  );
  return { rehearsal, plans: ({ plural }, key) => planned.get(`${plural} ${key}`), pipelines };
}

function withUid(object: KubeObject, at: number): KubeObject {
  return { ...object, metadata: { uid: `file-${at}`, ...object.metadata } };
}

function collectionsOf(objects: readonly KubeObject[], config: Config): RehearsalInput['clusters']['host'] {
  const found = objects.map((object) => ({ object, resource: resourceOf(object, config) }));
  const byPlural = Map.groupBy(found, ({ resource }) => qualifiedPlural(resource));
  return [...byPlural.values()].flatMap((all) =>
    all.slice(0, 1).map(({ resource }) => ({ resource, objects: all.map(({ object }) => object) })),
  );
}

function discoveryFor(config: Config): Discovery {
  const resolve = async (apiVersion: string, kind: string): Promise<Resource> => {
    if (apiVersion === '' || kind === '') throw new TerminalError('a reference without apiVersion or kind');
    return guessedResource(apiVersion, kind, config);
  };
  return { resolve, resolveNamespaced: resolve };
}

/** Copies without a sync record get that of the translation as it is now. */
async function withRecords(world: FileWorld, config: Config, options: RenderOptions): Promise<FileWorld> {
  const { names } = createTranslators(config);
  const unrecorded = new Map<KubeObject, { readonly resource: Resource; readonly namespace: string }>();
  for (const [resource, object] of kindsIn(world.host, config)) {
    const virtual = virtualOf(object, resource, names);
    if (virtual !== undefined && recordOf(object) === undefined)
      unrecorded.set(object, { resource, namespace: virtual.namespace });
  }
  if (unrecorded.size === 0) return world;
  const others = world.host.filter((object) => !unrecorded.has(object));
  const { rehearsal } = await rehearseFiles({ virtual: world.virtual, host: others }, config, options);
  const host = world.host.map((object) => {
    const found = unrecorded.get(object);
    if (found === undefined) return object;
    const { metadata } = object;
    const copy = rehearsal.clusters.host.get(qualifiedPlural(found.resource), objectKey(object));
    const all = Object.entries(copy?.metadata.annotations ?? {});
    const bookkeeping = Object.fromEntries(all.filter(([key]) => isBookkeepingAnnotation(key)));
    const annotations = { ...bookkeeping, ...metadata.annotations };
    const labels = { ...metadata.labels, ...markerLabels(names.vcluster, found.namespace) };
    return { ...object, metadata: { ...metadata, labels, annotations } };
  });
  return { virtual: world.virtual, host };
}

async function translateBack(
  host: KubeObject,
  name: NamespacedName,
  pipelines: readonly KindPipeline[],
): Promise<Rendered> {
  const found = pipelines.find(({ kind }) => isOfKind(host, kind.resource));
  if (found === undefined) return skipped(host.kind ?? '', objectKey(host), 'its kind is not synced');
  try {
    const object = await translatedBack(host, name, found);
    return { kind: 'object', object, original: undefined, isImport: false };
  } catch (error) {
    return { kind: 'failed', of: host.kind ?? '', key: objectKey(host), error };
  }
}

/** What is imported for the references of one kind. An object that is in no file may still exist in a cluster. */
function references(
  { references: plans, objects, clusters }: Rehearsal,
  { plural }: Resource,
  { direction, world }: RenderedParts,
): { readonly id: string; readonly result: Rendered }[] {
  const owners = objects.filter(({ kind }) => kind.resource.plural === plural);
  const named = owners.flatMap((plan) => plan.references);
  const ids = new Set(named.map((one) => `${kindIdOf(one)} ${keyOf(one)}`));
  const given = { virtual: byId(world.virtual), host: byId(world.host) };
  return plans
    .filter(({ seen, isReferenced }) => isReferenced && ids.has(`${seen.kind.id} ${keyOf(seen.virtual)}`))
    .flatMap((plan) => {
      const { kind, virtual, target } = plan.seen;
      const { action } = plan.decision;
      const problem = problemOf(plan);
      const id = `${kind.id} ${keyOf(virtual)}`;
      const found = (result: Rendered) => [{ id, result }];
      if (problem !== undefined && problem.reason !== 'ReferenceNotFound') {
        const reason = `${problem.reason}: ${problem.note}`;
        return found({ kind: 'refused', of: kind.virtual.kind, key: keyOf(virtual), reason });
      }
      const object =
        action === 'to-host' && target !== undefined
          ? storedAt(clusters.host, kind.host, target, given.host)
          : action === 'to-virtual'
            ? storedAt(clusters.virtual, kind.virtual, virtual, given.virtual)
            : undefined;
      if (object === undefined) return [];
      return found(
        action === direction
          ? { kind: 'object', object, original: undefined, isImport: true }
          : { kind: 'elsewhere', object },
      );
    });
}

/** Each kind followed by what its references import; patches of several kinds may name the same object, which is in the result once. */
function inOrder(rendered: readonly OfKind[], rehearsal: Rehearsal, parts: RenderedParts): Rendered[] {
  const seen = new Set<string>();
  return syncedKinds(parts.config).flatMap(({ kind: { resource } }) => [
    ...rendered.flatMap((one) => (one.resource.plural === resource.plural ? one.results : [])),
    ...references(rehearsal, resource, parts).flatMap(({ id, result }) => {
      const isFirst = !seen.has(id);
      seen.add(id);
      return isFirst ? [result] : [];
    }),
  ]);
}

/** The files need not have the Services of the host, whose absence the mark stands for. */
function withoutUnservedMark(copy: KubeObject): KubeObject {
  return withoutKeys(copy, (member, key, value) => member === 'annotations' && isUnservedMark(key, value));
}

/** The object at the end, with the members that an API server sets as they were given. */
function storedAt(
  cluster: MemoryCluster,
  resource: Resource,
  name: NamespacedName,
  given: ReadonlyMap<string, KubeObject>,
): KubeObject | undefined {
  const stored = cluster.get(qualifiedPlural(resource), keyOf(name));
  if (stored === undefined) return undefined;
  const before = given.get(qualifiedKey(resource, name));
  const metadata = { ...stored.metadata };
  for (const member of SERVER_SET) {
    const value = before?.metadata[member];
    if (value === undefined) delete metadata[member];
    else metadata[member] = value;
  }
  return { ...stored, metadata };
}

function byId(objects: readonly KubeObject[]): ReadonlyMap<string, KubeObject> {
  return new Map(objects.map((object) => [qualifiedKeyOf(object), object]));
}

/** The version that the virtual object had in memory is that of no cluster. */
function unversioned(copy: KubeObject): KubeObject {
  const record = recordOf(copy);
  if (record === undefined) return copy;
  const annotations = { ...copy.metadata.annotations, [LAST_SYNCED]: withoutRevision(record) };
  return { ...copy, metadata: { ...copy.metadata, annotations } };
}
