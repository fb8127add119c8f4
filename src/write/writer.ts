/**
 * The one place where objects are written. It bounds requests in flight, hands every answer to the cache before anybody decides
 * again, and in a dry run only says what it would have done.
 */

import type { ClusterClient, Informer } from '../cluster/types.ts';
import { isNotFound } from '../kube/status-error.ts';
import { invariant } from '../kube/errors.ts';
import {
  keyOf,
  objectKey,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type Resource,
} from '../kube/object.ts';
import type { JsonObject } from '../lib/json.ts';
import type { Logger } from '../observe/logger.ts';
import type { Semaphore } from '../queue/semaphore.ts';

/** As it appears in managedFields of everything this program writes. */
export const FIELD_MANAGER = 'endpoint-syncer';

export type WriteVerb = 'create' | 'update' | 'patch' | 'delete';

export interface WriteMetrics {
  written(cluster: string, verb: WriteVerb, result: 'ok' | 'error'): void;
}

export interface WriterOptions {
  client: ClusterClient;
  resource: Resource;
  cache: Pick<Informer, 'observeWrite' | 'observeDelete'>;
  inFlight: Semaphore;
  isDryRun: boolean;
  logger: Logger;
  metrics: WriteMetrics;
}

/**
 * Every method rejects with `StatusError` or `TransportError`, and answers the object as the API server stored it, or undefined in a
 * dry run.
 */
export interface Writer {
  create(object: KubeObject, reason: string): Promise<KubeObject | undefined>;
  /** PUT; `metadata.resourceVersion` must be set and guards it. */
  update(object: KubeObject, reason: string): Promise<KubeObject | undefined>;
  /** JSON merge patch; `metadata.resourceVersion` in the body guards it. */
  mergePatch(key: NamespacedName, body: JsonObject, reason: string): Promise<KubeObject | undefined>;
  /** Deletes exactly the object with this uid; that it is gone already is fine. */
  delete(key: NamespacedName, uid: string, reason: string): Promise<void>;
}

const WRITE = { fieldManager: FIELD_MANAGER };

export function createWriter(options: WriterOptions): Writer {
  const { client, resource, cache } = options;
  const send = createSender(options);
  const store = async (
    verb: WriteVerb,
    key: ObjectKey,
    reason: string,
    request: () => Promise<KubeObject>,
  ) => {
    const stored = await send({ verb, key, reason }, request);
    if (stored !== undefined) cache.observeWrite(stored);
    return stored;
  };
  return {
    create: (object, reason) =>
      store('create', objectKey(object), reason, () => client.create(resource, object, WRITE)),
    update: (object, reason) => {
      invariant(object.metadata.resourceVersion, 'an update must be guarded by a resourceVersion');
      return store('update', objectKey(object), reason, () => client.update(resource, object, WRITE));
    },
    mergePatch: (key, body, reason) =>
      store('patch', keyOf(key), reason, () => client.patch(resource, key, { type: 'merge', body }, WRITE)),
    async delete(key, uid, reason) {
      invariant(uid, 'a deletion must name the uid it means');
      const isSent = await send({ verb: 'delete', key: keyOf(key), reason }, async () => {
        await ignoreNotFound(client.delete(resource, key, { uid }));
        return true;
      });
      if (isSent) cache.observeDelete(keyOf(key), uid);
    },
  };
}

interface Intent {
  readonly verb: WriteVerb;
  readonly key: ObjectKey;
  readonly reason: string;
}

/** Sends one request within the bound; in a dry run it logs the intent and answers undefined. */
function createSender(options: WriterOptions) {
  const { client, resource, inFlight, isDryRun, logger, metrics } = options;
  return async <T>(intent: Intent, request: () => Promise<T>): Promise<T | undefined> => {
    const fields = { cluster: client.cluster, kind: resource.kind, ...intent };
    if (isDryRun) {
      logger.info(fields, 'would write');
      return undefined;
    }
    try {
      const result = await inFlight.run(request);
      metrics.written(client.cluster, intent.verb, 'ok');
      logger.debug(fields, 'written');
      return result;
    } catch (error) {
      metrics.written(client.cluster, intent.verb, 'error');
      throw error;
    }
  };
}

async function ignoreNotFound(request: Promise<void>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
