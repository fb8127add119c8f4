/** Writes the copies of one kind to one cluster: in place, or by delete and create if they are immutable. */

import type { ClusterClient, Informer } from '../../kube/types.ts';
import { invariant } from '../../base/errors.ts';
import { asJson, type KubeObject, type NamespacedName, type Resource } from '../../kube/object.ts';
import { isNotFound, StatusError } from '../../kube/status-error.ts';
import { jsonEquals } from '../../base/json.ts';
import { createWriter, type Writer, type WriterOptions } from '../reconcile/writer.ts';

export interface CopyWriter {
  /** Reads the object from the API server. Undefined: it no longer exists, and the cache has been updated. */
  read(key: NamespacedName, uid: string): Promise<KubeObject | undefined>;
  create(object: KubeObject, reason: string): Promise<KubeObject | undefined>;
  /** Updates the object to `wanted`, which has the uid and version of `actual`. If it is immutable, it is replaced by `fresh`.
   */
  replace(
    states: { readonly actual: KubeObject; readonly wanted: KubeObject; readonly fresh: KubeObject },
    reason: string,
  ): Promise<KubeObject | undefined>;
  delete(object: KubeObject, reason: string): Promise<void>;
}

export interface CopyWriterOptions extends Omit<WriterOptions, 'cache'> {
  client: ClusterClient;
  cache: Informer;
}

export function createCopyWriter(options: CopyWriterOptions): CopyWriter {
  const { client, resource, cache } = options;
  const writer = createWriter(options);
  return {
    async read(key, uid) {
      try {
        return await client.get(resource, key);
      } catch (error) {
        if (!isNotFound(error)) throw error;
        cache.observeAbsence(`${key.namespace}/${key.name}`, uid);
        return undefined;
      }
    },
    create: (object, reason) => writer.create(object, reason),
    async replace({ actual, wanted, fresh }, reason) {
      if (isKnownImmutable(actual, wanted, resource)) return recreate(writer, wanted, fresh, reason);
      try {
        return await writer.update(wanted, reason);
      } catch (error) {
        if (!isRefusedAsImmutable(error, resource)) throw error;
        return recreate(writer, wanted, fresh, reason);
      }
    },
    async delete({ metadata: { namespace = '', name, uid = '' } }, reason) {
      await writer.delete({ namespace, name }, uid, reason);
    },
  };
}

/** The data of an immutable Secret or ConfigMap, and the type of any Secret. Deleting objects of other kinds could have side effects. */
function mayBeImmutable({ group, kind }: Resource): boolean {
  return group === '' && (kind === 'Secret' || kind === 'ConfigMap');
}

function isKnownImmutable(actual: KubeObject, wanted: KubeObject, resource: Resource): boolean {
  if (!mayBeImmutable(resource) || actual['immutable'] !== true) return false;
  const members = ['data', 'binaryData', 'immutable', 'type'];
  return members.some((member) => !jsonEquals(asJson(actual)[member], asJson(wanted)[member]));
}

function isRefusedAsImmutable(error: unknown, resource: Resource): boolean {
  return error instanceof StatusError && error.code === 422 && mayBeImmutable(resource);
}

async function recreate(
  writer: Writer,
  old: KubeObject,
  fresh: KubeObject,
  reason: string,
): Promise<KubeObject | undefined> {
  const { namespace = '', name, uid } = old.metadata;
  invariant(uid, 'an object that is re-created has been read');
  await writer.delete({ namespace, name }, uid, `${reason}, and it is immutable`);
  return writer.create(fresh, reason);
}
