/** Relations between kinds: the namespace lifecycle. The Endpoints of a deleted Service stay: since Kubernetes 1.37 a controller deletes them. */

import { metadataOf } from '../kube/object.ts';
import { listField, text } from '../base/json.ts';
import { ignoreNotFound, failure } from '../kube/status-error.ts';
import type { Logger } from '../base/logger.ts';
import { type Store, type StoredEntry, StoreError } from '../apiserver/storage/store.ts';
import type { ObjectRegistry } from '../apiserver/objects/object-registry.ts';
import {
  type Admission,
  type CommittedWrite,
  isDeletionComplete,
} from '../apiserver/objects/object-writer.ts';
import {
  isRevisionConflict,
  groupName,
  type ResourceDefinition,
  type DefinitionTable,
} from '../apiserver/objects/resource-definition.ts';
import { forbidden, notFound } from '../apiserver/status.ts';
import { finalized, isTerminating } from './kinds/namespace.ts';
import { hasCollectorFinalizer, withoutCollectorFinalizers } from '../apiserver/metadata.ts';

const NAMESPACES = { group: '', resource: 'namespaces' };
/** These cannot be deleted. */
const PROTECTED = ['default', 'kube-system', 'kube-public'];
const ATTEMPTS = 20;

export interface ClusterAdmissionOptions {
  readonly store: Store;
  readonly table: DefinitionTable;
  readonly logger: Logger;
  /** A function, because the registry is created after this admission. */
  registry(): ObjectRegistry;
}

export class ClusterAdmission implements Admission {
  readonly #options: ClusterAdmissionOptions;

  constructor(options: ClusterAdmissionOptions) {
    this.#options = options;
  }

  async beforeCreate(definition: ResourceDefinition, namespace: string, name: string): Promise<void> {
    if (!definition.isNamespaced) return;
    const entry = await this.#namespace(namespace);
    if (!entry) throw notFound(NAMESPACES, namespace);
    if (!isTerminating(entry.value)) return;
    const { message, details } = forbidden(
      groupName(definition),
      name,
      `unable to create new content in namespace ${namespace} because it is being terminated`,
    ).status;
    throw failure(403, 'Forbidden', message ?? '', {
      ...details,
      causes: [
        {
          reason: 'NamespaceTerminating',
          message: `namespace ${namespace} is being terminated`,
          field: 'metadata.namespace',
        },
      ],
    });
  }

  async admit(): Promise<void> {
    // All writers of a cluster have the same rights.
  }

  async beforeDelete(definition: ResourceDefinition, entry: StoredEntry): Promise<void> {
    const { name } = entry.key;
    if (definition.storage !== 'namespaces' || !PROTECTED.includes(name)) return;
    throw forbidden(NAMESPACES, name, 'this namespace may not be deleted');
  }

  async afterWrite(definition: ResourceDefinition, { type, entry }: CommittedWrite): Promise<void> {
    try {
      if (definition.storage === 'namespaces' && type === 'updated' && isTerminating(entry.value)) {
        // Later, so that the response to the deletion shows the terminating namespace.
        setImmediate(() => void this.#empty(entry.key.name));
      }
      // Later, for the same reason.
      if (type === 'updated' && awaitsCollector(entry)) {
        setImmediate(() => void this.#release(definition, entry));
      }
      if (definition.isNamespaced && type === 'deleted') await this.#finish(entry.key.namespace);
    } catch (error) {
      this.#options.logger.warn({ err: error, key: entry.key }, 'follow-up of a write failed');
    }
  }

  async #delete(definition: ResourceDefinition, namespace: string, name: string): Promise<void> {
    await ignoreNotFound(this.#options.registry().delete({ definition, namespace, name }, {}));
  }

  async #release(definition: ResourceDefinition, entry: StoredEntry): Promise<void> {
    try {
      const written = await releaseFromCollector(this.#options.store, definition, entry);
      if (written) await this.afterWrite(definition, written);
    } catch (error) {
      if (error instanceof StoreError && error.code === 'closed') return;
      this.#options.logger.warn({ err: error, key: entry.key }, 'ending a deletion failed');
    }
  }

  async #empty(namespace: string): Promise<void> {
    try {
      for (const definition of this.#content()) {
        const { entries } = await this.#options.store.list({ resource: definition.storage, namespace });
        for (const { key } of entries) await this.#delete(definition, namespace, key.name);
      }
      await this.#finish(namespace);
    } catch (error) {
      if (error instanceof StoreError && error.code === 'closed') return;
      this.#options.logger.warn({ err: error, namespace }, 'emptying a namespace failed');
    }
  }

  /** The namespaced kinds, each storage once. */
  #content(): ResourceDefinition[] {
    const kinds = this.#options.table.all.filter(({ isNamespaced, respond }) => isNamespaced && !respond);
    return kinds.filter(
      ({ storage }, index) => kinds.findIndex((other) => other.storage === storage) === index,
    );
  }

  /** Removes a terminating namespace once it is empty. */
  async #finish(namespace: string): Promise<void> {
    const { store } = this.#options;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const entry = await this.#namespace(namespace);
      if (!entry || !isTerminating(entry.value)) return;
      for (const { storage } of this.#content()) {
        const { entries, remaining } = await store.list({ resource: storage, namespace }, { limit: 1 });
        if (entries.length + remaining > 0) return;
      }
      try {
        const next = finalized(entry.value);
        const definition = this.#options.table.find('', 'v1', 'namespaces');
        if (definition && !definition.strategy.holdsDeletion(next))
          await store.delete(entry.key, entry.revision);
        else await store.update(entry.key, next, entry.revision);
        return;
      } catch (error) {
        if (!isRevisionConflict(error)) throw error;
      }
    }
  }

  #namespace(name: string): Promise<StoredEntry | undefined> {
    return this.#options.store.get({ resource: 'namespaces', namespace: '', name });
  }
}

/** The object is being deleted and waits for a garbage collector. */
function awaitsCollector({ value }: StoredEntry): boolean {
  const metadata = metadataOf(value);
  if (text(metadata, 'deletionTimestamp') === '') return false;
  return hasCollectorFinalizer(listField(metadata, 'finalizers'));
}

/** Resolves with the write; undefined: another write has removed the finalizers or the object. Throws `StoreError`. */
async function releaseFromCollector(
  store: Store,
  definition: ResourceDefinition,
  { key }: StoredEntry,
): Promise<CommittedWrite | undefined> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const entry = await store.get(key);
    if (!entry || !awaitsCollector(entry)) return undefined;
    const { finalizers: _held, ...metadata } = metadataOf(entry.value);
    const left = withoutCollectorFinalizers(listField(metadataOf(entry.value), 'finalizers'));
    const object = {
      ...entry.value,
      metadata: left.length > 0 ? { ...metadata, finalizers: left } : metadata,
    };
    try {
      return isDeletionComplete(definition, object)
        ? { type: 'deleted', entry: await store.delete(key, entry.revision) }
        : { type: 'updated', entry: await store.update(key, object, entry.revision) };
    } catch (error) {
      if (!isRevisionConflict(error)) throw error;
    }
  }
  return undefined;
}
