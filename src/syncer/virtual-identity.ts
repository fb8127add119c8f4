/** Which virtual cluster this is. In another, or a new and empty one, every copy looks like that of a deleted object: such deletions wait until the
 * cluster is known, while everything else is synced. */

import type { Clock } from '../base/clock.ts';
import type { CheckResult } from '../base/health.ts';
import type { Logger } from '../base/logger.ts';
import type { Config } from './config/config.ts';
import { LEASES } from '../kube/lease.ts';
import { NAMESPACES, type KubeObject, type NamespacedName, type Resource } from '../kube/object.ts';
import { isForbidden, isNotFound } from '../kube/status-error.ts';
import type { ClusterClient, ClusterName, EventRecorder } from '../kube/types.ts';
import { leaseName, type Leadership } from './leadership.ts';
import type { SyncSeries } from './metrics/sync-series.ts';

/** Annotation of the Lease: the uid of the namespace kube-system of the virtual cluster that the copies are of. */
export const VIRTUAL_CLUSTER = 'endpoint-syncer/virtual-cluster';
/** Annotation of the Lease, which `adopt` writes: the same of the cluster that the copies may be of from now on. */
export const ADOPTED = 'endpoint-syncer/adopted-virtual-cluster';

/** Every cluster has this namespace, and its uid is that of no other one. */
export const KUBE_SYSTEM: NamespacedName = { namespace: '', name: 'kube-system' };
/** An answer holds for this long: a cluster may be replaced behind its address while this program runs. */
const VALID_MS = 30_000;

/** What the copies on the host say of the virtual cluster. */
export interface CopiesEvidence {
  readonly copies: number;
  /** Some copy was made from an object that the virtual cluster has. */
  readonly isAnyOriginalKnown: boolean;
}

interface VirtualIdentityOptions {
  readonly config: Config;
  readonly clients: Readonly<Record<ClusterName, ClusterClient>>;
  readonly leadership: Pick<Leadership, 'publish'>;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: { readonly sync: Pick<SyncSeries, 'deletionsHeld'> };
}

export interface Identity {
  /** Of the namespace kube-system; undefined: it may not be read. */
  readonly uid: string | undefined;
  /** The same of the virtual cluster that the copies are of; undefined: no daemon has recorded it yet. */
  readonly known: string | undefined;
  readonly isAdopted: boolean;
  readonly lease: KubeObject | undefined;
}

type ReadIfAllowed = (
  cluster: ClusterName,
  resource: Resource,
  name: NamespacedName,
) => Promise<KubeObject | undefined>;

export async function readIdentity({ name, host, virtual }: Config, read: ReadIfAllowed): Promise<Identity> {
  const [namespace, lease] = await Promise.all([
    read('virtual', NAMESPACES, KUBE_SYSTEM),
    read('host', LEASES, { namespace: host.namespace, name: leaseName(name) }),
  ]);
  const uid = namespace?.metadata.uid;
  const { [VIRTUAL_CLUSTER]: known, [ADOPTED]: adopted } = lease?.metadata.annotations ?? {};
  return { uid, known, isAdopted: virtual.adopt || (uid !== undefined && adopted === uid), lease };
}

export function objectionOf(
  { uid, known, isAdopted }: Omit<Identity, 'lease'>,
  { copies, isAnyOriginalKnown }: CopiesEvidence,
): string | undefined {
  if (isAdopted || (uid !== undefined && known === uid)) return undefined;
  const isOther = uid !== undefined && known !== undefined;
  if (copies === 0 || (isAnyOriginalKnown && !isOther)) return undefined;
  const counted = copies === 1 ? 'the one copy' : `any of the ${copies} copies`;
  const why = isOther
    ? `this is another virtual cluster than before (its namespace kube-system has the uid ${uid}, not ${known})`
    : `the virtual cluster has no object that ${counted} on the host was made from`;
  return `${why}; check virtual.kubeconfig, its context or Secret, or run "endpoint-syncer adopt" if the cluster is the right one`;
}

export class VirtualIdentity {
  readonly #options: VirtualIdentityOptions;
  #answer: { readonly atMs: number; readonly objection: string | undefined } | undefined;
  #asking: Promise<string | undefined> | undefined;

  constructor(options: VirtualIdentityOptions) {
    this.#options = options;
  }

  /** Why the copies of objects that are gone must stay for now; undefined: they may be deleted. An answer from before `listedAtMs` may be that of
   * another server. Rejects if a cluster does not respond. */
  objection(evidence: () => CopiesEvidence, listedAtMs = -Infinity): Promise<string | undefined> {
    const oldestMs = Math.max(listedAtMs, this.#options.clock.monotonicMs() - VALID_MS);
    if (this.#answer !== undefined && this.#answer.atMs > oldestMs)
      return Promise.resolve(this.#answer.objection);
    this.#asking ??= this.#ask(evidence).finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  /** For readiness, which does not depend on it. */
  check(): CheckResult {
    return { isOk: true, detail: this.#answer?.objection ?? 'known' };
  }

  async #ask(evidence: () => CopiesEvidence): Promise<string | undefined> {
    const { config, clients, leadership, recorder, clock, logger, metrics } = this.#options;
    const identity = await readIdentity(config, (cluster, ...object) =>
      readIfAllowed(clients[cluster], ...object),
    );
    const { uid, known, lease } = identity;
    const objection = objectionOf(identity, evidence());
    const before = this.#answer?.objection;
    this.#answer = { atMs: clock.monotonicMs(), objection };
    if (objection === undefined && uid !== undefined && known !== uid)
      leadership.publish({ [VIRTUAL_CLUSTER]: uid });
    metrics.sync.deletionsHeld(objection !== undefined);
    if (objection !== undefined && before === undefined) {
      logger.warn({ reason: objection }, 'copies of objects that are gone are not deleted');
      const note = `Copies of objects that are gone are not deleted: ${objection}`;
      if (lease !== undefined)
        recorder.event(lease, LEASES, { type: 'Warning', reason: 'DeletionsHeld', note });
    }
    if (objection === undefined && before !== undefined)
      logger.info({}, 'copies of objects that are gone are deleted again');
    return objection;
  }
}

/** Undefined if it does not exist, or may not be read. */
export async function readIfAllowed(
  client: ClusterClient,
  resource: Resource,
  name: NamespacedName,
): Promise<KubeObject | undefined> {
  try {
    return await client.get(resource, name);
  } catch (error) {
    if (isNotFound(error) || isForbidden(error)) return undefined;
    throw error;
  }
}
