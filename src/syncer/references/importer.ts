/** Reconciles one referenced object. Both directions are one mechanism, {@link Mirror}: a copy that has to equal its source. Idempotent. */

import type { Clock } from '../../base/clock.ts';
import { invariant } from '../../base/errors.ts';
import {
  isTerminating,
  keyOf,
  nameOf,
  objectKey,
  type KubeObject,
  type NamespacedName,
} from '../../kube/object.ts';
import {
  ignoreNotFound,
  isAlreadyExists,
  isConflict,
  isNamespaceMissing,
  isNamespaceTerminating,
} from '../../kube/status-error.ts';
import type { ClusterName } from '../../kube/types.ts';
import { UNCHANGED } from '../reconcile/controller.ts';
import {
  correctionWaitMs,
  deletionsOf,
  noteChange,
  noteDeletion,
  noteDrift,
  OBJECTION_MS,
  recreationWaitMs,
  type DriftVerdict,
  type RecreationDelays,
} from '../reconcile/guards.ts';
import { again, later, type ReconcileResult, type Wait } from '../reconcile/left.ts';
import { changedPaths } from '../reconcile/object-diff.ts';
import { describeTermination } from '../../kube/termination.ts';
import { isSameVersion, ObjectState } from '../reconcile/object-state.ts';
import { REPORTED_AFTER_MS } from '../reconcile/termination.ts';
import { needsWrite } from '../translate/content.ts';
import { MANAGED_BY_LABEL } from '../translate/labels.ts';
import {
  decideReference,
  decideUnreferenced,
  namespaceEnding,
  namespaceNotFound,
  observeReference,
  surplusCopies,
  type ReferenceDecision,
  type ReferenceObservation,
  type ReferenceProblem,
} from './decide-reference.ts';
import type { ReferenceEnvironment } from './environment.ts';
import {
  forgeHostImport,
  forgeVirtualImport,
  isImport,
  isKnownImmutable,
  isRefusedAsImmutable,
} from './import-forge.ts';
import { isWhole, type KindCaches, type KindSide } from './kind-caches.ts';
import type { KindRegistry } from './kind-registry.ts';
import type { ReferenceChanges } from './reference-changes.ts';
import { parseReferenceId, type ReferenceId, type ReferenceIndex } from './reference-index.ts';
import {
  alteredNote,
  contestedNote,
  endingNote,
  importedNote,
  replacedNote,
  type ReferenceNotices,
} from './reference-notices.ts';
import { refusalOfContent, refusalOfSource, type RefusalRules } from './refusals.ts';

export interface ImporterOptions {
  readonly environment: ReferenceEnvironment;
  readonly rules: RefusalRules;
  readonly kinds: KindRegistry;
  readonly index: ReferenceIndex;
  readonly changes: ReferenceChanges;
  readonly notices: ReferenceNotices;
}

interface ImportJob {
  readonly id: ReferenceId;
  readonly caches: KindCaches;
  readonly seen: ReferenceObservation;
  readonly decision: ReferenceDecision;
  readonly isReferenced: boolean;
}

interface Mirror {
  readonly to: ClusterName;
  /** As cached, which may be metadata only. */
  readonly source: KubeObject;
  readonly copy: KubeObject | undefined;
  readonly place: NamespacedName;
  /** The whole source. Undefined: it is not what the cache shows, or must not be copied. */
  readSource(): Promise<KubeObject | undefined>;
  /** Everything of `actual` that is not copied is kept. */
  forge(source: KubeObject, actual: KubeObject | undefined): Promise<KubeObject>;
}

/** Delays before a deleted copy is created again; of one in the virtual cluster so that a tenant can replace it with an own object. */
const RECREATION: Readonly<Record<ClusterName, RecreationDelays | undefined>> = {
  host: undefined,
  virtual: { free: 0, baseMs: 1500 },
};
const DIFFERS = { host: 'differs from the virtual object', virtual: 'differs from the host object' } as const;
const DELETED = { host: 'host copy was deleted', virtual: 'import was deleted' } as const;

