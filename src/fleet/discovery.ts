/** Finds the vClusters of the host: caches of their workloads, and of the names and versions of the Secrets and ConfigMaps that belong to them. */

import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Random } from '../base/random.ts';
import type { FleetConfig } from '../syncer/config/config.ts';
import { CachingInformer, type InformerMetrics, type ObservableInformer } from '../kube/informer/informer.ts';
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
import { listPages } from '../kube/list-pages.ts';
import { ignoreNotFound } from '../kube/status-error.ts';
import type { IndexFunctions, ListOptions, WatchClient } from '../kube/types.ts';
import {
  accessSecret,
  DEPLOYMENTS,
  overlayConfigMap,
  PAUSED,
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

  constructor({ fleet, client, informerMetrics, ...options }: DiscoveryOptions) {
    this.#client = client;
    const server = new ServerHistory();
    const create = (resource: Resource, scope: Scope): ObservableInformer =>
      new CachingInformer({
        ...options,
        ...scope,
        client,
        resource,
        server,
        namespaces: exactNamespaces(fleet),
        metrics: informerMetrics(resource),
        pageSize: PAGE_SIZE,
      });
    const workloads = { labelSelector: VCLUSTER_LABEL, transform: withoutTemplate, indexes: BY_NAMESPACE };
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

  /** Those of one namespace. */
  workloadsIn(namespace: string): KubeObject[] {
    return this.#workloads.flatMap((informer) =>
      [...informer.byIndex('namespace', namespace)].flatMap((key) => informer.get(key) ?? []),
    );
  }

  /** `changed` gets the key of each vCluster whose workload has changed, and only enqueues it. */
  subscribeWorkloads(changed: (vcluster: ObjectKey) => void): void {
    for (const informer of this.#workloads) informer.subscribe(({ key }) => changed(key));
  }

  /** The same for its Secrets and its ConfigMap: a vCluster of the name need not exist. */
  subscribe(changed: (vcluster: ObjectKey) => void): void {
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

  /** The Secret with the kubeconfig, as the host has it now. Rejects if the host does not respond. */
  readAccess(vcluster: NamespacedName): Promise<KubeObject | undefined> {
    return this.#read(SECRETS, accessSecret(vcluster));
  }

  /** The same of the Secret with the values, and of the ConfigMap. */
  async readValues(vcluster: NamespacedName): Promise<Pick<VclusterObjects, 'values' | 'overlay'>> {
    const isOverlaid = this.#configMaps.get(keyOf(overlayConfigMap(vcluster))) !== undefined;
    const [values, overlay] = await Promise.all([
      this.#read(SECRETS, valuesSecret(vcluster)),
      isOverlaid ? this.#read(CONFIG_MAPS, overlayConfigMap(vcluster)) : undefined,
    ]);
    return { values, overlay };
  }

  #read(resource: Resource, name: NamespacedName): Promise<KubeObject | undefined> {
    return ignoreNotFound(this.#client.get(resource, name));
  }

  #parts(vcluster: NamespacedName): readonly (readonly [ObservableInformer, NamespacedName])[] {
    return [
      [this.#secrets, accessSecret(vcluster)],
      [this.#secrets, valuesSecret(vcluster)],
      [this.#configMaps, overlayConfigMap(vcluster)],
    ];
  }

  /** Those of the names that are deleted, as the host has it now: caches are behind it. */
  async deletedIn(
    namespace: string,
    names: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlySet<string>> {
    const options = { namespace, labelSelector: VCLUSTER_LABEL, signal };
    const existing = new Set<string>();
    for (const resource of [STATEFUL_SETS, DEPLOYMENTS])
      for (const name of await listMetadata(this.#client, resource, options, ({ metadata }) => metadata.name))
        existing.add(name);
    const values = await Promise.all(
      names.map((name) =>
        ignoreNotFound(this.#client.get(SECRETS, valuesSecret({ namespace, name }), { signal })),
      ),
    );
    return new Set(names.filter((name, at) => values[at] === undefined && !existing.has(name)));
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.informers.map((informer) => informer.run(signal)));
  }
}

const BY_NAMESPACE = { namespace: ({ metadata: { namespace = '' } }: KubeObject) => [namespace] };
/** Their metadata may have 256 KiB of annotations each. */
const PAGE_SIZE = 100;
/** More than any workload has that is meant to be selected. */
const LABELS_MAX = 64;

/** What `pick` returns for the metadata of each object: a client that can create them chooses how many there are, and how large. */
export function listMetadata<T>(
  client: Pick<WatchClient, 'list'>,
  resource: Resource,
  options: ListOptions,
  pick: (object: KubeObject) => T,
): Promise<T[]> {
  return listPages(client, resource, { ...options, isMetadataOnly: true, limit: PAGE_SIZE }, pick);
}

interface Scope {
  readonly labelSelector?: string;
  readonly indexes?: IndexFunctions;
  readonly isMetadataOnly?: boolean;
  readonly transform: (object: KubeObject) => KubeObject;
}

/** What decides about a member. Who may create a workload chooses how much else is in it. */
function withoutTemplate({ metadata, spec }: KubeObject): KubeObject {
  const { name, namespace = '', uid = '', resourceVersion = '', creationTimestamp = '' } = metadata;
  const { labels = {}, annotations = {} } = metadata;
  const replicas =
    typeof spec === 'object' && spec !== null && 'replicas' in spec ? spec.replicas : undefined;
  return {
    metadata: {
      name,
      namespace,
      uid,
      resourceVersion,
      creationTimestamp,
      labels: Object.fromEntries(Object.entries(labels).slice(0, LABELS_MAX)),
      annotations: Object.hasOwn(annotations, PAUSED) ? { [PAUSED]: annotations[PAUSED] ?? '' } : {},
    },
    spec: replicas === undefined ? {} : { replicas },
  };
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
