/** Many Endpoints in a virtual cluster, the daemon that copies them, and what it costs: what the benchmarks `soak` and `scale` share. */

import type { ChildProcess } from 'node:child_process';
import { openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonValue } from '../src/base/json.ts';
import type { KubeObject } from '../src/kube/object.ts';
import type { RealClusters } from '../test/e2e/clusters.ts';
import { killGroup, type Guardian } from '../test/e2e/guardian.ts';
import { TestCluster } from '../test/scenarios/cluster-client.ts';
import { freePorts } from '../test/scenarios/free-ports.ts';
import { CopyWatch } from './copy-watch.ts';
import { costOf, type ProcessCost } from './process-cost.ts';

export interface FleetOptions {
  readonly clusters: RealClusters;
  readonly guardian: Guardian;
  readonly directory: string;
  readonly vcluster: string;
  readonly objects: number;
  readonly addresses: number;
  /** Secrets that the Endpoints name; 0: no patches either. */
  readonly secrets: number;
}

export interface Running {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly startedMs: number;
  readonly url: string;
}

const MARK = 'bench/mark';
const SECRET = 'bench/secret';
const FIRST_MARK = 'created';
const REQUESTS_MAX = 16;

export class Fleet implements AsyncDisposable {
  readonly copies: CopyWatch;
  readonly #options: FleetOptions;
  readonly #virtual: TestCluster;
  readonly #host: TestCluster;

  private constructor(
    options: FleetOptions,
    clients: readonly [TestCluster, TestCluster],
    copies: CopyWatch,
  ) {
    this.#options = options;
    [this.#virtual, this.#host] = clients;
    this.copies = copies;
  }

  /** Creates the objects; no daemon runs yet. */
  static async open(options: FleetOptions): Promise<Fleet> {
    const { clusters, vcluster } = options;
    const virtual = new TestCluster(clusters.virtual.kubeconfigPath);
    const host = new TestCluster(clusters.host.kubeconfigPath);
    await virtual.ensureNamespace(vcluster);
    await host.ensureNamespace(vcluster);
    const scope = { kind: 'Endpoints', namespace: vcluster } as const;
    const copies = await CopyWatch.open(host, scope, ({ metadata }) => metadata.annotations?.[MARK] ?? '');
    const fleet = new Fleet(options, [virtual, host], copies);
    await fleet.#create();
    return fleet;
  }

  async #create(): Promise<void> {
    const { objects, secrets, vcluster: namespace } = this.#options;
    const data = { value: Buffer.alloc(512, 'x').toString('base64') };
    await inTurns(secrets, (at) =>
      this.#virtual.create('Secret', { metadata: { name: `secret-${at}`, namespace }, data }),
    );
    await inTurns(objects, (at) => this.#virtual.create('Endpoints', this.#object(at, FIRST_MARK)));
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

  async start(): Promise<Running> {
    const { clusters, directory, guardian, vcluster } = this.#options;
    const root = join(import.meta.dirname, '..');
    const [port = 0] = await freePorts(1);
    const file = join(directory, `${vcluster}.json`);
    writeFileSync(file, JSON.stringify(this.#configuration(clusters, port)));
    const log = openSync(join(directory, `${vcluster}.log`), 'a');
    const startedMs = performance.now();
    const child = guardian.spawn(process.execPath, [join(root, 'src', 'main.ts'), 'run', '--config', file], {
      cwd: root,
      stdio: ['ignore', log, log],
    });
    return { child, pid: child.pid ?? 0, startedMs, url: `http://127.0.0.1:${port}` };
  }

  #configuration({ virtual, host }: RealClusters, port: number): JsonValue {
    const { vcluster, secrets } = this.#options;
    const suffix = {
      path: 'subsets[*].addresses[*].nodeName',
      expression: 'value + "." + context.vcluster.name',
    };
    const reference = {
      path: `metadata.annotations["${SECRET}"]`,
      reference: { apiVersion: 'v1', kind: 'Secret' },
    };
    const patches = secrets > 0 ? [suffix, reference] : [];
    return {
      sync: { toHost: { endpoints: { enabled: true, patches }, secrets: { enabled: true } } },
      endpointSyncer: {
        name: vcluster,
        virtual: { kubeconfig: virtual.kubeconfigPath },
        host: { kubeconfig: host.kubeconfigPath, namespace: vcluster },
        http: { bindAddress: `127.0.0.1:${port}` },
        log: { level: 'warn', format: 'json' },
      },
    };
  }

  /** Resolves with the time at which the last copy was there. */
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

/** Resolves when the daemon is ready and nothing is queued. */
export async function whenIdle({ url }: Running): Promise<number> {
  for (;;) {
    const isReady = await fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady && (await depthOf(url)) === 0) return performance.now();
    await pause(50);
  }
}

async function depthOf(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const series = /^workqueue_(?:depth|unfinished_work_seconds)(?:\{[^}]*\})? (\S+)$/gm;
  return [...text.matchAll(series)].reduce((sum, [, value]) => sum + Number(value), 0);
}

export function costOfRunning({ pid }: Running): ProcessCost {
  return costOf(pid);
}

export function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function inTurns(count: number, work: (at: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: REQUESTS_MAX }, async () => {
      while (next < count) await work(next++);
    }),
  );
}
