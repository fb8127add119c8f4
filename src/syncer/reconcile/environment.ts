/** What the reconcile loops of synced kinds and those of imported references share, namespaces that they create included. */

import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Logger } from '../../base/logger.ts';
import type { Config } from '../config/config.ts';
import type { CacheBudget } from '../../kube/informer/cache-budget.ts';
import type { ServerHistory } from '../../kube/informer/list-watch.ts';
import { type ObjectKey, type Resource, NAMESPACES } from '../../kube/object.ts';
import type { ClusterName, EventRecorder, WatchClient } from '../../kube/types.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { TranslatedReference } from '../patch/types.ts';
import type { Decision, Observation } from './decide.ts';
import type { DryRun } from './dry-run.ts';
import type { ExpectedDeletions } from './expected-deletions.ts';
import type { ReconcileResult } from './left.ts';
import { VIRTUAL_NAMESPACE } from '../translate/bookkeeping.ts';
import { MANAGED_BY_LABEL } from '../translate/labels.ts';
import type { OwnerReference } from '../translate/forge.ts';
import type { LabelTranslator, NameTranslator } from '../translate/types.ts';
import { isAlreadyExists } from '../../kube/status-error.ts';

/** What a reload keeps. */
export interface SyncParts {
  /** All writes go through these clients. They reject writes while another replica leads. */
  readonly clients: { readonly virtual: WatchClient; readonly host: WatchClient };
  readonly recorder: EventRecorder;
  /** Undefined: changes are written. */
  readonly dryRun: DryRun | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Undefined in the daemon. */
  readonly listener?: SyncListener | undefined;
  /** Also virtual objects that the daemon does not fetch are decided about, so that a command can tell why they are not synced. */
  readonly readsUnsynced?: boolean;
  readonly budget?: CacheBudget | undefined;
}

/** With what one configuration makes of it. */
export interface SyncEnvironment extends SyncParts {
  readonly config: Config;
  readonly servers: Readonly<Record<ClusterName, ServerHistory>>;
  readonly names: NameTranslator;
  readonly labels: LabelTranslator;
  readonly owner: CopyOwner;
  readonly expectedDeletions: ExpectedDeletions;
  /** Why the copies of objects that are gone must stay for now; undefined: they may be deleted. Rejects if a cluster does not respond. */
  objection(): Promise<string | undefined>;
}

/** What became of a decision. */
export interface Attempt {
  /** Undefined: it failed, or the copy was refused. */
  readonly result?: ReconcileResult;
  /** Why the copy cannot be written, usually a `PatchError`. */
  readonly error?: unknown;
}

/** Learns what the reconcilers decide and write, to predict a sync. */
export interface SyncListener {
  decided(kind: SyncedKind, seen: Observation, decision: Decision, attempt: Attempt): void;
  referenced(kind: SyncedKind, key: ObjectKey, references: readonly TranslatedReference[]): void;
  written(cluster: ClusterName, resource: Resource, key: ObjectKey, reason: string): void;
}

export interface ReferenceRecords {
  /** The references of the copy have to be written again, although neither side of the pair changed. */
  isStale(key: ObjectKey): boolean;
  recordReferences(key: ObjectKey, references: readonly TranslatedReference[]): void;
  clearReferences(key: ObjectKey): void;
  markReconciled(key: ObjectKey): void;
}

type NamespaceSettings = Pick<Config, 'createNamespaces' | 'sync'>;

export function namespaceAdvice({ createNamespaces, sync }: NamespaceSettings): string {
  if (createNamespaces) return 'create it';
  const correct = sync.namespaces.kind === 'single' ? 'correct endpointSyncer.host.namespace, ' : '';
  return `create it, ${correct}or set endpointSyncer.createNamespaces to true`;
}

export async function createHostNamespace(
  {
    clients,
    names,
    logger,
    expectedDeletions,
  }: Pick<SyncEnvironment, 'clients' | 'names' | 'logger' | 'expectedDeletions'>,
  virtualNamespace: string,
): Promise<void> {
  const name = names.namespaceToHost(virtualNamespace);
  if (name === undefined) return;
  const labels = { [MANAGED_BY_LABEL]: names.vcluster };
  const metadata = { name, labels, annotations: { [VIRTUAL_NAMESPACE]: virtualNamespace } };
  // Copies that were in one of that name have gone with it.
  expectedDeletions.ofNamespaces.set(name, true);
  try {
    await clients.host.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
    logger.info({ namespace: name }, 'host namespace created');
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/** It may be created at any time. When it is created again, the uid that is known of it names no object, and the host's garbage collector deletes
 * every copy that it owns. */
export class CopyOwner {
  current: OwnerReference | undefined;
  readonly #resolve;
  #reading: Promise<OwnerReference | undefined> | undefined;

  constructor(current: OwnerReference | undefined, resolve: () => Promise<OwnerReference | undefined>) {
    this.current = current;
    this.#resolve = resolve;
  }

  /** False if it is the known one. */
  replace(owner: OwnerReference): boolean {
    if (owner.uid === this.current?.uid) return false;
    this.current = owner;
    return true;
  }

  /** Reads the uid again, because a copy was deleted. Never rejects: an owner that does not exist stays the current one, so that nothing outlives it.
   * Undefined: there is none, or that is not known. */
  async refresh(): Promise<OwnerReference | undefined> {
    if (this.current === undefined) return undefined;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #read(): Promise<OwnerReference | undefined> {
    const owner = await this.#resolve().catch(() => undefined);
    this.current = owner ?? this.current;
    return owner;
  }
}
