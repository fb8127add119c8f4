/** Many Endpoints in a virtual cluster, the daemon that syncs them, and its cost. Shared by the benchmarks `soak`, `scale` and `slices`. */

import type { JsonObject } from '../src/base/json.ts';
import type { KubeObject } from '../src/kube/object.ts';
import type { RealClusters } from '../test/e2e/clusters.ts';
import { killGroup, type Guardian } from '../test/support/guardian.ts';
import { TestCluster } from '../test/scenarios/cluster-client.ts';
import { CopyWatch } from './copy-watch.ts';
import { startDaemon, type Running } from './daemon-process.ts';
import { inParallel } from '../test/support/in-parallel.ts';
import { costOf, type ProcessCost } from './process-cost.ts';

export interface SyncedEndpointsOptions {
  readonly clusters: RealClusters;
  readonly guardian: Guardian;
  readonly directory: string;
  readonly vcluster: string;
  readonly objects: number;
  readonly addresses: number;
  /** Secrets that the Endpoints reference; 0: no patches. */
  readonly secrets: number;
}

const MARK = 'bench/mark';
const SECRET = 'bench/secret';
const FIRST_MARK = 'created';
const REQUESTS_MAX = 16;

export class SyncedEndpoints implements AsyncDisposable {
  readonly copies: CopyWatch;
  readonly #options: SyncedEndpointsOptions;
  readonly #virtual: TestCluster;
  readonly #host: TestCluster;

  private constructor(
    options: SyncedEndpointsOptions,
    clients: readonly [TestCluster, TestCluster],
    copies: CopyWatch,
  ) {
    this.#options = options;
    [this.#virtual, this.#host] = clients;
    this.copies = copies;
  }

  /** Creates the objects; no daemon runs yet. */
  static async open(options: SyncedEndpointsOptions): Promise<SyncedEndpoints> {
    const { clusters, vcluster } = options;
    const virtual = new TestCluster(clusters.virtual.kubeconfigPath);
    const host = new TestCluster(clusters.host.kubeconfigPath);
    await virtual.ensureNamespace(vcluster);
    await host.ensureNamespace(vcluster);
    const scope = { kind: 'Endpoints', namespace: vcluster } as const;
    const copies = await CopyWatch.open(host, scope, ({ metadata }) => metadata.annotations?.[MARK] ?? '');
    const synced = new SyncedEndpoints(options, [virtual, host], copies);
    await synced.#create();
    return synced;
  }

  async #create(): Promise<void> {
    const { objects, secrets, vcluster: namespace } = this.#options;
    const data = { value: Buffer.alloc(512, 'x').toString('base64') };
    await inParallel(secrets, REQUESTS_MAX, (at) =>
      this.#virtual.create('Secret', { metadata: { name: `secret-${at}`, namespace }, data }),
    );
    await inParallel(objects, REQUESTS_MAX, (at) =>
      this.#virtual.create('Endpoints', this.#object(at, FIRST_MARK)),
    );
  }

  #object(at: number, mark: string): KubeObject {
    const { vcluster: namespace, secrets, addresses } = this.#options;
    const reference = secrets > 0 ? { [SECRET]: `secret-${at % secrets}` } : {};
    const annotations = { [MARK]: mark, ...reference };
    return {
      metadata: { name: `ep-${at}`, namespace, labels: { app: `app-${at % 20}` }, annotations },
      subsets: [
        {
          addresses: Array.from({ length: addresses }, (_, i) => ({
            ip: `10.${(at >> 8) & 255}.${at & 255}.${i + 1}`,
            hostname: `h-${mark}`,
            nodeName: 'node-0',
            targetRef: { kind: 'Pod', name: `ep-${at}-${i}`, namespace, uid: `uid-${at}-${i}` },
          })),
          ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
        },
      ],
    };
  }

  /** `toHost`: more of the section `sync.toHost`. */
  start(toHost: JsonObject = {}): Promise<Running> {
    const { vcluster } = this.#options;
    const sections = { ...this.#toHost(), ...toHost };
    return startDaemon({ ...this.#options, hostNamespace: vcluster, toHost: sections });
  }

  #toHost(): JsonObject {
    const { secrets } = this.#options;
    const suffix = {
      path: 'subsets[*].addresses[*].nodeName',
      expression: 'value + "." + context.vcluster.name',
    };
    const reference = {
      path: `metadata.annotations["${SECRET}"]`,
      reference: { apiVersion: 'v1', kind: 'Secret' },
    };
    const patches = secrets > 0 ? [suffix, reference] : [];
    return { endpoints: { enabled: true, patches }, secrets: { enabled: true } };
  }

  /** Resolves with the time at which the last copy existed. */
  whenAllCopied(): Promise<number> {
    return this.copies.whenAll(this.#options.objects, FIRST_MARK);
  }

  /** Changes one object. Resolves with the time from sending the PUT to the host event, ms. */
  async update(at: number, mark: string): Promise<number> {
    const object = this.#object(at, mark);
    const seen = this.copies.when(object.metadata.name, mark);
    const sentMs = performance.now();
    await this.#virtual.update('Endpoints', object);
    return (await seen) - sentMs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.copies[Symbol.asyncDispose]();
    await Promise.all([this.#virtual[Symbol.asyncDispose](), this.#host[Symbol.asyncDispose]()]);
  }
}

export async function kill({ child }: Running): Promise<void> {
  await killGroup(child);
}

export function costOfRunning({ pid }: Running): ProcessCost {
  return costOf(pid);
}
