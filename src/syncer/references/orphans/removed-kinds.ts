/** Removes imports of kinds that the configuration no longer allows. The sync record of a host copy lists the kinds it references, and is
 * written before the first import, so that no import is left behind when a patch is removed.
 */

import type { ClusterName } from '../../../kube/types.ts';
import { TerminalError } from '../../../base/errors.ts';
import type { KubeObject, Resource } from '../../../kube/object.ts';
import { StatusError } from '../../../kube/status-error.ts';
import { retry } from '../../../base/retry.ts';
import { createSemaphore } from '../../../base/semaphore.ts';
import { LAST_SYNCED } from '../../translate/metadata/bookkeeping.ts';
import { listMarked } from './marked-objects.ts';
import { namedVirtual } from '../../translate/metadata/ownership.ts';
import { hostNamespaces } from '../../translate/names/namespace-mappings.ts';
import { createWriter } from '../../reconcile/write/writer.ts';
import { isOptedOut } from '../../reconcile/decide/decide.ts';
import type { ReferenceEnvironment } from '../environment.ts';
import { isImport } from '../import/import-forge.ts';

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

const RETRY = { attemptsMax: 6, baseMs: 500, maxMs: 8000 };

export function createSweeper(environment: ReferenceEnvironment, signal: AbortSignal): Sweeper {
  const { config, clients, discoveries, names, clock, random, logger } = environment;
  const marked = async (cluster: ClusterName, resource: Resource): Promise<readonly KubeObject[]> => {
    const found = await listMarked(clients[cluster], resource, {
      vcluster: names.vcluster,
      namespaces: cluster === 'host' ? hostNamespaces(config) : undefined,
    });
    return cluster === 'virtual'
      ? found.filter((object) => isImport(object, names.vcluster))
      : found.filter((object) => isImportOnHost(object, resource, environment));
  };
  const remove = async (cluster: ClusterName, { apiVersion, kind }: KindParts): Promise<void> => {
    const resource = await discoveries[cluster].resolveNamespaced(apiVersion, kind);
    const writer = writerFor(environment, cluster, resource);
    for (const { metadata } of await marked(cluster, resource)) {
      const { name, namespace = '', uid = '' } = metadata;
      await writer.delete({ namespace, name }, uid, 'its kind is no longer referenced by a patch');
    }
  };
  const attempts = { ...RETRY, clock, random, signal, isRetryable: (error: unknown) => !isFinal(error) };
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
          const resource = await discoveries.host.resolveNamespaced(apiVersion, kind);
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
  if (object.metadata.annotations?.[LAST_SYNCED] === undefined || isOptedOut(object)) return false;
  return namedVirtual(object, resource, names) !== undefined;
}

function writerFor(
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
