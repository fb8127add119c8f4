/**
 * Removes the finalizers of `--cascade=orphan` and `--cascade=foreground`. This cluster has no garbage collector, so that the object, kubectl
 * and the namespace would wait for it forever. Dependents are not changed.
 */

import type { Store, StoredEntry } from '../../apiserver/storage/store.ts';
import type { CommittedWrite } from '../../apiserver/objects/admission.ts';
import {
  hasCollectorFinalizer,
  withoutCollectorFinalizers,
} from '../../apiserver/objects/collector-finalizers.ts';
import { isRevisionConflict } from '../../apiserver/objects/write-conflicts.ts';
import type { ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import { metadataOf, listField, text } from '../../apiserver/validation/metadata.ts';
import { isDeletionComplete } from '../../apiserver/objects/write-steps.ts';

const ATTEMPTS = 20;

/** The object is being deleted and waits for a garbage collector. */
export function awaitsCollector({ value }: StoredEntry): boolean {
  const metadata = metadataOf(value);
  if (text(metadata, 'deletionTimestamp') === '') return false;
  return hasCollectorFinalizer(listField(metadata, 'finalizers'));
}

/** Resolves with the write; undefined: another write has removed the finalizers or the object. Throws `StoreError`. */
export async function releaseFromCollector(
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
