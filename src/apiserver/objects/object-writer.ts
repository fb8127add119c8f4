/** One attempt to write an object: metadata, defaults, managed fields, admission, validation, then the store. */

import { apiVersionOf } from '../../kube/object.ts';
import type { Clock } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import { StoreError, type Store, type StoredEntry } from '../storage/store.ts';
import type { Admission, AdmissionRequest, CommittedWrite } from './admission.ts';
import type { FieldWriter } from '../fields/managed-entries.ts';
import { trackUpdate, withManagedFields } from '../fields/managed-fields.ts';
import { createdMetadata, keptMetadata, nextGeneration } from './object-metadata.ts';
import { storedForm } from './object-view.ts';
import type { ResourceDefinition, Subresource } from './resource-definition.ts';
import { emptyObject } from '../schema/decode.ts';
import { timeText } from '../schema/scalars.ts';
import { conflict, MODIFIED } from '../status.ts';
import { currentForm, groupName, storeKey, type Target } from './target.ts';
import { SERVER_USER, type UserInfo } from '../user.ts';
import { metadataOf } from '../metadata.ts';
import {
  requestedVersion,
  canonical,
  isDeletionComplete,
  isNoOpUpdate,
  mergedFor,
  rejectInvalid,
  withGeneration,
} from './write-steps.ts';

/** Throws a `StatusError` when the caller may no longer write. */
export type Recheck = () => Promise<void>;

export interface WriteContext {
  readonly user: UserInfo;
  readonly manager: string;
  readonly isDryRun: boolean;
  /** Absent: a write of the server itself. */
  readonly recheck?: Recheck;
}

/** The result of a write, or of its dry run. */
export interface Written {
  readonly object: JsonObject;
  readonly resourceVersion: string;
  readonly isCreated: boolean;
  /** The object was being deleted, and this write has removed its last finalizer. */
  readonly isDeleted: boolean;
}

export interface WriterOptions {
  store: Store;
  clock: Clock;
  admission: Admission;
}

/** A write throws `StoreError` when another write came first; the caller decides whether to retry. */
export class ObjectWriter {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #admission: Admission;

  constructor({ store, clock, admission }: WriterOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#admission = admission;
  }

  /** Throws `StoreError` `exists` when the name is taken. */
  async insert(target: Target, body: JsonObject, context: WriteContext): Promise<Written> {
    const { definition } = target;
    const now = timeText(this.#clock.now());
    let object: JsonObject = { ...body, metadata: createdMetadata(metadataOf(body), target, now) };
    if (definition.hasStatus) object['status'] = emptyObject(definition.schema)['status'] ?? {};
    definition.applyDefaults(object);
    const managed = trackUpdate(
      definition,
      { before: emptyObject(definition.schema), after: object, isCreate: true, sent: undefined },
      this.fieldWriter(definition, 'Update', context.manager),
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
      const current = await this.#store.get(key);
      if (current) throw new StoreError('exists', 'the name is taken', current);
      // Nothing is stored, so secrets that are shown only once are not shown.
      const object = definition.view ? definition.view.fromStorage(stored) : next;
      return { object, resourceVersion: '', isCreated: true, isDeleted: false };
    }
    const create = (): Promise<StoredEntry> => this.#store.create(key, stored);
    const entry = await this.commit(definition, 'created', create, context.recheck);
    const shown = definition.view?.firstShown?.(next) ?? next;
    return { object: shown, resourceVersion: String(entry.revision), isCreated: true, isDeleted: false };
  }

  /** Replaces the state in `entry` by `body`; a resourceVersion in the body must be that of the entry. */
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
      this.fieldWriter(definition, 'Update', context.manager, target.subresource),
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
      const remove = (): Promise<StoredEntry> => this.#store.delete(entry.key, entry.revision);
      await this.commit(definition, 'deleted', remove, context.recheck);
      return { object: next, ...same, isDeleted: true };
    }
    const update = (): Promise<StoredEntry> => this.#store.update(entry.key, stored, entry.revision);
    const written = await this.commit(definition, 'updated', update, context.recheck);
    return { object: next, ...same, resourceVersion: String(written.revision) };
  }

  /**
   * INVARIANT: every write of a client passes here. While the request waited, for its body, a parser or the store, its credential may have been
   * revoked or its rights may have changed, so the caller is checked again in the turn in which the write is handed to the store.
   */
  async commit(
    definition: ResourceDefinition,
    type: CommittedWrite['type'],
    write: () => Promise<StoredEntry>,
    recheck: Recheck | undefined,
  ): Promise<StoredEntry> {
    await recheck?.();
    const entry = await write();
    await this.#admission.afterWrite?.(definition, { type, entry });
    return entry;
  }

  /** Admission of a write; writes of the server itself are exempt. */
  async admit(
    write: Pick<AdmissionRequest, 'target' | 'next' | 'previous' | 'entry'>,
    { user, isDryRun }: WriteContext,
  ): Promise<void> {
    if (user === SERVER_USER) return;
    await this.#admission.admit({ ...write, user, isDryRun });
  }

  fieldWriter(
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
      time: timeText(this.#clock.now()),
    };
  }
}
