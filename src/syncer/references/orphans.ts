/** Finds imports that are no longer referenced, also those of kinds that no patch names any more, and decides whether they may be removed. */

import type { KubeObject, Resource } from '../../kube/object.ts';
import { isImport } from './import-forge.ts';
import type { ClusterClient, ClusterName, RequestOptions } from '../../kube/types.ts';
import { MANAGED_BY_LABEL } from '../translate/labels.ts';
import { TerminalError } from '../../base/errors.ts';
import { StatusError } from '../../kube/status-error.ts';
import { retry } from '../../base/retry.ts';
import { createSemaphore } from '../../base/semaphore.ts';
import { namedVirtual } from '../translate/ownership.ts';
import { hostNamespaces } from '../translate/namespace-mappings.ts';
import { createWriter } from '../reconcile/writer.ts';
import { isOptedOut } from '../reconcile/decide.ts';
import type { ReferenceEnvironment } from './environment.ts';
import { recordOf } from '../translate/last-synced.ts';

const PAGE_SIZE = 500;

/** `namespaces` undefined: every namespace. */
export async function listMarked(
  client: ClusterClient,
  resource: Resource,
  { namespaces, ...options }: MarkedOptions,
): Promise<readonly KubeObject[]> {
  const found: KubeObject[] = [];
  for (const namespace of namespaces ?? [undefined])
    found.push(...(await listMarkedIn(client, resource, options, namespace)));
  return found;
}

interface MarkedOptions extends RequestOptions {
  readonly vcluster: string;
  readonly namespaces: readonly string[] | undefined;
}

async function listMarkedIn(
  client: ClusterClient,
  resource: Resource,
  { vcluster, ...options }: Omit<MarkedOptions, 'namespaces'>,
  namespace: string | undefined,
): Promise<readonly KubeObject[]> {
  const found: KubeObject[] = [];
  let continueToken = '';
  do {
    const page = await client.list(resource, {
      ...options,
      labelSelector: `${MANAGED_BY_LABEL}=${vcluster}`,
      isMetadataOnly: true,
      limit: PAGE_SIZE,
      continueToken,
      ...(namespace === undefined ? {} : { namespace }),
    });
    found.push(...page.items);
    continueToken = page.continueToken;
  } while (continueToken !== '');
  return found;
}

export interface KindParts {
  readonly apiVersion: string;
  readonly kind: string;
}

export interface Sweeper {
  /** Removes all imports of the kind in both clusters. Logs a warning if rights are missing. */
  removeAll(kind: KindParts): Promise<void>;
  /** Of the built-in kinds `reachable` (`group/Kind`), those with imports on the host. */
  kindsWithImports(reachable: readonly string[]): Promise<readonly KindParts[]>;
}

/** Attempts of a request that has to succeed once after a start. */
export const SWEEP_ATTEMPTS = { attemptsMax: 6, baseMs: 500, maxMs: 8000 };

export function createSweeper(environment: ReferenceEnvironment, signal: AbortSignal): Sweeper {
  const { config, clients, discoveries, names, clock, random, logger } = environment;
  const marked = async (cluster: ClusterName, resource: Resource): Promise<readonly KubeObject[]> => {
    const found = await listMarked(clients[cluster], resource, {
      vcluster: names.vcluster,
      namespaces: cluster === 'host' ? hostNamespaces(config) : undefined,
      signal,
    });
    return cluster === 'virtual'
      ? found.filter((object) => isImport(object, names.vcluster))
      : found.filter((object) => isImportOnHost(object, resource, environment));
  };
  const remove = async (cluster: ClusterName, { apiVersion, kind }: KindParts): Promise<void> => {
    const resource = await discoveries[cluster].resolveNamespaced(apiVersion, kind, { signal });
    const writer = writerFor(environment, cluster, resource);
    for (const { metadata } of await marked(cluster, resource)) {
      const { name, namespace = '', uid = '' } = metadata;
      await writer.delete({ namespace, name }, uid, 'its kind is no longer referenced by a patch');
    }
  };
  const attempts = {
    ...SWEEP_ATTEMPTS,
    clock,
    random,
    signal,
    isRetryable: (error: unknown) => !isFinal(error),
  };
  return {
    async removeAll(kind) {
      for (const cluster of ['host', 'virtual'] as const) {
        try {
          await retry(() => remove(cluster, kind), attempts);
        } catch (error) {
          if (signal.aborted) return;
          logger.warn(
            { cluster, ...kind, err: error },
            'imports of a kind that is no longer configured cannot be removed',
          );
        }
      }
    },
    async kindsWithImports(reachable) {
      const found: KindParts[] = [];
      for (const groupKind of reachable) {
        const [group = '', kind = ''] = groupKind.split('/');
        const apiVersion = group === '' ? 'v1' : `${group}/v1`;
        try {
          const resource = await discoveries.host.resolveNamespaced(apiVersion, kind, { signal });
          if ((await marked('host', resource)).length > 0) found.push({ apiVersion, kind });
        } catch (error) {
          // Without the right to list, no object of the kind can have been imported.
          logger.debug({ apiVersion, kind, err: error }, 'imports of this kind cannot be listed');
        }
      }
      return found;
    },
  };
}

function isImportOnHost(
  object: KubeObject,
  resource: Resource,
  { names }: Pick<ReferenceEnvironment, 'names'>,
): boolean {
  if (recordOf(object) === undefined || isOptedOut(object)) return false;
  return namedVirtual(object, resource, names) !== undefined;
}

/** For objects that no cache needs to cover. One request at a time. */
export function writerFor(
  { clients, dryRun, logger, metrics, listener }: ReferenceEnvironment,
  cluster: ClusterName,
  resource: Resource,
) {
  const ignore = (): void => undefined;
  const cache = {
    observeWrite: ignore,
    observeDelete: ignore,
    observeRead: ignore,
    observeAbsence: ignore,
  };
  const inFlight = createSemaphore(1);
  return createWriter({
    client: clients[cluster],
    resource,
    cache,
    inFlight,
    dryRun,
    logger,
    metrics: metrics.writes,
    listener,
  });
}

/** Errors that a retry cannot fix: rights are missing, or the kind is not served any more or has no such verb. */
const FINAL_CODES = [401, 403, 404, 405];

function isFinal(error: unknown): boolean {
  return error instanceof TerminalError || (error instanceof StatusError && FINAL_CODES.includes(error.code));
}
