/** A fleet, or as many daemons, on a real kube-apiserver as the host. Embedded API servers in one other process stand for the virtual clusters. */

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { JsonObject } from '../src/base/json.ts';
import { startRealClusters, type RealClusters } from '../test/e2e/clusters.ts';
import { TestCluster } from '../test/scenarios/cluster-client.ts';
import { Guardian, killGroup } from '../test/support/guardian.ts';
import { inParallel } from '../test/support/in-parallel.ts';
import { CopyWatch } from './copy-watch.ts';
import { pause, startProgram, type Running } from './daemon-process.ts';

export interface HostileServer {
  /** From now on; '' is no hostility. All its connections are cut. */
  behave(mode: string): Promise<void>;
  /** Resolves when a request got a hostile response for the first time since {@link behave}. */
  whenAnswered(): Promise<unknown>;
}

const MARK = 'bench/mark';
const LABELS = { app: 'vcluster', release: 'vc' };
const MEMBER = { 'endpoint-syncer/enabled': 'true' };
/** One that the daemon evaluates. */
const PATCH = `{path: 'subsets[*].ports[*].name', expression: 'value + "s"'}`;

function values(hasPatch: boolean): string {
  const patches = hasPatch ? PATCH : '';
  return `sync: {toHost: {endpoints: {enabled: false, patches: [${patches}]}, endpointSlices: {enabled: false}}}`;
}

const UPDATE_PAUSE_MS = 10;

export class FleetWorld implements AsyncDisposable {
  readonly copies: CopyWatch;
  readonly #objects: number;
  readonly #clusters: RealClusters;
  readonly #guardian: Guardian;
  readonly #directory: string;
  readonly host: TestCluster;
  /** One more than there are members: the last joins later. */
  readonly #virtual: readonly TestCluster[];
  readonly #servers: ChildProcess;
  #updates = 0;

  private constructor(parts: {
    objects: number;
    clusters: RealClusters;
    guardian: Guardian;
    directory: string;
    host: TestCluster;
    virtual: readonly TestCluster[];
    servers: ChildProcess;
    copies: CopyWatch;
  }) {
    this.#objects = parts.objects;
    this.#clusters = parts.clusters;
    this.#guardian = parts.guardian;
    this.#directory = parts.directory;
    this.host = parts.host;
    this.#virtual = parts.virtual;
    this.#servers = parts.servers;
    this.copies = parts.copies;
  }

