/** Reads, writes and deletes objects of any kind with the semantics of a kube-apiserver, over one store. Retries writes that lose a race. */

import { metadataOf, isTimeMs, timeText } from '../../kube/object.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { type JsonArray, type JsonObject, cloneJson, listField, numberField, text } from '../../base/json.ts';
import type { Random } from '../../base/random.ts';
import { StoreError, type Store, type StoredEntry } from '../storage/store.ts';
import {
  type Admission,
  generatedName,
  hasGracePeriod,
  isDeletionComplete,
  ObjectWriter,
  type Recheck,
  type WriteContext,
  type WriterOptions,
  type Written,
  requestedVersion,
} from './object-writer.ts';
import {
  alreadyExists,
  conflict,
  invalid,
  invalidValue,
  nameExhausted,
  notFound,
  stillDeleting,
} from '../status.ts';
import type { DeleteOptions, PropagationPolicy } from './query-options.ts';
import { FOREGROUND, ORPHAN, withoutCollectorFinalizers } from '../metadata.ts';
import { storedForm } from './object-view.ts';
import {
  asConflict,
  checkUid,
  isRevisionConflict,
  currentForm,
  groupName,
  kindName,
  storeKey,
  type Target,
  type SubresourceAction,
} from './resource-definition.ts';

export interface RegistryOptions extends WriterOptions {
  readonly random: Random;
}

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

/** Attempts to find a free generated name, as in kube-apiserver ≥ 1.32. */
const GENERATE_ATTEMPTS = 8;
/** Attempts of a write without a resourceVersion when other writes conflict. */
const WRITE_ATTEMPTS = 20;

export class ObjectRegistry {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly admission: Admission;
  /** Single attempts, for a caller that retries by itself. */
  readonly writer: ObjectWriter;
  /** By uid: the end of the grace period. */
  readonly #reapers = new Map<string, Timer>();

  constructor(options: RegistryOptions) {
    this.store = options.store;
    this.clock = options.clock;
    this.random = options.random;
    this.admission = options.admission;
    this.writer = new ObjectWriter(options);
  }

  /** The object if it exists and is visible to the target's user. */
  async find(target: Target): Promise<StoredEntry | undefined> {
    return visibleEntry(target, await this.store.get(storeKey(target)));
  }

  /** Throws 404. */
  async get(target: Target): Promise<StoredEntry> {
    const entry = visibleEntry(target, await this.store.get(storeKey(target)));
    if (!entry) throw notFound(groupName(target.definition), target.name);
    return entry;
  }

  async create(target: Target, body: JsonObject, context: WriteContext): Promise<Written> {
    const { definition, namespace } = target;
    const prefix = text(metadataOf(body), 'generateName');
    const isGenerated = text(metadataOf(body), 'name') === '' && prefix !== '';
    for (let attempt = 1; ; attempt++) {
      const name = isGenerated ? generatedName(prefix, this.random) : text(metadataOf(body), 'name');
      const named = { ...target, name };
      await this.admission.beforeCreate?.(definition, namespace, name);
      try {
        return await this.writer.insert(named, body, context);
      } catch (error) {
        if (!(error instanceof StoreError) || error.code !== 'exists') throw error;
        if (isGenerated && attempt < GENERATE_ATTEMPTS) continue;
        if (isGenerated) throw nameExhausted(groupName(definition), name);
        const isDeleting = error.current && text(metadataOf(error.current.value), 'deletionTimestamp') !== '';
        throw isDeleting
          ? stillDeleting(groupName(definition), name)
          : alreadyExists(groupName(definition), name);
      }
    }
  }

  async update(target: Target, body: JsonObject, context: WriteContext): Promise<Written> {
    const { definition, name } = target;
    for (let attempt = 1; ; attempt++) {
      const entry = await this.find(target);
      if (!entry) {
        if (!definition.strategy.allowsCreateOnUpdate || target.subresource) {
          throw notFound(groupName(definition), name);
        }
        const { resourceVersion: _ignored, ...metadata } = metadataOf(body);
        checkUid(target, '', text(metadata, 'uid'));
        return this.create(target, { ...body, metadata }, context);
      }
      const version = requestedVersion(body);
      if (version === '' && !definition.allowsUnconditionalUpdate) {
        const detail = 'must be specified for an update';
        throw invalid(groupName(definition), name, [invalidValue('metadata.resourceVersion', 0, detail)]);
      }
      checkUid(target, text(metadataOf(entry.value), 'uid'), text(metadataOf(body), 'uid'));
      try {
        return await this.writer.replace(target, entry, body, context);
      } catch (error) {
        // Without a requested version the write is retried on the newer state.
        if (!isRevisionConflict(error) || version !== '' || attempt >= WRITE_ATTEMPTS)
          throw asConflict(error, target);
      }
    }
  }

