/** A vCluster of the simulated host: its own API server, and what vCluster's chart and vCluster leave of it on the host. */

import type { VirtualClock } from '../../../src/base/clock.ts';
import { keyOf, type KubeObject, type ObjectKey } from '../../../src/kube/object.ts';
import { endpoints, subset } from '../../scenarios/objects.ts';
import { kubeconfigText } from '../../support/kubeconfig.ts';
import { SimCluster } from '../world/sim-cluster.ts';

const MANAGER = 'user';
/** It is never deleted: without any object that it knows, a virtual cluster may be another one than before. */
export const ANCHOR = 'anchor';
/** The annotation that the patch of the values writes. */
export const BY = 'example.com/by';
const VIRTUAL_NAMESPACE = 'default';
/** A token that was replaced is valid for this long. */
const ROTATED_MS = 20_000;

export class SimMember {
  readonly name: string;
  readonly namespace: string;
  readonly key: ObjectKey;
  readonly cluster: SimCluster;
  readonly #host: SimCluster;
  readonly #clock: VirtualClock;
  isInstalled = false;
  installedMs = 0;
  isSelected = true;
  isAwake = true;
  /** What its patch writes. */
  by = 'v0';
  #token = 0;
  #oldestToken = 0;

  constructor(name: string, host: SimCluster, clock: VirtualClock) {
    this.name = name;
    this.namespace = `team-${name}`;
    this.key = `${this.namespace}/${name}`;
    this.#host = host;
    this.#clock = clock;
    this.cluster = new SimCluster('virtual', clock);
    this.#put(this.cluster, 'namespaces', { metadata: { name: 'kube-system' } });
    this.putEndpoints(ANCHOR, 1);
  }

  /** As a fleet finds it, instead of the default URL in its Secret. */
  get server(): string {
    return `https://${this.name}.${this.namespace}`;
  }

  /** It is synced, if its values are valid and its server responds. */
  get isMember(): boolean {
    return this.isInstalled && this.isSelected && this.isAwake;
  }

  accepts(authorization: string | undefined): boolean {
    const [, token = '-1'] = /^Bearer token-(\d+)$/u.exec(authorization ?? '') ?? [];
    return Number(token) >= this.#oldestToken;
  }

  /** With the data that it had before, as from its volume. */
  install(): void {
    this.isInstalled = true;
    this.installedMs = this.#clock.nowMs;
    this.setValues(this.by);
    this.setWorkload({});
    this.#writeAccess();
  }

  /** Its workload; its Secrets follow. */
  uninstall(secretsAfterMs: number): void {
    this.isInstalled = false;
    this.#delete('statefulsets', this.name);
    this.#clock.schedule(secretsAfterMs, () => {
      if (this.isInstalled) return;
      this.#delete('secrets', `vc-config-${this.name}`);
      this.#delete('secrets', `vc-${this.name}`);
    });
  }

  setWorkload({ isSelected = this.isSelected, isAwake = this.isAwake }): void {
    this.isSelected = isSelected;
    this.isAwake = isAwake;
    if (!this.isInstalled) return;
    const labels = { app: 'vcluster', 'endpoint-syncer/enabled': String(isSelected) };
    this.#put(this.#host, 'statefulsets', {
      metadata: { ...this.#named(this.name), labels },
      spec: { replicas: isAwake ? 1 : 0 },
    });
  }

  setValues(by: string): void {
    this.by = by;
    const patch = `{path: 'metadata.annotations["${BY}"]', expression: '"${by}"'}`;
    this.writeValues(
      `sync: {toHost: {endpoints: {enabled: false, patches: [${patch}]}, endpointSlices: {enabled: false}}}`,
    );
  }

  writeValues(text: string): void {
    if (this.isInstalled) this.#writeSecret(`vc-config-${this.name}`, { 'config.yaml': text });
  }

  /** A setting for which a member is restarted. */
  setWorkers(workers: number): void {
    this.#put(this.#host, 'configmaps', {
      metadata: this.#named(`endpoint-syncer-${this.name}`),
      data: { 'config.yaml': `endpointSyncer: {workers: ${workers}}` },
    });
  }

  rotateAccess(): void {
    const token = ++this.#token;
    if (this.isInstalled) this.#writeAccess();
    this.#clock.schedule(ROTATED_MS, () => {
      this.#oldestToken = Math.max(this.#oldestToken, token);
    });
  }

  stopServer(): void {
    if (this.cluster.outage === undefined) this.cluster.restore(0, 'refused');
  }

  startServer(): void {
    this.cluster.comeBack();
  }

  putEndpoints(name: string, update: number): void {
    const address = `10.0.${Math.floor(update / 250)}.${(update % 250) + 1}`;
    this.#put(
      this.cluster,
      'endpoints',
      endpoints(`${VIRTUAL_NAMESPACE}/${name}`, {
        annotations: { [BY]: 'the tenant' },
        subsets: [subset(address)],
      }),
    );
  }

  deleteEndpoints(name: string): void {
    const place = { namespace: VIRTUAL_NAMESPACE, name };
    if (this.cluster.get('endpoints', keyOf(place)) !== undefined)
      this.cluster.delete('endpoints', place, { manager: MANAGER });
  }

  #writeAccess(): void {
    const server = 'https://localhost:8443';
    const config = kubeconfigText('vc', { server }, { token: `token-${this.#token}` });
    this.#writeSecret(`vc-${this.name}`, { config });
  }

  #writeSecret(name: string, texts: Readonly<Record<string, string>>): void {
    const encoded = Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    const data = Object.fromEntries(encoded) as Record<string, string>; // of strings
    this.#put(this.#host, 'secrets', { metadata: this.#named(name), data });
  }

  #named(name: string): { readonly namespace: string; readonly name: string } {
    return { namespace: this.namespace, name };
  }

  #put(cluster: SimCluster, plural: string, object: KubeObject): void {
    const { namespace = '', name } = object.metadata;
    const isThere = cluster.get(plural, keyOf({ namespace, name })) !== undefined;
    if (isThere) cluster.update(plural, object, { manager: MANAGER });
    else cluster.create(plural, object, { manager: MANAGER });
  }

  #delete(plural: string, name: string): void {
    const place = this.#named(name);
    if (this.#host.get(plural, keyOf(place)) !== undefined)
      this.#host.delete(plural, place, { manager: MANAGER });
  }
}
