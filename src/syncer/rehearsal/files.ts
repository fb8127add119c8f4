/** Syncs objects from files, without a cluster: the daemon's engine on the objects of the files. */

import { systemClock } from '../../base/clock.ts';
import { TerminalError } from '../../base/errors.ts';
import { jsonEquals } from '../../base/json.ts';
import type { Config } from '../config/config.ts';
import type { Discovery } from '../../kube/discovery.ts';
import { qualifiedPlural, type MemoryCluster } from '../../kube/memory-cluster.ts';
import {
  asJson,
  groupOf,
  isOfKind,
  keyOf,
  nameOf,
  objectKey,
  qualifiedKey,
  qualifiedKeyOf,
  SERVER_SET,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type Resource,
  type StringMap,
} from '../../kube/object.ts';
import { guessedResource } from '../kinds/guessed-resource.ts';
import { NO_EFFECT, type SyncedKind } from '../kinds/kind.ts';
import { syncedKinds } from '../kinds/synced-kinds.ts';
import { createPatchPipeline, type PipelineOptions } from '../patch/pipeline.ts';
import type { PatchPipeline } from '../patch/types.ts';
import { byNewestVersion } from '../patch/validate-object.ts';
import { translatedBack } from '../reconcile/copy.ts';
import { problemOf, rehearse, type ObjectPlan, type Rehearsal, type RehearsalInput } from './rehearsal.ts';
import { createSandbox } from '../../expressions/sandbox.ts';
import type { OwnerReference, Translators } from '../translate/forge.ts';
import {
  identityAnnotations,
  isBookkeepingAnnotation,
  isUnservedMark,
  LAST_SYNCED,
  virtualByAnnotations,
  virtualOf,
  withoutKeys,
} from '../translate/bookkeeping.ts';
import { markerLabels } from '../translate/labels.ts';
import { withoutRevision, kindIdOf, recordOf } from '../translate/last-synced.ts';
import { createTranslators, ownerOf } from '../translation.ts';
import { KeptSandbox } from './pipelines.ts';

export interface FileWorld {
  readonly virtual: readonly KubeObject[];
  readonly host: readonly KubeObject[];
}

/** The result for one object, in the order of the input. */
export type Rendered =
  /** `elsewhere`: it would be written to the other cluster. */
  | { readonly kind: 'object' | 'elsewhere'; readonly object: KubeObject }
  /** `of`: the kind of the object; `refused`: a referenced object that is not imported. */
  | {
      readonly kind: 'skipped' | 'refused';
      readonly of: string;
      readonly key: ObjectKey;
      readonly reason: string;
    }
  | { readonly kind: 'failed'; readonly of: string; readonly key: ObjectKey; readonly error: unknown };

/** The pipeline of one synced kind, as the engine has built it. */
export interface KindPipeline extends Translators {
  readonly kind: SyncedKind;
  readonly options: PipelineOptions;
  readonly pipeline: PatchPipeline;
}

export interface OfflineOptions {
  /** What an API server makes of an object that is written. */
  readonly admit: NonNullable<RehearsalInput['admit']>;
  /** Default: the sandbox of the daemon, for each rehearsal. */
  readonly createSandbox?: RehearsalInput['createSandbox'];
  readonly createPipeline?: RehearsalInput['createPipeline'];
  readonly progress?: RehearsalInput['progress'] | undefined;
}

export interface RenderedWorld {
  readonly rendered: readonly Rendered[];
  readonly events: Rehearsal['events'];
  /** What the tenant would be told of copies that nothing can use, as `Endpoints shop/web: …`. */
  readonly notes: readonly string[];
  /** Referenced objects that are in no file, as `Secret "shop/tls"`. */
  readonly missing: readonly string[];
  readonly pipelines: readonly KindPipeline[];
}

/** The host objects after a sync of `world.virtual` to `world.host`. A host object without annotations counts as the copy. */
export async function renderToHost(
  world: FileWorld,
  config: Config,
  options: OfflineOptions,
): Promise<RenderedWorld> {
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
    return { resource, results: resultOf({ of: resource.kind, key }, plan, { before, after, absent }) };
  });
  return renderedWorld(rendered, rehearsed, { direction: 'to-host', world: marked, config });
}

/**
 * The virtual objects after the changes in `world.host` have been synced back. If a host object has no sync record, every difference from
 * the translation counts as a change on the host. If there is no virtual object, the whole host object is translated back.
 */