const UNREFERENCED = 'no longer referenced';
/** A synced object that cannot be translated may still need the import. */
const STILL_IN_USE: ReconcileResult = {
  outcome: 'unchanged',
  reason: 'still in use',
  left: later('still in use', 5000),
};
const OF_ANOTHER_CLUSTER: ReconcileResult = {
  outcome: 'unchanged',
  reason: 'another virtual cluster',
  left: later('another virtual cluster', OBJECTION_MS),
};

class ImportState extends ObjectState {
  readonly to: ClusterName;

  constructor(to: ClusterName) {
    super();
    this.to = to;
  }

  isSourceUnchanged(source: KubeObject): boolean {
    const { synced, to } = this;
    return synced !== undefined && isSameVersion(to === 'host' ? synced.virtual : synced.host, source);
  }

  isInStep(source: KubeObject, copy: KubeObject): boolean {
    return this.synced !== undefined && this.isUnchanged(this.#pair(source, copy));
  }

  /** Only the metadata: the caches hold no more of most of these objects. */
  markSynced({ metadata: source }: KubeObject, { metadata: copy }: KubeObject): void {
    const pair = this.#pair({ metadata: source }, { metadata: copy });
    this.remember(pair, pair, false);
  }

  #pair(source: KubeObject, copy: KubeObject) {
    const pair = this.to === 'host' ? { virtual: source, host: copy } : { virtual: copy, host: source };
    return { ...pair, service: undefined, isUnserved: false };
  }
}

export class Importer {
  readonly #options: ImporterOptions;
  readonly #clock: Clock;
  readonly #states = new Map<ReferenceId, ImportState>();

  constructor(options: ImporterOptions) {
    this.#options = options;
    this.#clock = options.environment.clock;
  }

  async reconcile(id: ReferenceId): Promise<ReconcileResult> {
    const { kinds, index, rules, environment } = this.#options;
    const { kind, namespace, name } = parseReferenceId(id);
    const caches = kinds.caches(kind);
    this.#states.get(id)?.begin();
    if (caches === undefined) return { outcome: 'ignored', reason: 'kind is not watched' };
    const isReferenced = index.isReferenced(id);
    // References that are still unreferenced when all synced objects have been reconciled are enqueued again.
    if (!isReferenced && !index.isComplete) return { outcome: 'ignored' };
    const seen = observeReference(caches, { namespace, name }, environment.names);
    const decision = isReferenced ? decideReference(seen, rules) : decideUnreferenced(seen);
    const job: ImportJob = { id, caches, seen, decision, isReferenced };
    try {
      const result = await this.#carryOut(job);
      environment.referenceDecided?.(seen, decision, isReferenced, { result });
      return result;
    } catch (error) {
      environment.referenceDecided?.(seen, decision, isReferenced, { error });
      throw error;
    }
  }

