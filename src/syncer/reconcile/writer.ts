/** Sends all writes: limits requests in flight, passes each response to the cache, and in a dry run lets the API server only validate the write. */

import {
  MalformedResponseError,
  TransportError,
  type ClusterClient,
  type Informer,
} from '../../kube/types.ts';
import { failure, ignoreNotFound, isForbidden, isNotFound, StatusError } from '../../kube/status-error.ts';
import { invariant } from '../../base/errors.ts';
import {
  keyOf,
  objectKey,
  parseKey,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type Resource,
} from '../../kube/object.ts';
import { valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { Logger } from '../../base/logger.ts';
import type { Semaphore } from '../../base/semaphore.ts';
import { FIELD_MANAGER } from '../translate/bookkeeping.ts';
import type { SyncSeries } from '../metrics/sync-series.ts';
import type { SyncListener } from './environment.ts';
import type { DryRun } from './dry-run.ts';

export type WriteVerb = 'create' | 'update' | 'patch' | 'delete';

type WrittenCache = Pick<Informer, 'observeWrite' | 'observeDelete' | 'observeRead' | 'observeAbsence'>;

export interface WriterOptions {
  client: ClusterClient;
  resource: Resource;
  cache: WrittenCache & Partial<Pick<Informer, 'newestVersion' | 'mayBeRestored' | 'confirms'>>;
  /** The cache publishes deletions by this writer, for keys that depend on the deleted object. Default: false. */
  publishesDeletions?: boolean;
  inFlight: Semaphore;
  dryRun: DryRun | undefined;
  logger: Logger;
  metrics: { readonly sync: Pick<SyncSeries, 'forbidden' | 'written'> };
  listener?: SyncListener | undefined;
}

/** Every method rejects with `StatusError` or `TransportError`, and resolves with the object as stored, or undefined in a dry run. */
export interface Writer {
  create(object: KubeObject, reason: string): Promise<KubeObject | undefined>;
  /** PUT; requires `metadata.resourceVersion` as precondition. */
  update(object: KubeObject, reason: string): Promise<KubeObject | undefined>;
  /** JSON merge patch, with `metadata.uid` and `resourceVersion` as preconditions: after a restore, another object may have the version. */
  mergePatch(
    key: NamespacedName,
    body: JsonObject,
    reason: string,
    subresource?: 'status',
  ): Promise<KubeObject | undefined>;
  /** Deletes the object with this uid. Succeeds if it no longer exists. */
  delete(key: NamespacedName, uid: string, reason: string): Promise<'deleted' | 'dryRun'>;
}

export function createWriter(options: WriterOptions): Writer {
  const { client, resource, cache, publishesDeletions = false } = options;
  const isDryRun = options.dryRun !== undefined;
  const write = { fieldManager: FIELD_MANAGER, isDryRun };
  const send = createSender(options);
  const store = async (intent: Intent, request: () => Promise<KubeObject>, replaced?: JsonValue) => {
    let known: string | undefined;
    const stored = await send(intent, async () => {
      if (replaced !== undefined) await checkHistory(options, intent.key);
      known = cache.newestVersion;
      return request();
    });
    if (stored === undefined) return undefined;
    const isNoOp = stored.metadata.resourceVersion === replaced;
    cache.observeWrite(stored, isNoOp ? undefined : known);
    return stored;
  };
  return {
    create: (object, reason) =>
      store({ verb: 'create', key: objectKey(object), reason }, () => client.create(resource, object, write)),
    update: (object, reason) => {
      invariant(object.metadata.resourceVersion, 'an update requires a resourceVersion');
      const intent: Intent = { verb: 'update', key: objectKey(object), reason, uid: object.metadata.uid };
      const { resourceVersion } = object.metadata;
      return store(intent, () => client.update(resource, object, write), resourceVersion);
    },
    mergePatch: (key, body, reason, subresource) =>
      store(
        { verb: 'patch', key: keyOf(key), reason },
        () =>
          client.patch(resource, key, { type: 'merge', body }, { ...write, subresource }).catch(rejectPatch),
        valueAt(body, ['metadata', 'resourceVersion']),
      ),
    async delete(key, uid, reason) {
      invariant(uid, 'a deletion requires a uid');
      const isSent = await send({ verb: 'delete', key: keyOf(key), reason, uid }, async () => {
        await ignoreNotFound(client.delete(resource, key, { uid }, { isDryRun }));
        return true;
      });
      if (isSent === undefined) return 'dryRun';
      if (publishesDeletions) cache.observeAbsence(keyOf(key), uid);
      else cache.observeDelete(keyOf(key), uid);
      return 'deleted';
    },
  };
}

interface Intent {
  readonly verb: WriteVerb;
  readonly key: ObjectKey;
  readonly reason: string;
  readonly uid?: string | undefined;
}

function createSender(options: WriterOptions) {
  const { client, resource, inFlight, dryRun, logger, metrics, listener } = options;
  return async <T>(intent: Intent, request: () => Promise<T>): Promise<T | undefined> => {
    const { verb, key, reason } = intent;
    const { cluster } = client;
    const { group, kind } = resource;
    if (dryRun !== undefined) {
      const isNew = verb === 'create';
      const [before, result] = await inFlight.run(async () => [
        // A cache may hold metadata only.
        isNew ? undefined : await ignoreNotFound(client.get(resource, parseKey(key))),
        await request(),
      ]);
      const after = verb === 'delete' ? undefined : (result as KubeObject); // other verbs return the object
      dryRun.planned({ cluster, group, kind, key, action: verb, reason }, before, after);
      return undefined;
    }
    try {
      const result = await inFlight.run(request);
      metrics.sync.written(cluster, verb, 'ok');
      listener?.written(cluster, resource, key, reason);
      logger.debug({ cluster, kind, verb, key, reason }, 'written');
      return result;
    } catch (error) {
      metrics.sync.written(cluster, verb, 'error');
      if (isForbidden(error)) metrics.sync.forbidden(cluster);
      if (error instanceof StatusError || error instanceof TransportError) error.cluster = cluster;
      if (error instanceof MalformedResponseError) await readBack(options, intent);
      throw error;
    }
  };
}

/** To an API server, a patch with the uid of another object is invalid. */
function rejectPatch(error: unknown): never {
  const isOtherObject =
    error instanceof StatusError &&
    error.code === 422 &&
    error.status.details?.causes?.some(({ field }) => field === 'metadata.uid') === true;
  throw isOtherObject ? failure(409, 'Conflict', error.message) : error;
}

/** A version as the precondition of a write proves nothing once the server may have been restored from a backup: it may have given it again. */
async function checkHistory({ client, resource, cache }: WriterOptions, key: ObjectKey): Promise<void> {
  const name = parseKey(key);
  if (cache.mayBeRestored?.(name.namespace) !== true) return;
  const current = await client.get(resource, name);
  if (cache.confirms?.(current) !== false) return;
  const { resourceVersion } = current.metadata;
  throw failure(
    409,
    'Conflict',
    `${resource.plural} "${key}" has other content than before at version ${resourceVersion}`,
  );
}

/** After a write with unknown outcome. The current object is published, because its change may be another client's. */
async function readBack({ client, resource, cache }: WriterOptions, { key, uid }: Intent): Promise<void> {
  try {
    cache.observeRead(await client.get(resource, parseKey(key)));
  } catch (error) {
    if (isNotFound(error) && uid !== undefined) cache.observeAbsence(key, uid);
    // Any other failure leaves the cache unchanged; the caller retries.
  }
}
