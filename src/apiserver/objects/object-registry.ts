/** Reads and writes objects of any kind with the semantics of a kube-apiserver, over one store. Retries writes that lose a race. */

import { metadataOf } from '../../kube/object.ts';
import type { Clock } from '../../base/clock.ts';
import { type JsonObject, cloneJson, text } from '../../base/json.ts';
import type { Random } from '../../base/random.ts';
import { StoreError, type Store, type StoredEntry } from '../storage/store.ts';
import {
  type Admission,
  generatedName,
  ObjectWriter,
  type WriteContext,
  type Written,
  requestedVersion,
} from './object-writer.ts';
import { invalidValue, alreadyExists, invalid, nameExhausted, notFound, stillDeleting } from '../status.ts';
import { presented } from './object-view.ts';
import {
  asConflict,
  checkUid,
  isRevisionConflict,
  currentForm,
  groupName,
  storeKey,
  type Target,
  type SubresourceAction,
} from './resource-definition.ts';

export interface RegistryOptions {
  store: Store;
  clock: Clock;
  random: Random;
  admission: Admission;
}

/** Attempts to find a free generated name, as in kube-apiserver ≥ 1.32. */
const GENERATE_ATTEMPTS = 8;
/** Attempts of a write without a resourceVersion when other writes conflict. */
const WRITE_ATTEMPTS = 20;

export class ObjectRegistry {
  readonly store: Store;
  readonly clock: Clock;
  readonly admission: Admission;
  /** Single attempts, for a caller that retries by itself. */
  readonly writer: ObjectWriter;
  readonly #random: Random;

  constructor(options: RegistryOptions) {
    this.store = options.store;
    this.clock = options.clock;
    this.admission = options.admission;
    this.writer = new ObjectWriter(options);
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
}

/** For the target's user, an object that is not visible does not exist. */
function visibleEntry(
  { definition, isVisible }: Target,
  entry: StoredEntry | undefined,
): StoredEntry | undefined {
  if (!entry || !isVisible) return entry;
  return isVisible(currentForm(definition, entry)) ? entry : undefined;
}

// POST to a subresource that is an action.

/** Retried after a conflict with another write. `body` is decoded. */
export function performAction(
  registry: ObjectRegistry,
  target: Target,
  action: SubresourceAction,
  body: JsonObject,
  context: WriteContext,
): Promise<Written> {
  const { definition } = target;
  const change = async (_current: JsonObject, entry: StoredEntry): Promise<Written> => {
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
