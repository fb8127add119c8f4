/** Deletes objects: preconditions, finalizers, grace periods, and the removal of objects at the end of their grace period. */

import { metadataOf, timeText } from '../../kube/object.ts';
import type { Timer } from '../../base/clock.ts';
import { cloneJson, type JsonArray, type JsonObject, listField, text } from '../../base/json.ts';
import { StoreError, type StoredEntry } from '../storage/store.ts';
import type { DeleteOptions, PropagationPolicy } from './query-options.ts';
import { FOREGROUND, ORPHAN, withoutCollectorFinalizers } from '../metadata.ts';
import type { ObjectRegistry } from './object-registry.ts';
import { type Recheck, isDeletionComplete } from './object-writer.ts';
import { isRevisionConflict, currentForm, groupName, kindName, type Target } from './resource-definition.ts';
import { storedForm } from './object-view.ts';
import { conflict, notFound } from '../status.ts';

export interface Deletion {
  /** The object after the request, in the shape of its kind. */
  readonly object: JsonObject;
  readonly resourceVersion: string;
  readonly uid: string;
  /** The object is removed, or would be without the dry run; otherwise it waits for finalizers or its grace period. */
  readonly isGone: boolean;
  /** Nothing changed: the deletion had begun before. */
  readonly wasPending: boolean;
}

const ATTEMPTS = 20;

export class ObjectDeleter {
  readonly #registry: ObjectRegistry;
  /** By uid: the end of the grace period. */
  readonly #reapers = new Map<string, Timer>();

  constructor(registry: ObjectRegistry) {
    this.#registry = registry;
  }

  /** Throws 404, 409 when a precondition does not hold, 403 for a protected object, and what `recheck` throws; absent: the server deletes. */
  async delete(target: Target, options: DeleteOptions, recheck?: Recheck): Promise<Deletion> {
    for (let attempt = 1; ; attempt++) {
      const entry = await this.#registry.get(target);
      this.#checkPreconditions(target, entry, options);
      await this.#registry.admission.beforeDelete?.(target.definition, entry);
      try {
        return await this.#attempt(target, entry, options, recheck);
      } catch (error) {
        if (!isRevisionConflict(error)) throw error;
        if (error instanceof StoreError && error.code === 'missing') {
          throw notFound(groupName(target.definition), target.name);
        }
        if (attempt >= ATTEMPTS) throw error;
      }
    }
  }

