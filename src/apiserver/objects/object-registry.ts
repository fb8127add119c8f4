/** Reads and writes objects of any kind with the semantics of a kube-apiserver, over one store. */

import { apiVersionOf } from '../../kube/object.ts';
import type { Clock } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Random } from '../../base/random.ts';
import { StoreError, type Store, type StoredEntry } from '../storage/store.ts';
import type { Admission, AdmissionRequest } from './admission.ts';
import type { FieldWriter } from '../fields/managed-entries.ts';
import { trackUpdate, withManagedFields } from '../fields/managed-fields.ts';
import { invalidValue } from '../field-error.ts';
import { createdMetadata, generatedName, keptMetadata, nextGeneration } from './object-metadata.ts';
import { presented, storedForm } from './presentation/object-view.ts';
import { asConflict, checkUid, isRevisionConflict } from './write-conflicts.ts';
import type { ResourceDefinition, Subresource } from './resource-definition.ts';
import { emptyObject } from '../schema/decode.ts';
import { timeText } from '../schema/scalars.ts';
import {
  alreadyExists,
  conflict,
  invalid,
  MODIFIED,
  nameExhausted,
  notFound,
  stillDeleting,
} from '../status.ts';
import { currentForm, groupName, storeKey, type Target } from '../request/target.ts';
import { SERVER_USER, type UserInfo } from '../request/user.ts';
import { metadataOf, text } from '../validation/metadata.ts';
import {
  requestedVersion,
  canonical,
  isDeletionComplete,
  isNoOpUpdate,
  mergedFor,
  rejectInvalid,
  withGeneration,
} from './write-steps.ts';

export interface RegistryOptions {
  store: Store;
  clock: Clock;
  random: Random;
  admission: Admission;
}

export interface WriteContext {
  readonly user: UserInfo;
  readonly manager: string;
  readonly isDryRun: boolean;
}

/** The result of a write, or of its dry run. */
export interface Written {
  readonly object: JsonObject;
  readonly resourceVersion: string;
  readonly isCreated: boolean;
  /** The object was being deleted, and this write has removed its last finalizer. */
  readonly isDeleted: boolean;
}

/** Attempts to find a free generated name, as in kube-apiserver ≥ 1.32. */
const GENERATE_ATTEMPTS = 8;
/** Attempts of a write without a resourceVersion when other writes conflict. */
const WRITE_ATTEMPTS = 20;

export class ObjectRegistry {
  readonly store: Store;
  readonly clock: Clock;
  readonly admission: Admission;
  readonly #random: Random;

