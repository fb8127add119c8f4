/** Imports of kinds that an earlier run, or the configuration before a reload, has watched and that no patch names now. */

import { withinTime } from '../../base/clock.ts';
import { TerminalError } from '../../base/errors.ts';
import { retry } from '../../base/retry.ts';
import { createSemaphore } from '../../base/semaphore.ts';
import { nameOf, type KubeObject, type Resource } from '../../kube/object.ts';
import { StatusError } from '../../kube/status-error.ts';
import type { ClusterName } from '../../kube/types.ts';
import { isOptedOut } from '../reconcile/decide.ts';
import { listMarked, SWEEP_ATTEMPTS } from '../reconcile/marked-copies.ts';
import { createWriter, type Writer } from '../reconcile/writer.ts';
import { kindIdOf, recordOf, type KindId } from '../translate/last-synced.ts';
import { hostNamespaces } from '../translate/namespace-mappings.ts';
import { namedVirtual } from '../translate/bookkeeping.ts';
import { longestWaitMs, type ReferenceEnvironment } from './environment.ts';
import { isImport } from './import-forge.ts';
import type { KindRegistry } from './kind-registry.ts';
import { partsOfKind, type KindParts } from './referenced-kind.ts';

/** The longest that the first reconcile waits for the removal of imports whose kinds are no longer configured, and perhaps cannot be listed. */
const REMOVAL_MS = 15_000;

export class FormerKinds {
  readonly #environment: ReferenceEnvironment;
  readonly #kinds: KindRegistry;
  #removing: Promise<unknown> = Promise.resolve();
  #inherited: readonly KindId[] = [];

  constructor(environment: ReferenceEnvironment, kinds: KindRegistry) {
    this.#environment = environment;
    this.#kinds = kinds;
  }

  get inherited(): readonly KindId[] {
    return this.#inherited;
  }

  /** Kinds of the generation before a reload: the last copy that recorded a kind may be deleted before the imports of this kind are. */
  inherit(kinds: readonly KindId[]): void {
    this.#inherited = kinds;
  }

  /** `recorded`: the kinds in the sync records of host copies. Those that the configuration still allows are watched again; imports of all other
   * kinds are removed. */
  async recover(recorded: Iterable<KindId>, signal: AbortSignal): Promise<void> {
    const { policy } = this.#kinds;
    const kinds = [...new Set([...recorded, ...this.#inherited])]
      .filter((id) => !this.#kinds.isKnown(id))
      .map(partsOfKind);
    const isReachable = ({ apiVersion, kind }: KindParts): boolean =>
      policy.isAllowed(apiVersion, kind) &&
      // A named kind that is not served yet keeps its imports.
      (policy.isOpen || policy.named.some((named) => named.apiVersion === apiVersion && named.kind === kind));
    const removed = kinds.filter((one) => !isReachable(one)).map((kind) => this.#removeAll(kind, signal));
    this.#removing = Promise.all(removed);
    const { clock } = this.#environment;
    await withinTime(this.#removing, { clock, ms: longestWaitMs(this.#environment, REMOVAL_MS), signal });
    const left = policy.isOpen ? await this.#withImports(policy.reachable, signal) : [];
    await this.#kinds.open([...kinds.filter(isReachable).map(kindIdOf), ...left]);
    if (!signal.aborted) this.#inherited = [];
  }

  async closed(): Promise<void> {
    await this.#removing;
  }

  /** Logs a warning if rights are missing. */
  async #removeAll(kind: KindParts, signal: AbortSignal): Promise<void> {
    const { clock, random, logger } = this.#environment;
    const isRetryable = (error: unknown): boolean => !isFinal(error);
    for (const cluster of ['host', 'virtual'] as const) {
      try {
        const remove = () => this.#remove(cluster, kind, signal);
        await retry(remove, { ...SWEEP_ATTEMPTS, clock, random, signal, isRetryable });
      } catch (error) {
        if (signal.aborted) return;
        const fields = { cluster, ...kind, err: error };
        logger.warn(fields, 'imports of a kind that is no longer configured cannot be removed');
      }
    }
  }

  async #remove(cluster: ClusterName, { apiVersion, kind }: KindParts, signal: AbortSignal): Promise<void> {
    const { discoveries } = this.#environment;
    const resource = await discoveries[cluster].resolveNamespaced(apiVersion, kind, { signal });
    const writer = this.#writer(cluster, resource);
    for (const found of await this.#imports(cluster, resource, signal))
      await writer.delete(
        nameOf(found),
        found.metadata.uid ?? '',
        'its kind is no longer referenced by a patch',
      );
  }

  /** Without a cache. One request at a time. */
  #writer(cluster: ClusterName, resource: Resource): Writer {
    const ignore = (): void => undefined;
    return createWriter({
      ...this.#environment,
      client: this.#environment.clients[cluster],
      resource,
      cache: { observeWrite: ignore, observeDelete: ignore, observeRead: ignore, observeAbsence: ignore },
      inFlight: createSemaphore(1),
    });
  }

  /** Of the built-in kinds `reachable`, those with imports on the host. */
  async #withImports(reachable: readonly KindId[], signal: AbortSignal): Promise<readonly KindId[]> {
    const { discoveries, logger } = this.#environment;
    const found: KindId[] = [];
    for (const id of reachable) {
      const { apiVersion, kind } = partsOfKind(id);
      try {
        const resource = await discoveries.host.resolveNamespaced(apiVersion, kind, { signal });
        if ((await this.#imports('host', resource, signal)).length > 0) found.push(id);
      } catch (error) {
        // Without the right to list, no object of the kind can have been imported.
        logger.debug({ apiVersion, kind, err: error }, 'imports of this kind cannot be listed');
      }
    }
    return found;
  }

  async #imports(
    cluster: ClusterName,
    resource: Resource,
    signal: AbortSignal,
  ): Promise<readonly KubeObject[]> {
    const { config, clients, names } = this.#environment;
    const { vcluster } = names;
    const namespaces = cluster === 'host' ? hostNamespaces(config) : undefined;
    const marked = await listMarked(clients[cluster], resource, { vcluster, namespaces, signal });
    const isOnHost = (object: KubeObject): boolean =>
      recordOf(object) !== undefined &&
      !isOptedOut(object) &&
      namedVirtual(object, resource, names) !== undefined;
    return marked.filter((object) => (cluster === 'host' ? isOnHost(object) : isImport(object, vcluster)));
  }
}

/** Errors that a retry cannot fix: rights are missing, or the kind is not served any more or has no such verb. */
const FINAL_CODES = [401, 403, 404, 405];

function isFinal(error: unknown): boolean {
  return error instanceof TerminalError || (error instanceof StatusError && FINAL_CODES.includes(error.code));
}