  #checkPreconditions(target: Target, entry: StoredEntry, options: DeleteOptions): void {
    const { definition, name } = target;
    const uid = text(metadataOf(entry.value), 'uid');
    if (options.uid !== undefined && options.uid !== uid) {
      const why =
        `the UID in the precondition (${options.uid}) does not match the UID in record (${uid}). ` +
        'The object might have been deleted and then recreated';
      throw conflict(kindName(definition), name, why);
    }
    const revision = String(entry.revision);
    if (options.resourceVersion !== undefined && options.resourceVersion !== revision) {
      const why =
        `the ResourceVersion in the precondition (${options.resourceVersion}) does not match the ResourceVersion in record ` +
        `(${revision}). The object might have been modified`;
      throw conflict(kindName(definition), name, why);
    }
  }

  async #attempt(
    target: Target,
    entry: StoredEntry,
    options: DeleteOptions,
    recheck: Recheck | undefined,
  ): Promise<Deletion> {
    const { definition } = target;
    const before = currentForm(definition, entry);
    const marked = this.#marked(target, before, options);
    const uid = text(metadataOf(before), 'uid');
    const revision = String(entry.revision);
    if (isDeletionComplete(definition, marked.object)) {
      if (!options.isDryRun) await this.#remove(target, entry, recheck);
      return { object: before, resourceVersion: revision, uid, isGone: true, wasPending: false };
    }
    const { object } = marked;
    if (!marked.isChanged || options.isDryRun) {
      return { object, resourceVersion: revision, uid, isGone: false, wasPending: marked.isPending };
    }
    const stored = storedForm(definition, object, entry.value);
    const { store, writer } = this.#registry;
    const update = (): Promise<StoredEntry> => store.update(entry.key, stored, entry.revision);
    const written = await writer.commit(definition, 'updated', update, recheck);
    this.#reapLater(target, object);
    return { object, resourceVersion: String(written.revision), uid, isGone: false, wasPending: false };
  }

  async #remove(target: Target, entry: StoredEntry, recheck: Recheck | undefined): Promise<void> {
    const { store, writer } = this.#registry;
    const remove = (): Promise<StoredEntry> => store.delete(entry.key, entry.revision);
    await writer.commit(target.definition, 'deleted', remove, recheck);
    this.#cancelReaper(text(metadataOf(entry.value), 'uid'));
  }

  /** The object with the metadata of a deletion that has begun. */
  #marked(
    { definition }: Target,
    before: JsonObject,
    options: DeleteOptions,
  ): { object: JsonObject; isChanged: boolean; isPending: boolean } {
    const object = cloneJson(before);
    const metadata = metadataOf(object);
    const finalizers = withPolicy(listField(metadata, 'finalizers'), options.propagationPolicy);
    if (finalizers) metadata['finalizers'] = finalizers;
    const grace = definition.gracePeriodSeconds(object, options.gracePeriodSeconds);
    const started = text(metadata, 'deletionTimestamp');
    if (started === '') {
      metadata['deletionTimestamp'] = timeText(this.#registry.clock.now() + grace * 1000);
      metadata['deletionGracePeriodSeconds'] = grace;
      if (definition.hasGeneration) metadata['generation'] = Number(metadata['generation'] ?? 0) + 1;
      definition.strategy.beginDeletion(object);
      return { object, isChanged: true, isPending: false };
    }
    const previousGrace = Number(metadata['deletionGracePeriodSeconds'] ?? 0);
    if (grace < previousGrace) {
      metadata['deletionTimestamp'] = timeText(Date.parse(started) - (previousGrace - grace) * 1000);
      metadata['deletionGracePeriodSeconds'] = grace;
      return { object, isChanged: true, isPending: false };
    }
    return { object, isChanged: finalizers !== undefined, isPending: previousGrace > 0 };
  }

  /** Removes the object at the end of its grace period, unless it has finalizers. */
  #reapLater(target: Target, object: JsonObject): void {
    const metadata = metadataOf(object);
    const grace = Number(metadata['deletionGracePeriodSeconds'] ?? 0);
    if (grace === 0) {
      this.#cancelReaper(text(metadata, 'uid'));
      return;
    }
    const { clock } = this.#registry;
    const delayMs = Math.max(0, Date.parse(text(metadata, 'deletionTimestamp')) - clock.now());
    const uid = text(metadata, 'uid');
    this.#cancelReaper(uid);
    const timer = clock.schedule(delayMs, () => {
      this.#reapers.delete(uid);
      void this.#reap(target, uid);
    });
    this.#reapers.set(uid, timer);
  }

  #cancelReaper(uid: string): void {
    this.#reapers.get(uid)?.cancel();
    this.#reapers.delete(uid);
  }

  async #reap(target: Target, uid: string): Promise<void> {
    try {
      await this.delete(target, { gracePeriodSeconds: 0, uid });
    } catch {
      // The object is removed already, or its name belongs to another object.
    }
  }

  close(): void {
    for (const timer of this.#reapers.values()) timer.cancel();
    this.#reapers.clear();
  }
}

const POLICY_FINALIZERS = { Orphan: [ORPHAN], Foreground: [FOREGROUND], Background: [] };

/** The finalizers with that of the policy instead of those of other policies; undefined when nothing changes. */
function withPolicy(finalizers: JsonArray, policy: PropagationPolicy | undefined): JsonArray | undefined {
  if (policy === undefined) return undefined;
  const next = [...withoutCollectorFinalizers(finalizers), ...POLICY_FINALIZERS[policy]];
  const present = new Set(finalizers);
  const isSame = next.length === finalizers.length && next.every((name) => present.has(name));
  return isSame ? undefined : next;
}