  constructor(options: RegistryOptions) {
    this.store = options.store;
    this.clock = options.clock;
    this.admission = options.admission;
    this.#random = options.random;
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
      const name = isGenerated ? generatedName(prefix, this.#random) : text(metadataOf(body), 'name');
      const named = { ...target, name };
      await this.admission.beforeCreate(definition, namespace, name);
      try {
        return await this.#insert(named, body, context);
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

  async #insert(target: Target, body: JsonObject, context: WriteContext): Promise<Written> {
    const { definition } = target;
    const now = timeText(this.clock.now());
    let object: JsonObject = { ...body, metadata: createdMetadata(metadataOf(body), target, now) };
    if (definition.hasStatus) object['status'] = emptyObject(definition.schema)['status'] ?? {};
    definition.applyDefaults(object);
    const managed = trackUpdate(
      definition,
      { before: emptyObject(definition.schema), after: object, isCreate: true, sent: undefined },
      this.writer(definition, 'Update', context.manager),
    );
    object = withManagedFields(object, managed);
    return this.insertPrepared(target, object, context);
  }

  /** Stores a new object whose `managedFields` are set. Throws `StoreError` `exists`. */
  async insertPrepared(target: Target, object: JsonObject, context: WriteContext): Promise<Written> {
    const { definition } = target;
    definition.prepare(object, undefined, undefined);
    const next = canonical(definition, definition.hasGeneration ? withGeneration(object, 1) : object);
    await this.admit({ target, next, previous: undefined, entry: undefined }, context);
    rejectInvalid(target, next, undefined);
    const stored = storedForm(definition, next, undefined);
    const key = storeKey(target);
    if (context.isDryRun) {
      const current = await this.store.get(key);
      if (current) throw new StoreError('exists', 'the name is taken', current);
      // Nothing is stored, so secrets that are shown only once are not shown.
      const object = definition.view ? definition.view.fromStorage(stored) : next;
      return { object, resourceVersion: '', isCreated: true, isDeleted: false };
    }
    const entry = await this.store.create(key, stored);
    await this.admission.afterWrite(definition, { type: 'created', entry });
    const shown = definition.view?.firstShown?.(next) ?? next;
    return { object: shown, resourceVersion: String(entry.revision), isCreated: true, isDeleted: false };
  }

  async update(target: Target, body: JsonObject, context: WriteContext): Promise<Written> {
    const { definition, name } = target;
    for (let attempt = 1; ; attempt++) {
      const entry = await this.find(target);
      if (!entry) {
        if (!definition.allowsCreateOnUpdate || target.subresource) {
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
        return await this.replace(target, entry, body, context);
      } catch (error) {
        // Without a requested version the write is retried on the newer state.
        if (!isRevisionConflict(error) || version !== '' || attempt >= WRITE_ATTEMPTS)
          throw asConflict(error, target);
      }
    }
  }

  /**
   * Replaces the state in `entry` by `body`; a resourceVersion in the body must be that of the entry. Throws `StoreError` when another write
   * came first.
   */
  async replace(
    target: Target,
    entry: StoredEntry,
    body: JsonObject,
    context: WriteContext,
  ): Promise<Written> {
    const { definition } = target;
    const previous = currentForm(definition, entry);
    const version = requestedVersion(body);
    if (version !== '' && version !== String(entry.revision)) {
      throw conflict(groupName(definition), target.name, MODIFIED);
    }
    const sent = metadataOf(body)['managedFields'];
    const object = mergedFor(target, previous, body);
    definition.applyDefaults(object);
    const managed = trackUpdate(
      definition,
      { before: previous, after: object, isCreate: false, sent },
      this.writer(definition, 'Update', context.manager, target.subresource),
    );
    return this.replacePrepared(target, entry, withManagedFields(object, managed), context);
  }

  /** Stores a new state whose `managedFields` are set. */
  async replacePrepared(
    target: Target,
    entry: StoredEntry,
    object: JsonObject,
    context: WriteContext,
  ): Promise<Written> {
    const { definition } = target;
    const previous = currentForm(definition, entry);
    let next: JsonObject = { ...object, metadata: keptMetadata(metadataOf(object), metadataOf(previous)) };
    definition.prepare(next, previous, entry.value);
    next = canonical(definition, next);
    // Compares canonical forms: an empty field that a client sends is not a change.
    if (definition.hasGeneration) next = withGeneration(next, nextGeneration(definition, next, previous));
    await this.admit({ target, next, previous, entry }, context);
    rejectInvalid(target, next, previous);
    const stored = storedForm(definition, next, entry.value);
    if (definition.view) next = definition.view.fromStorage(stored);
    const same = { resourceVersion: String(entry.revision), isCreated: false, isDeleted: false };
    if (isNoOpUpdate(stored, entry.value)) return { object: previous, ...same };
    if (context.isDryRun) return { object: next, ...same };
    if (isDeletionComplete(definition, next)) {
      const gone = await this.store.delete(entry.key, entry.revision);
      await this.admission.afterWrite(definition, { type: 'deleted', entry: gone });
      return { object: next, ...same, isDeleted: true };
    }
    const written = await this.store.update(entry.key, stored, entry.revision);
    await this.admission.afterWrite(definition, { type: 'updated', entry: written });
    return { object: next, ...same, resourceVersion: String(written.revision) };
  }

  /**
   * Reads the object and writes what `change` returns; retried on the newer state after a conflict, unless the change names a
   * resourceVersion (`isPinned`). `change` receives the object as a client sees it.
   */
  async modify(
    target: Target,
    change: (current: JsonObject, entry: StoredEntry) => Promise<Written>,
    isPinned: boolean,
  ): Promise<Written> {
    for (let attempt = 1; ; attempt++) {
      const entry = await this.get(target);
      const form = currentForm(target.definition, entry);
      const current = presented(target.definition, form, String(entry.revision));
      try {
        return await change(current as JsonObject, entry); // a view is JSON
      } catch (error) {
        if (!isRevisionConflict(error)) throw error;
        if (isPinned || attempt >= WRITE_ATTEMPTS) throw asConflict(error, target);
      }
    }
  }

  /** Admission of a write; writes of the server itself are exempt. */
  async admit(
    write: Pick<AdmissionRequest, 'target' | 'next' | 'previous' | 'entry'>,
    { user, isDryRun }: WriteContext,
  ): Promise<void> {
    if (user === SERVER_USER) return;
    await this.admission.admit({ ...write, user, isDryRun });
  }

  writer(
    definition: ResourceDefinition,
    operation: FieldWriter['operation'],
    manager: string,
    subresource?: Subresource,
  ): FieldWriter {
    return {
      manager,
      operation,
      apiVersion: apiVersionOf(definition),
      subresource: subresource?.name ?? '',
      time: timeText(this.clock.now()),
    };
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
