/** Finds the vClusters of the host: caches of their workloads, and of the names and versions of the Secrets and ConfigMaps that belong to them. */

import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Random } from '../base/random.ts';
import type { FleetConfig } from '../config/config.ts';
import { createInformer, type InformerMetrics, type ObservableInformer } from '../kube/informer/informer.ts';
import { ServerHistory } from '../kube/informer/list-watch.ts';
import {
  CONFIG_MAPS,
  keyOf,
  parseKey,
  SECRETS,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type Resource,
} from '../kube/object.ts';
import { ignoreNotFound } from '../kube/status-error.ts';
import type { WatchClient } from '../kube/types.ts';
import {
  accessSecret,
  DEPLOYMENTS,
  overlayConfigMap,
  STATEFUL_SETS,
  valuesSecret,
  VCLUSTER_LABEL,
  vclustersOf,
  type VclusterObjects,
} from './vcluster.ts';

export interface DiscoveryOptions {
  readonly fleet: FleetConfig;
  readonly client: WatchClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly informerMetrics: (resource: Resource) => InformerMetrics;
}

/** The namespaces to watch one by one; undefined if a pattern needs all of them. */
export function exactNamespaces({ namespaces: { include } }: FleetConfig): readonly string[] | undefined {
  return include.some((pattern) => pattern.includes('*')) ? undefined : include;
}

export class FleetDiscovery {
  readonly #client: WatchClient;
  readonly #workloads: readonly ObservableInformer[];
  readonly #secrets: ObservableInformer;
  readonly #configMaps: ObservableInformer;
  /** Secrets and ConfigMaps as they were read, by the version that a cache has. */
  readonly #contents = new WeakMap<KubeObject, KubeObject>();

  constructor({ fleet, client, informerMetrics, ...options }: DiscoveryOptions) {
    this.#client = client;
    const server = new ServerHistory();
    const create = (resource: Resource, scope: Scope): ObservableInformer =>
      createInformer({
        ...options,
        ...scope,
        client,
        resource,
        server,
        namespaces: exactNamespaces(fleet),
        metrics: informerMetrics(resource),
      });
    const workloads = { labelSelector: VCLUSTER_LABEL, transform: withoutTemplate };
    // Other Secrets are large and none of this program's business, so contents are read one by one.
    const names = { isMetadataOnly: true, transform: nameAndVersion };
    this.#workloads = [create(STATEFUL_SETS, workloads), create(DEPLOYMENTS, workloads)];
    this.#secrets = create(SECRETS, names);
    this.#configMaps = create(CONFIG_MAPS, names);
  }

  get informers(): readonly ObservableInformer[] {
    return [...this.#workloads, this.#secrets, this.#configMaps];
  }

  /** Every workload of a vCluster in the namespaces, selected or not. */
  workloads(): KubeObject[] {
    return this.#workloads.flatMap((informer) => [...informer.list()]);
  }

  /** `changed` gets the key of each vCluster that may have changed, and only enqueues it. */
  subscribe(changed: (vcluster: ObjectKey) => void): void {
    for (const informer of this.#workloads) informer.subscribe(({ key }) => changed(key));
    const follow = (informer: ObservableInformer, kind: 'Secret' | 'ConfigMap'): void =>
      informer.subscribe(({ key }) => {
        const { namespace, name } = parseKey(key);
        for (const vcluster of vclustersOf(kind, name)) changed(keyOf({ namespace, name: vcluster }));
      });
    follow(this.#secrets, 'Secret');
    follow(this.#configMaps, 'ConfigMap');
  }

  /** As it is in the caches, where Secrets and ConfigMap have no contents. */
  known(key: ObjectKey): VclusterObjects {
    const vcluster = parseKey(key);
    const [access, values, overlay] = this.#parts(vcluster).map(([informer, name]) =>
      informer.get(keyOf(name)),
    );
    return {
      ...vcluster,
      workloads: this.#workloads.flatMap((informer) => informer.get(key) ?? []),
      access,
      values,
      overlay,
    };
  }

  /** With contents. Rejects if the host does not respond. */
  async read(key: ObjectKey): Promise<VclusterObjects> {
    const known = this.known(key);
    const [access, values, overlay] = await Promise.all(
      this.#parts(known).map(([informer, name]) => this.#content(informer, name)),
    );
    return { ...known, access, values, overlay };
  }

  #parts(vcluster: NamespacedName): readonly (readonly [ObservableInformer, NamespacedName])[] {
    return [
      [this.#secrets, accessSecret(vcluster)],
      [this.#secrets, valuesSecret(vcluster)],
      [this.#configMaps, overlayConfigMap(vcluster)],
    ];
  }

  /** As the host has it now: caches are behind it. */
  async isDeleted(vcluster: NamespacedName, signal: AbortSignal): Promise<boolean> {
    const { namespace, name } = vcluster;
    const options = { namespace, labelSelector: VCLUSTER_LABEL, signal };
    const [values, ...workloads] = await Promise.all([
      ignoreNotFound(this.#client.get(SECRETS, valuesSecret(vcluster), { signal })),
      this.#client.list(STATEFUL_SETS, options),
      this.#client.list(DEPLOYMENTS, options),
    ]);
    const exists = workloads.some(({ items }) => items.some(({ metadata }) => metadata.name === name));
    return values === undefined && !exists;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.informers.map((informer) => informer.run(signal)));
  }

  /** Read once for each version in the cache. */
  async #content(informer: ObservableInformer, name: NamespacedName): Promise<KubeObject | undefined> {
    const known = informer.get(keyOf(name));
    if (known === undefined) return undefined;
    const before = this.#contents.get(known);
    if (before !== undefined) return before;
    const object = await ignoreNotFound(this.#client.get(informer.resource, name));
    if (object !== undefined) this.#contents.set(known, object);
    return object;
  }
}

interface Scope {
  readonly labelSelector?: string;
  readonly isMetadataOnly?: boolean;
  readonly transform: (object: KubeObject) => KubeObject;
}

/** What decides about a member; the Pods' template is most of a workload. */
function withoutTemplate({ metadata, spec }: KubeObject): KubeObject {
  const { managedFields: _managedFields, ...rest } = metadata;
  const replicas =
    typeof spec === 'object' && spec !== null && 'replicas' in spec ? spec.replicas : undefined;
  return { metadata: rest, spec: replicas === undefined ? {} : { replicas } };
}

function nameAndVersion({ metadata }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    },
  };
}
