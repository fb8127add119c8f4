/** Reading and writing objects of any kind with the semantics of a Kubernetes API server, over one store. */

import type { Clock } from '../../base/clock.ts';
import { cloneJson, type JsonObject } from '../../base/json.ts';
import type { Random } from '../../base/random.ts';
import { StoreError, type Store, type StoredEntry } from '../storage/store.ts';
import type { Admission, ReviewedWrite } from './admission.ts';
import type { FieldWriter } from '../fields/managed-entries.ts';
import { trackUpdate, withManagedFields } from '../fields/managed-fields.ts';
import { invalidValue } from '../field-error.ts';
import { createdMetadata, generatedName, keptMetadata, nextGeneration } from './object-metadata.ts';
import { presented, storedForm } from './object-view.ts';
import type { ResourceDefinition, Subresource, SubresourceAction } from './resource-definition.ts';
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
} from './write-rules.ts';

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

/** An object as written, or as it would be for a dry run. */
export interface Written {
  readonly object: JsonObject;
  readonly resourceVersion: string;
  readonly isCreated: boolean;
  /** It was being deleted and this write removed what held it back. */
  readonly isDeleted: boolean;
}

/** Attempts to find a free generated name, as kube-apiserver ≥ 1.32 makes them. */
const GENERATE_ATTEMPTS = 8;
/** Attempts of a write that names no resourceVersion against other writers. */
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

  /** The object, if there is one that the target's user may see. */
  async find(target: Target): Promise<StoredEntry | undefined> {
    const entry = await this.store.get(storeKey(target));
    if (!entry || !target.isVisible) return entry;
    return target.isVisible(currentForm(target.definition, entry)) ? entry : undefined;
  }

  /** Throws 404. */
  async get(target: Target): Promise<StoredEntry> {
    const entry = await this.find(target);
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

  /** The rest of a create, once it is known who owns what. Throws `StoreError` `exists`. */
  async insertPrepared(target: Target, object: JsonObject, context: WriteContext): Promise<Written> {
    const { definition } = target;
    definition.prepare(object, undefined, undefined);
    const next = canonical(definition, definition.hasGeneration ? withGeneration(object, 1) : object);
    await this.#review({ target, next, previous: undefined, entry: undefined }, context);
    rejectInvalid(target, next, undefined);
    const stored = storedForm(definition, next, undefined);
    const key = storeKey(target);
    if (context.isDryRun) {
      const current = await this.store.get(key);
      if (current) throw new StoreError('exists', 'the name is taken', current);
      // Nothing was kept, so nothing that is shown only once may be shown.
      const object = definition.view ? definition.view.fromStorage(stored) : next;
      return { object, resourceVersion: '', isCreated: true, isDeleted: false };
    }
    const entry = await this.store.create(key, stored);
    await this.admission.afterWrite(definition, { type: 'created', entry });
    const shown = definition.view?.firstShown?.(next) ?? next;
    return { object: shown, resourceVersion: String(entry.revision), isCreated: true, isDeleted: false };
  }

  /** PUT. */
  async update(target: Target, body: JsonObject, context: WriteContext): Promise<Written> {
    const { definition, name } = target;
    for (let attempt = 1; ; attempt++) {
      const entry = await this.find(target);
      if (!entry) {
        if (!definition.allowsCreateOnUpdate || target.subresource) {
          throw notFound(groupName(definition), name);
        }
        const { resourceVersion: _ignored, ...metadata } = metadataOf(body);
        this.#checkUid(target, '', text(metadata, 'uid'));
        return this.create(target, { ...body, metadata }, context);
      }
      const asked = requestedVersion(body);
      if (asked === '' && !definition.allowsUnconditionalUpdate) {
        const detail = 'must be specified for an update';
        throw invalid(groupName(definition), name, [invalidValue('metadata.resourceVersion', 0, detail)]);
      }
      this.#checkUid(target, text(metadataOf(entry.value), 'uid'), text(metadataOf(body), 'uid'));
      try {
        return await this.replace(target, entry, body, context);
      } catch (error) {
        // Nobody asked for a certain version: try again on the newer one.
        if (!isRevisionConflict(error) || asked !== '' || attempt >= WRITE_ATTEMPTS)
          throw this.#asConflict(error, target);
      }
    }
  }

  /** `actual` is `''` where there is no object: who names the uid of one that is gone must not bring another one about. */
  #checkUid(target: Target, actual: string, asked: string): void {
    if (asked === '' || asked === actual) return;
    const why = `Precondition failed: UID in precondition: ${asked}, UID in object meta: ${actual}`;
    throw conflict(groupName(target.definition), target.name, why);
  }

  /**
   * Writes `body` over the state in `entry`; a resourceVersion in the body must be that of the entry. Throws `StoreError` when the store
   * has moved on meanwhile.
   */
  async replace(
    target: Target,
    entry: StoredEntry,
    body: JsonObject,
    context: WriteContext,
  ): Promise<Written> {
    const { definition } = target;
    const previous = currentForm(definition, entry);
    const asked = requestedVersion(body);
    if (asked !== '' && asked !== String(entry.revision)) {
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

  /** The rest of an update, once it is known who owns what. */
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
    // Of what is stored: an empty part that a client writes is no change.
    if (definition.hasGeneration) next = withGeneration(next, nextGeneration(definition, next, previous));
    await this.#review({ target, next, previous, entry }, context);
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
   * Reads, lets `change` make the new body, writes; again on the newer state when somebody else was faster, unless the change itself
   * names a resourceVersion. `change` gets the object as a client sees it.
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
        if (isPinned || attempt >= WRITE_ATTEMPTS) throw this.#asConflict(error, target);
      }
    }
  }

  /** POST to a subresource that is an action. */
  act(
    target: Target,
    action: SubresourceAction,
    request: JsonObject,
    context: WriteContext,
  ): Promise<Written> {
    const { definition } = target;
    const change = async (_current: JsonObject, entry: StoredEntry): Promise<Written> => {
      const previous = currentForm(definition, entry);
      await this.#review({ target, next: cloneJson(previous), previous, entry }, context);
      const result = action.perform(entry.value, request);
      const done = { isCreated: true, isDeleted: false };
      if (context.isDryRun) return { object: previous, resourceVersion: String(entry.revision), ...done };
      const written = await this.store.update(entry.key, result.stored, entry.revision);
      await this.admission.afterWrite(definition, { type: 'updated', entry: written });
      const object = result.shown(currentForm(definition, written));
      return { object, resourceVersion: String(written.revision), ...done };
    };
    return this.modify(target, change, false);
  }

  async #review(
    write: Pick<ReviewedWrite, 'target' | 'next' | 'previous' | 'entry'>,
    { user, isDryRun }: WriteContext,
  ): Promise<void> {
    if (user === SERVER_USER) return;
    await this.admission.review({ ...write, user, isDryRun });
  }

  writer(
    definition: ResourceDefinition,
    operation: FieldWriter['operation'],
    manager: string,
    subresource?: Subresource,
  ): FieldWriter {
    const { group, version } = definition;
    return {
      manager,
      operation,
      apiVersion: group === '' ? version : `${group}/${version}`,
      subresource: subresource?.name ?? '',
      time: timeText(this.clock.now()),
    };
  }

  #asConflict(error: unknown, target: Target): unknown {
    if (!(error instanceof StoreError)) return error;
    if (error.code === 'missing') return notFound(groupName(target.definition), target.name);
    if (error.code === 'conflict') return conflict(groupName(target.definition), target.name, MODIFIED);
    return error;
  }
}

export function isRevisionConflict(error: unknown): boolean {
  return error instanceof StoreError && (error.code === 'conflict' || error.code === 'missing');
}