export async function renderToVirtual(
  world: FileWorld,
  config: Config,
  options: OfflineOptions,
): Promise<RenderedWorld> {
  const { names } = createTranslators(config);
  const mark = marking(world, config);
  const isSynced = isSyncedBy(config);
  const host = world.host.map((object) => (isSynced(object) ? object : mark(object)));
  // For the objects that are translated back after the rehearsal.
  await using sandbox = new KeptSandbox();
  const parts: OfflineOptions = { createSandbox: (given) => sandbox.open(given), ...options };
  const recorded = await withRecords({ ...world, host }, config, parts);
  const rehearsed = await rehearseFiles(recorded, config, parts);
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
    return { resource, results: resultOf({ of, key }, plan, { before, after, absent: 'deleted' }) };
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
): RenderedWorld {
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
  { before, after, absent }: Partial<Record<'before' | 'after', KubeObject | undefined>> & { absent: string },
): Rendered[] {
  const why = plan && skippedReason(plan);
  if (why !== undefined) return [skipped(of, key, why)];
  const object: Rendered[] = after === undefined ? [] : [{ kind: 'object', object: after }];
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
  { createPipeline = (_, parts) => createPatchPipeline(parts), progress, ...options }: OfflineOptions,
): Promise<RehearsedFiles> {
  const pipelines: KindPipeline[] = [];
  const discovery = discoveryFor(config);
  const rehearsal = await rehearse({
    createSandbox,
    ...options,
    ...(progress && { progress }),
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

function kindsIn(objects: readonly KubeObject[], config: Config): (readonly [Resource, KubeObject])[] {
  return syncedKinds(config).flatMap(({ kind: { resource } }) =>
    objects.filter((object) => isOfKind(object, resource)).map((object) => [resource, object] as const),
  );
}

function collectionsOf(objects: readonly KubeObject[], config: Config): RehearsalInput['clusters']['host'] {
  const found = objects.map((object) => ({ object, resource: resourceOf(object, config) }));
  const byPlural = Map.groupBy(found, ({ resource }) => qualifiedPlural(resource));
  return [...byPlural.values()].flatMap((all) =>
    all.slice(0, 1).map(({ resource }) => ({ resource, objects: all.map(({ object }) => object) })),
  );
}

function resourceOf({ apiVersion = 'v1', kind = '' }: KubeObject, config: Config): Resource {
  return guessedResource(apiVersion, kind, config);
}

function discoveryFor(config: Config): Discovery {
  const resolve = async (apiVersion: string, kind: string): Promise<Resource> => {
    if (apiVersion === '' || kind === '') throw new TerminalError('a reference without apiVersion or kind');
    return guessedResource(apiVersion, kind, config);
  };
  return { resolve, resolveNamespaced: resolve };
}

/** Without a cluster the owner's uid is known only where the owner is among the host objects. The default owner need not exist. */
function ownerIn({ host }: FileWorld, config: Config): OwnerReference | undefined {
  const owner = ownerOf(config);
  if (owner === undefined) return undefined;
  const { apiVersion, kind, name, isOptional } = owner;
  const owning = { group: groupOf(apiVersion), kind };
  const found = host.find((object) => isOfKind(object, owning) && object.metadata.name === name);
  if (found === undefined && isOptional) return undefined;
  return { apiVersion, kind, name, uid: found?.metadata.uid ?? '' };
}

/** Gives a host object without annotations the bookkeeping of the virtual object whose copy has its name, and a referenced one what it lacks. */
function marking({ virtual }: FileWorld, config: Config): (host: KubeObject) => KubeObject {
  const { names } = createTranslators(config);
  const isSynced = isSyncedBy(config);
  const originals = new Map<string, KubeObject>();
  for (const object of virtual.toReversed()) {
    const resource = resourceOf(object, config);
    const target = isSynced(object)
      ? names.toHost(nameOf(object))
      : names.referenceToHost(nameOf(object), resource);
    if (target !== undefined) originals.set(qualifiedKey(resource, target), object);
  }
  const withMarker = (host: KubeObject, namespace: string, annotations: StringMap): KubeObject => {
    const labels = { ...markerLabels(names.vcluster, namespace), ...host.metadata.labels };
    return { ...host, metadata: { ...host.metadata, labels, annotations } };
  };
  return (host) => {
    const { annotations } = host.metadata;
    const isCopy = isSynced(host);
    const resource = resourceOf(host, config);
    if (annotations !== undefined) {
      const named = isCopy ? undefined : virtualByAnnotations(host, resource);
      return named === undefined ? host : withMarker(host, named.namespace, annotations);
    }
    const original = originals.get(qualifiedKeyOf(host));
    if (original === undefined) return host;
    const identity = identityAnnotations(original, resource, nameOf(host));
    const { namespace } = nameOf(original);
    return withMarker(host, namespace, isCopy ? identity : { ...identity, [LAST_SYNCED]: '' });
  };
}

/** Copies without a sync record get that of the translation as it is now. */
async function withRecords(world: FileWorld, config: Config, options: OfflineOptions): Promise<FileWorld> {
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
    return { kind: 'object', object: await translatedBack(host, name, found) };
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
      return found({ kind: action === direction ? 'object' : 'elsewhere', object });
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

export function syncedResources(config: Config): readonly Resource[] {
  return syncedKinds(config).map(({ kind }) => kind.resource);
}

export function isSyncedBy(config: Config): (object: KubeObject) => boolean {
  const resources = syncedResources(config);
  return (object) => resources.some((resource) => isOfKind(object, resource));
}

/** The version that the virtual object had in memory is that of no cluster. */
function unversioned(copy: KubeObject): KubeObject {
  const record = recordOf(copy);
  if (record === undefined) return copy;
  const annotations = { ...copy.metadata.annotations, [LAST_SYNCED]: withoutRevision(record) };
  return { ...copy, metadata: { ...copy.metadata, annotations } };
}

/** Gives objects without a namespace the default one of their cluster, as kubectl does. */
export function placedWorld({ virtual, host }: FileWorld, config: Config): FileWorld {
  return { virtual: inNamespace(virtual, 'default'), host: inNamespace(host, config.host.namespace) };
}

function inNamespace(objects: readonly KubeObject[], namespace: string): KubeObject[] {
  return objects.map((object) =>
    object.metadata.namespace || object.kind === 'Namespace'
      ? object
      : { ...object, metadata: { ...object.metadata, namespace } },
  );
}