  async #carryOut(job: ImportJob): Promise<ReconcileResult> {
    const { caches, seen, isReferenced } = job;
    // The copies keep the name that they reference until a refused source is allowed.
    if (isReferenced && seen.source !== undefined && caches.isRefusalOutdated(seen.source))
      await this.#readAllowed(job, seen.source);
    return this.#act(job, await this.#removeSurplus(job));
  }

  stateOf(id: ReferenceId): ObjectState | undefined {
    return this.#states.get(id);
  }

  /** Another client deleted a copy, or a source. */
  noteDeletion(id: ReferenceId, cluster: ClusterName): void {
    const state = this.#states.get(id);
    if (state?.to === cluster && state.synced !== undefined)
      state.deletions = noteDeletion(state.deletions, this.#clock.monotonicMs());
  }

  forgetVersions(id: ReferenceId): void {
    this.#states.get(id)?.forgetVersions();
  }

  forgetAllVersions(): void {
    for (const state of this.#states.values()) state.forgetVersions();
  }

  async #act(job: ImportJob, removed: ReconcileResult): Promise<ReconcileResult> {
    switch (job.decision.action) {
      case 'paused':
        return this.#pause(job);
      case 'none':
        return this.#withoutImport(job, removed);
      case 'to-host': {
        this.#reportReplaced(job);
        const result = await this.#mirror(job, this.#mirrorToHost(job));
        return removed.left === undefined ? result : { ...result, left: removed.left };
      }
      case 'to-virtual':
        return this.#mirror(job, this.#mirrorToVirtual(job));
    }
  }

  #pause({ id, caches, seen, isReferenced }: ImportJob): ReconcileResult {
    this.#options.notices.problem(id, undefined);
    if (isReferenced) return { outcome: 'ignored', reason: 'controlled by another' };
    this.#states.delete(id);
    caches.forgetCopy(keyOf(seen.virtual));
    return { outcome: 'ignored' };
  }

  #withoutImport(job: ImportJob, removed: ReconcileResult): ReconcileResult {
    const { id, seen, isReferenced } = job;
    const { problem } = job.decision;
    if (seen.object !== undefined) this.#reportReplaced(job);
    if (isReferenced) this.forgetVersions(id);
    else this.#states.delete(id);
    if (problem !== undefined) return this.#refuse(id, problem);
    this.#options.notices.problem(id, undefined);
    return removed;
  }

  #refuse(id: ReferenceId, problem: ReferenceProblem): ReconcileResult {
    this.#options.notices.problem(id, problem);
    return { outcome: 'refused', reason: problem.reason, note: problem.note };
  }

  async #removeSurplus(job: ImportJob): Promise<ReconcileResult> {
    const { id, caches, seen, decision, isReferenced } = job;
    const { changes, environment } = this.#options;
    const why = isReferenced ? 'no longer imported' : UNREFERENCED;
    let result = UNCHANGED;
    for (const copy of surplusCopies(seen, decision)) {
      if (this.#isNeeded(job, copy)) {
        result = STILL_IN_USE;
        continue;
      }
      if (seen.object === undefined && (await environment.objection()) !== undefined) {
        result = OF_ANOTHER_CLUSTER;
        continue;
      }
      if (isTerminating(copy)) {
        result = { ...ENDING, note: noteOfEnd(copy) };
        continue;
      }
      if (seen.object === undefined && (await this.#isMissedByCache(job))) {
        result = STILL_IN_USE;
        continue;
      }
      await this.#delete(caches.sides.host, copy, why);
      caches.forgetCopy(keyOf(seen.virtual));
      this.#forget(id, 'host');
      result = { ...result, outcome: 'deleted', reason: UNREFERENCED };
    }
    const { imported } = seen;
    if (imported === undefined || decision.action === 'to-virtual' || decision.action === 'paused')
      return result;
    if (!isReferenced && !changes.isDispensable(imported)) return STILL_IN_USE;
    if (isTerminating(imported)) return { ...ENDING, note: noteOfEnd(imported) };
    await this.#delete(caches.sides.virtual, imported, why);
    caches.forgetImport(imported.metadata.uid ?? '');
    this.#forget(id, 'virtual');
    return { outcome: 'deleted', reason: UNREFERENCED };
  }

  /** The former leader may have imported an object that the cache has not reached. */
  async #isMissedByCache({ caches: { sides }, seen }: ImportJob): Promise<boolean> {
    const { client, resource, cache } = sides.virtual;
    const found = await ignoreNotFound(client.get(resource, seen.virtual));
    if (found !== undefined) cache.observeRead(found);
    return found !== undefined && !isImport(found, this.#options.environment.names.vcluster);
  }

  async #delete({ writer }: KindSide, object: KubeObject, why: string): Promise<'deleted' | 'dryRun'> {
    return writer.delete(nameOf(object), object.metadata.uid ?? '', why);
  }

  /** A synced object on the host may still reference this copy. */
  #isNeeded({ id, decision: { name }, isReferenced }: ImportJob, copy: KubeObject): boolean {
    const { index, changes } = this.#options;
    if (!isReferenced) return !changes.isDispensable(copy);
    const hostKey = objectKey(copy);
    const isMoving = name !== undefined && keyOf(name) !== hostKey;
    return (
      isMoving && [...index.referrersOf(id)].some((referrer) => index.writtenBy(referrer, id) === hostKey)
    );
  }

  /** A warning, because the host copies reference another object from now on. */
  #reportReplaced({ id, seen }: ImportJob): void {
    const state = this.#states.get(id);
    if (state?.to !== 'virtual' || state.synced === undefined) return;
    this.#options.notices.alert(id, 'ReferenceImported', replacedNote(seen));
  }

  #mirrorToHost({ seen, caches }: ImportJob): Mirror {
    const { object, target, ours } = seen;
    const { names, labels, owner } = this.#options.environment;
    invariant(object && target, 'an object that is imported into the host exists and has a target there');
    return {
      to: 'host',
      source: object,
      copy: ours.find((one) => objectKey(one) === keyOf(target)),
      place: target,
      readSource: async () => object,
      forge: (source, host) =>
        forgeHostImport(source, caches.kind, { target, host }, { names, labels, owner: owner.current }),
    };
  }

  #mirrorToVirtual(job: ImportJob): Mirror {
    const { seen, caches } = job;
    const { source, imported, virtual } = seen;
    invariant(source, 'an object that is imported from the host exists');
    const { vcluster } = this.#options.environment.names;
    return {
      to: 'virtual',
      source,
      copy: imported,
      place: virtual,
      readSource: () => this.#readAllowed(job, source),
      forge: async (full, current) => forgeVirtualImport(full, caches.kind, { virtual, current }, vcluster),
    };
  }

  async #mirror(job: ImportJob, mirror: Mirror): Promise<ReconcileResult> {
    const { to, source, copy } = mirror;
    const state = this.#stateFor(job.id, to);
    const nowMs = this.#clock.monotonicMs();
    if (copy === undefined) {
      const waitMs = recreationWaitMs(state.deletions, nowMs, RECREATION[to]);
      if (waitMs > 0) return { outcome: 'pending', reason: DELETED[to], left: later(DELETED[to], waitMs) };
      if (to === 'host' && deletionsOf(state.deletions, nowMs) > 0)
        await this.#options.environment.owner.refresh();
    } else {
      this.#options.notices.problem(job.id, undefined);
      if (state.isInStep(source, copy)) return this.#inStep(job, copy, state);
      // Only corrections are delayed. Changes of the source are written immediately.
      const waitMs = state.isSourceUnchanged(source) ? correctionWaitMs(state.contest, nowMs) : 0;
      if (waitMs > 0) return contested(waitMs);
    }
    const full = await mirror.readSource();
    if (full === undefined) return requeued('source has changed');
    return copy === undefined
      ? this.#create(job, mirror, full)
      : this.#update(job, mirror, { full, copy, state });
  }

  async #create(job: ImportJob, mirror: Mirror, full: KubeObject): Promise<ReconcileResult> {
    const { id, caches } = job;
    const wanted = await mirror.forge(full, undefined);
    try {
      const stored = await caches.sides[mirror.to].writer.create(wanted, 'is referenced');
      this.#options.notices.problem(id, undefined);
      this.#options.notices.imported(id, importedNote(job.seen, mirror));
      await this.#markSynced(job, mirror, { full, stored, sent: wanted });
      return { outcome: 'created' };
    } catch (error) {
      if (mirror.to === 'virtual' && isNamespaceMissing(error))
        return this.#refuse(id, namespaceNotFound(job.seen));
      if (mirror.to === 'virtual' && isNamespaceTerminating(error))
        return this.#refuse(id, namespaceEnding(job.seen));
      if (!isAlreadyExists(error)) throw error;
      return this.#resolveNameTaken(job, mirror, error);
    }
  }

  /** The existing object is not in the cache: either it is our copy and the cache is behind, or another client created it. */
  async #resolveNameTaken(job: ImportJob, mirror: Mirror, error: unknown): Promise<ReconcileResult> {
    const { caches, seen } = job;
    const { environment, rules } = this.#options;
    const existing = await this.#readPlace(job, mirror);
    if (existing === undefined || mirror.to === 'virtual') throw error;
    const { ours } = observeReference(caches, seen.virtual, environment.names);
    if (ours.some((copy) => objectKey(copy) === keyOf(mirror.place)))
      return requeued('host copy has changed');
    const { problem } = decideReference({ ...seen, isTargetTaken: true }, rules);
    invariant(problem, 'an object whose name is taken on the host is refused');
    return this.#refuse(job.id, problem);
  }

  async #update(
    job: ImportJob,
    mirror: Mirror,
    { full, copy, state }: { full: KubeObject; copy: KubeObject; state: ImportState },
  ): Promise<ReconcileResult> {
    const { caches } = job;
    const { to } = mirror;
    rememberMade(job, to, copy);
    const isCached = to === 'virtual' && isWhole(caches.kind);
    const actual = isCached ? copy : await this.#readPlace(job, mirror);
    if (!isSameObject(actual, copy)) return requeued('copy has changed');
    const wanted = await mirror.forge(full, actual);
    if (!needsWrite(wanted, actual)) {
      state.markSynced(full, actual);
      return this.#inStep(job, actual, state);
    }
    const verdict = this.#drift(state, full);
    if (verdict.waitMs > 0) return this.#waitWhileContested(job, verdict);
    try {
      const { writer, resource } = caches.sides[to];
      if (isKnownImmutable(actual, wanted, resource))
        return isTerminating(actual)
          ? this.#inStep(job, actual, state)
          : await this.#deleteToRecreate(job, mirror, actual);
      const stored = await writer.update(wanted, DIFFERS[to]);
      await this.#markSynced(job, mirror, { full, stored, sent: actual });
      return { outcome: 'updated', reason: DIFFERS[to] };
    } catch (error) {
      if (isRefusedAsImmutable(error, caches.sides[to].resource) && !isTerminating(actual))
        return this.#deleteToRecreate(job, mirror, actual);
      if (isConflict(error)) await this.#readPlace(job, mirror);
      throw error;
    }
  }

  /** What flows to a copy goes on being written while finalizers keep it there. Its end causes an event, and it is created again. */
  #inStep({ id, seen }: ImportJob, copy: KubeObject, state: ImportState): ReconcileResult {
    if (!isTerminating(copy)) return UNCHANGED;
    const nowMs = this.#clock.monotonicMs();
    const termination = state.noteTermination(copy.metadata.uid, nowMs, false);
    const waiting = { ...ENDING, note: noteOfEnd(copy) };
    if (termination.isReported) return waiting;
    const leftMs = termination.sinceMs + REPORTED_AFTER_MS - nowMs;
    if (leftMs > 0) return { ...waiting, left: later('its end is waited for', leftMs) };
    termination.isReported = true;
    this.#options.notices.alert(id, 'Terminating', endingNote(seen, state.to, copy));
    return waiting;
  }

  async #deleteToRecreate(
    { id, caches }: ImportJob,
    { to }: Mirror,
    actual: KubeObject,
  ): Promise<ReconcileResult> {
    const reason = `${DIFFERS[to]}, and it is immutable`;
    const outcome = await this.#delete(caches.sides[to], actual, reason);
    this.forgetVersions(id);
    // A dry run leaves the copy in place, so a requeue would delete it again in an endless loop.
    return { outcome: 'deleted', reason, ...(outcome === 'dryRun' ? {} : { left: again(reason) }) };
  }

  /** Reads what is in the place of the copy, for which the cache is, or may be, behind. Undefined: nothing. */
  async #readPlace({ caches, seen }: ImportJob, { to, place }: Mirror): Promise<KubeObject | undefined> {
    const { client, resource, cache } = caches.sides[to];
    const key = keyOf(place);
    const existing = await ignoreNotFound(client.get(resource, place));
    if (existing === undefined) cache.observeAbsence(key, cache.get(key)?.metadata.uid ?? '');
    // The host cache has only objects with our marker. A tenant may have created the object in the virtual cluster: an event, because the
    // copies of its referrers name it from now on.
    else if (
      to === 'virtual' ||
      this.#isMarked(existing) ||
      caches.isKnownCopy(keyOf(seen.virtual), existing)
    )
      cache.observeRead(existing);
    return existing;
  }

  #isMarked({ metadata: { labels } }: KubeObject): boolean {
    return labels?.[MANAGED_BY_LABEL] === this.#options.environment.names.vcluster;
  }

  /** The cache holds metadata only, so the content is checked right before it is copied. Undefined: it is refused, or another object's by now. */
  async #readAllowed({ caches }: ImportJob, source: KubeObject): Promise<KubeObject | undefined> {
    const { client, resource } = caches.sides.host;
    const full = await ignoreNotFound(client.get(resource, nameOf(source)));
    if (full === undefined || full.metadata.uid !== source.metadata.uid) return undefined;
    const { rules } = this.#options;
    const refusal = refusalOfSource(full, resource, rules) ?? refusalOfContent(full, resource, rules);
    caches.recordRefusal(full, refusal);
    return refusal === undefined ? full : undefined;
  }

  /** Call before a correction is written. It may have to wait if another client changed the copy and its source did not change. */
  #drift(state: ImportState, source: KubeObject): DriftVerdict {
    if (!state.isSourceUnchanged(source)) {
      state.contest = noteChange(state.contest);
      return { waitMs: 0, isReportable: false };
    }
    const { contest, verdict } = noteDrift(state.contest, this.#clock.monotonicMs());
    state.contest = contest;
    return verdict;
  }

  #waitWhileContested({ id, seen }: ImportJob, { waitMs, isReportable }: DriftVerdict): ReconcileResult {
    const note = contestedNote(seen, waitMs);
    if (isReportable) this.#options.notices.alert(id, 'Contested', note);
    return { ...contested(waitMs), note };
  }

  /** `stored`: what the API server has made of the copy, which stays like that until its source changes; undefined in a dry run. */
  async #markSynced(
    job: ImportJob,
    mirror: Mirror,
    { full, stored, sent }: { full: KubeObject; stored: KubeObject | undefined; sent: KubeObject },
  ): Promise<void> {
    const { id } = job;
    if (stored !== undefined) {
      rememberMade(job, mirror.to, stored);
      const wanted = await mirror.forge(full, stored);
      if (needsWrite(wanted, stored))
        this.#options.notices.alert(
          id,
          'Contested',
          alteredNote(job.seen, mirror.to, changedPaths(wanted, stored)),
        );
    }
    this.#stateFor(id, mirror.to).markSynced(full, stored ?? sent);
  }

  /** Creates it where there is none, or one of the other direction. */
  #stateFor(id: ReferenceId, to: ClusterName): ImportState {
    const known = this.#states.get(id);
    if (known?.to === to) return known;
    const state = new ImportState(to);
    this.#states.set(id, state);
    return state;
  }

  #forget(id: ReferenceId, to: ClusterName): void {
    if (this.#states.get(id)?.to === to) this.#states.delete(id);
  }
}

/** Its labels and annotations say so only as long as no client edits them. */
function rememberMade({ caches, seen }: ImportJob, to: ClusterName, copy: KubeObject): void {
  if (to === 'virtual') caches.rememberImport(copy);
  else caches.rememberCopy(keyOf(seen.virtual), copy);
}

/** The end of a copy causes an event. */
const ENDING = { outcome: 'terminating', reason: 'Terminating' } as const;

function noteOfEnd(copy: KubeObject): string {
  return `"${objectKey(copy)}" ${describeTermination(copy)}`;
}

/** The cache is behind the API server; the event usually arrives sooner. */
const REQUEUE_AFTER_MS = 500;

function contested(waitMs: number): Wait {
  const left = later('another writer keeps overwriting what was written', waitMs);
  return { outcome: 'contested', reason: 'Contested', left };
}

function requeued(reason: string): ReconcileResult {
  return { outcome: 'again', left: later(reason, REQUEUE_AFTER_MS) };
}

/** The cache may be behind the deletion of what is there. */
function isSameObject(actual: KubeObject | undefined, copy: KubeObject): actual is KubeObject {
  return (
    actual !== undefined &&
    actual.metadata.uid === copy.metadata.uid &&
    isTerminating(actual) === isTerminating(copy)
  );
}
