/** A host in memory with what vCluster's chart and vCluster leave there of each vCluster, and a discovery that follows it. */

import { silentLogger } from '../../src/base/logger.ts';
import type { FleetConfig } from '../../src/syncer/config/config.ts';
import { FleetDiscovery } from '../../src/fleet/discovery.ts';
import { MemoryClient, MemoryCluster } from '../../src/kube/memory-cluster.ts';
import { keyOf, parseKey, type KubeObject, type ObjectKey } from '../../src/kube/object.ts';
import { FakeClock } from '../support/fake-clock.ts';

const MANAGER = 'helm';
export const SWITCHED_OFF = 'sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}}}';

export class FleetHost implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly cluster = new MemoryCluster({ name: 'host', now: () => this.clock.now() });
  readonly client = new MemoryClient(this.cluster, { manager: 'fleet' });
  readonly discovery: FleetDiscovery;
  /** Of single objects, as `plural/namespace/name`. */
  readonly reads: string[] = [];
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;

  constructor(fleet: FleetConfig) {
    const { client } = this;
    const get = client.get.bind(client);
    client.get = (resource, name) => {
      this.reads.push(`${resource.plural}/${keyOf(name)}`);
      return get(resource, name);
    };
    this.discovery = new FleetDiscovery({
      fleet,
      client,
      clock: this.clock,
      random: () => 0.5,
      logger: silentLogger,
      informerMetrics: () => ({
        expect: () => undefined,
        ended: () => undefined,
        received: () => undefined,
        ignored: () => undefined,
        watchState: () => () => undefined,
      }),
    });
    this.#running = this.discovery.run(this.#stopping.signal);
  }

  async whenSynced(): Promise<void> {
    const { signal } = this.#stopping;
    await Promise.all(this.discovery.informers.map((informer) => informer.whenSynced(signal)));
  }

  /** As the chart installs it, and started. */
  install(key: ObjectKey, values = SWITCHED_OFF): void {
    this.setWorkload(key, {});
    this.setValues(key, values);
    this.putSecret(key, 'vc-', { config: 'a kubeconfig' });
  }

  setWorkload(key: ObjectKey, { isSelected = true, replicas = 1 }): void {
    const labels = { app: 'vcluster', 'endpoint-syncer/enabled': String(isSelected) };
    this.put('statefulsets.apps', { metadata: { ...parseKey(key), labels }, spec: { replicas } });
  }

  setValues(key: ObjectKey, text: string): void {
    this.putSecret(key, 'vc-config-', { 'config.yaml': text });
  }

  putSecret(key: ObjectKey, prefix: string, texts: Readonly<Record<string, string>>): void {
    const { namespace, name } = parseKey(key);
    const data = Object.fromEntries(
      Object.entries(texts).map(([file, text]) => [file, Buffer.from(text).toString('base64')]),
    );
    this.put('secrets', { metadata: { namespace, name: `${prefix}${name}` }, data });
  }

  put(plural: string, object: KubeObject): void {
    const isThere = this.cluster.get(plural, keyOf(placeOf(object))) !== undefined;
    if (isThere) this.cluster.update(plural, object, { manager: MANAGER });
    else this.cluster.create(plural, object, { manager: MANAGER });
  }

  /** Does nothing if there is none. */
  remove(plural: string, key: ObjectKey): void {
    if (this.cluster.get(plural, key) !== undefined)
      this.cluster.delete(plural, parseKey(key), { manager: MANAGER });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }
}

function placeOf({ metadata: { namespace = '', name } }: KubeObject) {
  return { namespace, name };
}

/** Of a fleet in these namespaces. */
export function fleetIn(...include: readonly string[]): FleetConfig {
  return {
    enabled: true,
    namespaces: { include: [...include], exclude: [] },
    selector: { matchLabels: {}, matchExpressions: [] },
    limits: {
      objects: 1000,
      cacheBytes: 2 ** 20,
      hostRequests: 4,
      hostWrites: 100,
      membersPerNamespace: 20,
      sandboxes: 3,
    },
  };
}