  /** With so many members, of so many objects each. */
  static async open(members: number, objects: number, hasPatch = false): Promise<FleetWorld> {
    const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-bench-'));
    const guardian = new Guardian([directory]);
    const clusters = await startRealClusters({ controllers: false, virtual: false });
    const servers = guardian.spawn(
      process.execPath,
      [join(import.meta.dirname, 'virtual-clusters.ts'), String(members + 1)],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
    const [line] = (await once(createInterface({ input: servers.stdout ?? process.stdin }), 'line')) as [
      string,
    ];
    const virtual = (JSON.parse(line) as string[]).map((kubeconfig, at) => {
      const file = join(directory, `virtual-${at}.kubeconfig`);
      writeFileSync(file, kubeconfig);
      return new TestCluster(file);
    });
    const host = new TestCluster(clusters.host.kubeconfigPath);
    await host.ensureNamespace('fleet');
    const scope = { kind: 'Endpoints', namespace: '' } as const;
    const copies = await CopyWatch.open(host, scope, ({ metadata }) => metadata.annotations?.[MARK] ?? '');
    const world = new FleetWorld({ objects, clusters, guardian, directory, host, virtual, servers, copies });
    await inParallel(members + 1, 8, (at) => world.#install(at, at < members, values(hasPatch)));
    return world;
  }

  /** What vCluster's chart and vCluster leave on the host, and the objects. */
  async #install(at: number, isMember: boolean, config: string): Promise<void> {
    const namespace = `team-${at}`;
    const virtual = this.#virtualAt(at);
    const data = (key: string, text: string): JsonObject => ({ [key]: Buffer.from(text).toString('base64') });
    await this.host.ensureNamespace(namespace);
    await virtual.ensureNamespace('default');
    await this.host.create('Secret', {
      metadata: { name: 'vc-config-vc', namespace },
      data: data('config.yaml', config),
    });
    await this.host.create('Secret', {
      metadata: { name: 'vc-vc', namespace },
      data: data('config', readFileSync(virtual.kubeconfigPath, 'utf8')),
    });
    await this.host.create('StatefulSet', {
      metadata: { name: 'vc', namespace, labels: { ...LABELS, ...(isMember ? MEMBER : {}) } },
      spec: {
        serviceName: 'vc',
        selector: { matchLabels: LABELS },
        template: { metadata: { labels: LABELS }, spec: { containers: [{ name: 'vc', image: 'vc' }] } },
      },
    });
    for (let object = 0; object < this.#objects; object++)
      await virtual.create('Endpoints', endpoints(at, object, isMember ? 'created' : 'late'));
  }

  #virtualAt(at: number): TestCluster {
    const virtual = this.#virtual[at];
    if (virtual === undefined) throw new Error(`no virtual cluster ${at}`);
    return virtual;
  }

  /** Starts the API server of ./hostile-cluster.ts, to which the access of this virtual cluster leads from now on. */
  async useHostile(at: number): Promise<HostileServer> {
    const program = join(import.meta.dirname, 'hostile-cluster.ts');
    const child = this.#guardian.spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]();
    const next = async (): Promise<string> => String((await lines.next()).value);
    const data = { config: Buffer.from(await next()).toString('base64') };
    await this.host.merge('Secret', [`team-${at}`, 'vc-vc'], { data });
    return {
      async behave(mode) {
        child.stdin?.write(`${mode}\n`);
        await next();
      },
      whenAnswered: next,
    };
  }

  /** Of the fleet, or of a daemon. */
  logOf(name: string): string {
    const file = join(this.#directory, `${name}.log`);
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  }

  startFleet(): Promise<Running> {
    const fleet = { enabled: true, namespaces: { include: ['team-*'] } };
    return this.#start('fleet', { host: this.#hostIn('fleet'), fleet });
  }

  startDaemon(at: number): Promise<Running> {
    const virtual = { kubeconfig: this.#virtualAt(at).kubeconfigPath };
    // As the members have.
    const leaderElection = { enabled: true };
    const settings = { name: 'vc', virtual, host: this.#hostIn(`team-${at}`), leaderElection };
    return this.#start(`team-${at}`, settings, { toHost: { endpoints: { enabled: true } } });
  }

  #hostIn(namespace: string): JsonObject {
    return { kubeconfig: this.#clusters.host.kubeconfigPath, namespace };
  }

  #start(name: string, endpointSyncer: JsonObject, sync?: JsonObject): Promise<Running> {
    const place = { directory: this.#directory, guardian: this.#guardian, vcluster: name };
    return startProgram(place, { ...(sync && { sync }), endpointSyncer });
  }

  /** Latencies of single updates, one member after the other, sorted. */
  async updates(members: number, count: number): Promise<readonly number[]> {
    const latencies: number[] = [];
    for (let sent = 0; sent < count; sent++) {
      latencies.push(await this.#update(sent % members, (sent * 7) % this.#objects));
      await pause(UPDATE_PAUSE_MS);
    }
    return latencies.toSorted((a, b) => a - b);
  }

  /** Updates per second of all members at the same time, each sending the next when the last was copied. */
  async throughput(members: number, forMs: number): Promise<number> {
    const startedMs = performance.now();
    let count = 0;
    await inParallel(members, members, async (at) => {
      for (let sent = 0; performance.now() - startedMs < forMs; sent++) {
        await this.#update(at, sent % this.#objects);
        count += 1;
      }
    });
    return (count / (performance.now() - startedMs)) * 1000;
  }

  /** From its request to its copy, ms. */
  async #update(at: number, object: number): Promise<number> {
    const mark = `update-${(this.#updates += 1)}`;
    const changed = endpoints(at, object, mark);
    const seen = this.copies.when(changed.metadata.name, mark);
    const sentMs = performance.now();
    await this.#virtualAt(at).update('Endpoints', changed);
    return (await seen) - sentMs;
  }

  /** Time to the first copy of one more virtual cluster. */
  async join(at: number): Promise<number> {
    const seen = this.copies.whenChanged();
    const startedMs = performance.now();
    await this.host.merge('StatefulSet', [`team-${at}`, 'vc'], { metadata: { labels: MEMBER } });
    return (await seen) - startedMs;
  }

  /** Time to the first copy of one more daemon. */
  async joinByDaemon(at: number): Promise<number> {
    const seen = this.copies.whenChanged();
    const startedMs = performance.now();
    await this.startDaemon(at);
    return (await seen) - startedMs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.copies[Symbol.asyncDispose]();
    for (const cluster of [this.host, ...this.#virtual]) await cluster[Symbol.asyncDispose]();
    await killGroup(this.#servers);
    await this.#guardian[Symbol.asyncDispose]();
    await this.#clusters[Symbol.asyncDispose]();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function endpoints(member: number, object: number, mark: string) {
  return {
    metadata: { name: `ep-${member}-${object}`, namespace: 'default', annotations: { [MARK]: mark } },
    subsets: [
      {
        addresses: Array.from({ length: 10 }, (_, i) => ({ ip: `10.${member % 256}.${object}.${i + 1}` })),
        ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
      },
    ],
  };
}
