/** Writes of the garbage collector: each is conditional on the state of the decision and does nothing if the key has changed. */

import type { ObjectDeleter } from '../../../apiserver/objects/object-deletion.ts';
import { type ObjectRegistry } from '../../../apiserver/objects/object-registry.ts';
import { isRevisionConflict } from '../../../apiserver/objects/write-conflicts.ts';
import type { ResourceDefinition } from '../../../apiserver/objects/resource-definition.ts';
import { currentForm, type Target } from '../../../apiserver/request/target.ts';
import { SERVER_USER } from '../../../apiserver/request/user.ts';
import { listField, metadataOf, objectList, text } from '../../../apiserver/metadata.ts';
import { StatusError } from '../../../kube/status-error.ts';
import { cloneJson, type JsonObject } from '../../../base/json.ts';
import type { Logger } from '../../../base/logger.ts';
import type { Store, StoredEntry } from '../../../apiserver/storage/store.ts';
import { isKeyReference, type LifecycleAction } from './key-lifecycle.ts';
import type { IndexedKey } from '../index/key-record.ts';

const ATTEMPTS = 10;

export interface KeyRemovalOptions {
  readonly store: Store;
  readonly registry: ObjectRegistry;
  readonly deleter: ObjectDeleter;
  readonly definition: ResourceDefinition;
  readonly logger: Logger;
}

export class KeyRemoval {
  readonly #options: KeyRemovalOptions;

  constructor(options: KeyRemovalOptions) {
    this.#options = options;
  }

  /** False: the key has changed or is gone. */
  async delete(
    key: IndexedKey,
    { why, isForeground }: Extract<LifecycleAction, { kind: 'delete' }>,
  ): Promise<boolean> {
    if (why === 'ownerless' && (await this.#hasOwner(key))) return false;
    const { deleter, logger } = this.#options;
    try {
      await deleter.delete(this.#target(key), {
        isDryRun: false,
        gracePeriodSeconds: why === 'graceOver' ? 0 : undefined,
        uid: key.uid,
        // A key that changed in the meantime is decided again.
        resourceVersion: String(key.revision),
        propagationPolicy: isForeground ? 'Foreground' : '',
      });
      logger.info({ key: key.name, uid: key.uid, why }, 'access key deleted');
      return true;
    } catch (error) {
      if (!isOutdated(error)) throw error;
      return false;
    }
  }

  /** Reads the owners from the store: the index may lag behind, and nothing is deleted because of that. */
  async #hasOwner({ owners }: IndexedKey): Promise<boolean> {
    const { store, definition } = this.#options;
    for (const owner of owners.filter(isKeyReference)) {
      const entry = await store.get({ resource: definition.storage, namespace: '', name: owner.name });
      const metadata = entry && metadataOf(entry.value);
      if (!metadata || text(metadata, 'uid') !== owner.uid) continue;
      if (text(metadata, 'deletionTimestamp') === '') return true;
    }
    return false;
  }

  /** The object is removed with its last finalizer. */
  async removeFinalizer(key: IndexedKey, finalizer: string): Promise<void> {
    await this.#change(key, (metadata) => {
      const left = listField(metadata, 'finalizers').filter((name) => name !== finalizer);
      return { ...metadata, finalizers: left };
    });
  }

  async removeOwners(key: IndexedKey, uids: readonly string[]): Promise<void> {
    await this.#change(key, (metadata) => {
      const left = objectList(metadata, 'ownerReferences').filter(
        (owner) => !uids.includes(text(owner, 'uid')),
      );
      return { ...metadata, ownerReferences: left };
    });
  }

  async #change(key: IndexedKey, change: (metadata: JsonObject) => JsonObject): Promise<void> {
    const { store, registry, definition } = this.#options;
    const target = this.#target(key);
    for (let attempt = 1; ; attempt++) {
      const entry = await store.get({ resource: definition.storage, namespace: '', name: key.name });
      if (!entry || uidOf(entry) !== key.uid) return;
      const object = cloneJson(currentForm(definition, entry));
      const body = { ...object, metadata: change(metadataOf(object)) };
      try {
        await registry.writer.replace(target, entry, body, CONTEXT);
        return;
      } catch (error) {
        if (!isRevisionConflict(error) || attempt >= ATTEMPTS) throw error;
      }
    }
  }

  #target({ name }: IndexedKey): Target {
    return { definition: this.#options.definition, namespace: '', name };
  }
}

const CONTEXT = { user: SERVER_USER, manager: 'endpoint-syncer', isDryRun: false };

function uidOf(entry: StoredEntry): string {
  return text(metadataOf(entry.value), 'uid');
}

/** The key was deleted or changed; its event enqueues it again. */
function isOutdated(error: unknown): boolean {
  return error instanceof StatusError && (error.code === 404 || error.code === 409);
}