  /** Throws 404, 409 when a precondition does not hold, 403 for a protected object, and what `recheck` throws; absent: the server deletes. */
  delete(target: Target, options: DeleteOptions, recheck?: Recheck): Promise<Deletion> {
    return this.modify(
      target,
      async (entry) => {
        checkPreconditions(target, entry, options);
        await this.admission.beforeDelete?.(target.definition, entry);
        return this.#deleteOnce(target, entry, options, recheck);
      },
      false,
    );
  }

  /** Reads the object and calls `change`, again after a conflict unless the change names a resourceVersion (`isPinned`). */
  async modify<Result>(
    target: Target,
    change: (entry: StoredEntry) => Promise<Result>,
    isPinned: boolean,
  ): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      const entry = await this.get(target);
      try {
        return await change(entry);
      } catch (error) {
        if (!isRevisionConflict(error)) throw error;
        if (isPinned || attempt >= WRITE_ATTEMPTS) throw asConflict(error, target);
      }
    }
  }

  async #deleteOnce(
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
    const { store, writer } = this;
    const update = (): Promise<StoredEntry> => store.update(entry.key, stored, entry.revision);
    const written = await writer.commit(definition, 'updated', update, recheck);
    this.#reapLater(target, object);
    return { object, resourceVersion: String(written.revision), uid, isGone: false, wasPending: false };
  }

  async #remove(target: Target, entry: StoredEntry, recheck: Recheck | undefined): Promise<void> {
    const { store, writer } = this;
    const remove = (): Promise<StoredEntry> => store.delete(entry.key, entry.revision);
    await writer.commit(target.definition, 'deleted', remove, recheck);
    this.#cancelReaper(text(metadataOf(entry.value), 'uid'));
  }

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
      metadata['deletionTimestamp'] = timeText(this.clock.now() + grace * 1000);
      metadata['deletionGracePeriodSeconds'] = grace;
      if (definition.hasGeneration) metadata['generation'] = numberField(metadata, 'generation') + 1;
      definition.strategy.beginDeletion(object);
      return { object, isChanged: true, isPending: false };
    }
    const previousGrace = numberField(metadata, 'deletionGracePeriodSeconds');
    if (grace < previousGrace) {
      const dueMs = Date.parse(started) - (previousGrace - grace) * 1000;
      // A stored time may be none.
      metadata['deletionTimestamp'] = timeText(isTimeMs(dueMs) ? dueMs : this.clock.now() + grace * 1000);
      metadata['deletionGracePeriodSeconds'] = grace;
      return { object, isChanged: true, isPending: false };
    }
    return { object, isChanged: finalizers !== undefined, isPending: previousGrace > 0 };
  }

  /** Removes the object at the end of its grace period, unless it has finalizers. */
  #reapLater(target: Target, object: JsonObject): void {
    const metadata = metadataOf(object);
    const uid = text(metadata, 'uid');
    this.#cancelReaper(uid);
    if (!hasGracePeriod(object)) return;
    const { clock } = this;
    const delayMs = Math.max(0, Date.parse(text(metadata, 'deletionTimestamp')) - clock.now());
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

/** For the target's user, an object that is not visible does not exist. */
function visibleEntry(
  { definition, isVisible }: Target,
  entry: StoredEntry | undefined,
): StoredEntry | undefined {
  if (!entry || !isVisible) return entry;
  return isVisible(currentForm(definition, entry)) ? entry : undefined;
}

function checkPreconditions(target: Target, entry: StoredEntry, options: DeleteOptions): void {
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

const POLICY_FINALIZERS = { Orphan: [ORPHAN], Foreground: [FOREGROUND], Background: [] };

/** The finalizers with that of the policy instead of those of other policies; undefined when nothing changes. */
function withPolicy(finalizers: JsonArray, policy: PropagationPolicy | undefined): JsonArray | undefined {
  if (policy === undefined) return undefined;
  const next = [...withoutCollectorFinalizers(finalizers), ...POLICY_FINALIZERS[policy]];
  const present = new Set(finalizers);
  const isSame = next.length === finalizers.length && next.every((name) => present.has(name));
  return isSame ? undefined : next;
}

/** Retried after a conflict with another write. `body` is decoded. */
export function performAction(
  registry: ObjectRegistry,
  target: Target,
  action: SubresourceAction,
  body: JsonObject,
  context: WriteContext,
): Promise<Written> {
  const { definition } = target;
  const change = async (entry: StoredEntry): Promise<Written> => {
    const previous = currentForm(definition, entry);
    await registry.writer.admit({ target, next: cloneJson(previous), previous, entry }, context);
    const result = action.perform(entry.value, body, context.user);
    if (context.isDryRun)
      return { object: previous, resourceVersion: String(entry.revision), isCreated: true };
    const update = (): Promise<StoredEntry> =>
      registry.store.update(entry.key, result.stored, entry.revision);
    const written = await registry.writer.commit(definition, 'updated', update, context.recheck);
    const object = result.shown(currentForm(definition, written));
    return { object, resourceVersion: String(written.revision), isCreated: true };
  };
  return registry.modify(target, change, false);
}
