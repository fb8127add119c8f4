/**
 * Two real clusters on this machine: one etcd, a kube-apiserver each for `virtual` and `host`, and on the host the controllers that a
 * syncer interacts with (endpoints, EndpointSlices, mirroring, namespaces, garbage collection). RBAC is on; everything listens on 127.0.0.1.
 */

import { type ChildProcess } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { createWriteStream, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { kubeconfigText } from '../support/kubeconfig.ts';
import { kubeAssets } from './assets.ts';
import { Guardian, killGroup } from '../support/guardian.ts';

/** Access to one cluster, as plain data that vitest passes from the global setup to the tests. */
export interface RealCluster {
  readonly name: 'virtual' | 'host';
  readonly url: string;
  readonly caFile: string;
  /** The administrator's. */
  readonly token: string;
  readonly kubeconfigPath: string;
  /** User name → token, of users without any right: tests bind roles to them. */
  readonly users: Readonly<Record<string, string>>;
}

export type Component = 'virtual' | 'host' | 'controllers';

export interface RealClusters extends AsyncDisposable {
  readonly virtual: RealCluster;
  readonly host: RealCluster;
  readonly kubectl: string;
  /** Sends SIGKILL, to simulate a crash. */
  stop(component: Component): Promise<void>;
  /** Resolves when an API server answers `/readyz`; the controllers are only started. */
  start(component: Component): Promise<void>;
  /** Compacts etcd to the current revision. */
  compact(): Promise<void>;
  /** Stops the etcd of a cluster (default: the one of both), calls `change` with its data folder, and starts it again. */
  withoutEtcd(change: (dataDir: string) => void, of?: 'virtual' | 'host'): Promise<void>;
  /** Increases etcd's revision by writes that no API server sees. */
  useUpRevisions(count: number, of?: 'virtual' | 'host'): Promise<void>;
  /** Of a component that runs. */
  pidOf(component: Component): number;
}

export interface StartOptions {
  /** Default true. */
  controllers?: boolean;
  /** Also the controllers of Deployments and StatefulSets; default false. */
  hasWorkloads?: boolean;
  /** Whether etcd syncs every write to the disk; default false, as most tests do not depend on it. */
  isDurable?: boolean;
  /** Default true; without it there are no controllers either. */
  host?: boolean;
  /** Default true. */
  virtual?: boolean;
  /** Each cluster has an etcd of its own; default: both use one. */
  hasOwnEtcds?: boolean;
  /** Additional flags for the API server of `virtual`, `--name=value`; they replace default flags of the same name. */
  virtualFlags?: readonly string[];
  /** The same for `host`. */
  hostFlags?: readonly string[];
}

const USERS = ['syncer-a', 'syncer-b', 'syncer-c'];
const WORKLOADS = 'deployment-controller,replicaset-controller,statefulset-controller';
const CONTROLLERS =
  'endpoints-controller,endpointslice-controller,endpointslice-mirroring-controller,namespace-controller,garbage-collector-controller';

export async function startRealClusters(options: StartOptions = {}): Promise<RealClusters> {
  const assets = await kubeAssets();
  const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-kube-'));
  const clusters = new Clusters(assets, directory, await freePorts(6));
  try {
    await clusters.startAll(options);
    return clusters;
  } catch (error) {
    await clusters[Symbol.asyncDispose]();
    throw error;
  }
}

interface Etcd {
  readonly name: 'etcd' | 'etcd-host';
  /** URL. */
  readonly client: string;
  readonly peer: string;
}

/** Of no API server. */
const UNUSED_KEY = Buffer.from('unused').toString('base64');

function local(port: number | undefined): string {
  return `http://127.0.0.1:${port}`;
}

class Clusters implements RealClusters {
  readonly virtual: RealCluster;
  readonly host: RealCluster;
  readonly kubectl: string;
  readonly #assets: string;
  readonly #directory: string;
  readonly #guardian: Guardian;
  readonly #etcds: Record<'virtual' | 'host', Etcd>;
  readonly #secondEtcd: Etcd;
  readonly #running = new Map<Component | Etcd['name'], ChildProcess>();
  #flags: Record<'virtual' | 'host', readonly string[]> = { virtual: [], host: [] };
  #controllers = CONTROLLERS;
  #isDurable = false;

  constructor(assets: string, directory: string, ports: readonly number[]) {
    this.#assets = assets;
    this.#directory = directory;
    this.#guardian = new Guardian([directory]);
    // Another version of kubectl, to test its compatibility.
    this.kubectl = process.env['KUBECTL'] ?? join(assets, 'kubectl');
    const etcd = { name: 'etcd', client: local(ports[0]), peer: local(ports[1]) } as const;
    this.#etcds = { virtual: etcd, host: etcd };
    this.#secondEtcd = { name: 'etcd-host', client: local(ports[4]), peer: local(ports[5]) };
    this.virtual = prepareCluster(directory, 'virtual', ports[2] ?? 0);
    this.host = prepareCluster(directory, 'host', ports[3] ?? 0);
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    writeFileSync(join(directory, 'sa.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }));
  }

  async startAll(options: StartOptions): Promise<void> {
    const {
      host = true,
      virtual = true,
      hasOwnEtcds = false,
      controllers = true,
      isDurable = false,
      hasWorkloads = false,
      virtualFlags = [],
      hostFlags = [],
    } = options;
    this.#flags = { virtual: virtualFlags, host: hostFlags };
    if (hasWorkloads) this.#controllers = `${CONTROLLERS},${WORKLOADS}`;
    this.#isDurable = isDurable;
    if (hasOwnEtcds) this.#etcds.host = this.#secondEtcd;
    for (const etcd of new Set(Object.values(this.#etcds))) this.#startEtcd(etcd);
    await Promise.all([...(virtual ? [this.start('virtual')] : []), ...(host ? [this.start('host')] : [])]);
    if (host && controllers) await this.start('controllers');
  }

  #startEtcd({ name, client, peer }: Etcd): void {
    this.#spawn(name, 'etcd', [
      `--data-dir=${this.#directory}/${name}`,
      ...(this.#isDurable ? [] : ['--unsafe-no-fsync']),
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
    ]);
  }

  async withoutEtcd(change: (dataDir: string) => void, of: 'virtual' | 'host' = 'host'): Promise<void> {
    const etcd = this.#etcds[of];
    const running = this.#running.get(etcd.name);
    if (running !== undefined) await killGroup(running);
    change(join(this.#directory, etcd.name));
    this.#startEtcd(etcd);
    const revision = (): Promise<number | undefined> => this.#revision(etcd).catch(() => undefined);
    await eventually(revision, (known) => known !== undefined, { timeoutMs: 60_000, what: 'etcd' });
  }

  async useUpRevisions(count: number, of: 'virtual' | 'host' = 'host'): Promise<void> {
    for (let i = 0; i < count; i++) await this.#etcd(this.#etcds[of], 'put', { key: UNUSED_KEY, value: '' });
  }

  async #revision(etcd: Etcd): Promise<number> {
    const { header } = await this.#etcd<{ header: { revision: string } }>(etcd, 'range', { key: UNUSED_KEY });
    return Number(header.revision);
  }

  async start(component: Component): Promise<void> {
    if (this.#running.has(component)) return;
    if (component === 'controllers') {
      this.#spawn('controllers', 'kube-controller-manager', [
        `--kubeconfig=${this.host.kubeconfigPath}`,
        `--service-account-private-key-file=${this.#directory}/sa.key`,
        '--leader-elect=false',
        '--secure-port=0',
        // The default of 20 requests/s would let one test's deletions hold up the next test's controllers.
        '--kube-api-qps=500',
        '--kube-api-burst=500',
        `--controllers=${this.#controllers}`,
      ]);
      return;
    }
    const flags = this.#apiServerFlags(this[component]);
    const process = this.#spawn(component, 'kube-apiserver', replaced(flags, this.#flags[component]));
    await this.#whenReady(this[component], process);
  }

  #apiServerFlags(cluster: RealCluster): string[] {
    const directory = this.#directory;
    return [
      `--etcd-servers=${this.#etcds[cluster.name].client}`,
      `--etcd-prefix=/${cluster.name}`,
      '--bind-address=127.0.0.1',
      '--advertise-address=127.0.0.1',
      `--secure-port=${new URL(cluster.url).port}`,
      `--cert-dir=${directory}/${cluster.name}-certs`,
      `--token-auth-file=${directory}/${cluster.name}.tokens`,
      '--authorization-mode=RBAC',
      // Dual stack.
      '--service-cluster-ip-range=10.0.0.0/16,fd00:10::/112',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-signing-key-file=${directory}/sa.key`,
      `--service-account-key-file=${directory}/sa.key`,
      '--disable-admission-plugins=ServiceAccount',
      '--endpoint-reconciler-type=none',
    ];
  }

  #spawn(name: Component | Etcd['name'], program: string, args: readonly string[]): ChildProcess {
    const log = createWriteStream(this.#logFile(name), { flags: 'a' });
    const child = this.#guardian.spawn(join(this.#assets, program), args, {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout?.pipe(log, { end: false });
    child.stderr?.pipe(log, { end: false });
    child.once('exit', () => this.#running.delete(name));
    // What it wrote before its end may be read after it.
    child.once('close', () => log.end());
    this.#running.set(name, child);
    return child;
  }

  #logFile(name: string): string {
    return join(this.#directory, `${name}.log`);
  }

  async #whenReady(cluster: RealCluster, process: ChildProcess): Promise<void> {
    const deadline = performance.now() + 60_000;
    while (!(await isReady(cluster))) {
      if (process.exitCode !== null || performance.now() > deadline) {
        const log = readFileSync(this.#logFile(cluster.name), 'utf8').split('\n').slice(-15).join('\n');
        throw new Error(`the ${cluster.name} kube-apiserver did not become ready:\n${log}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  pidOf(component: Component): number {
    const pid = this.#running.get(component)?.pid;
    if (pid === undefined) throw new Error(`${component} does not run`);
    return pid;
  }

  async compact(): Promise<void> {
    for (const etcd of new Set(Object.values(this.#etcds)))
      await this.#etcd(etcd, 'compaction', { revision: await this.#revision(etcd), physical: true });
  }

  /** The JSON gateway of etcd's gRPC API. */
  async #etcd<T>({ client }: Etcd, method: string, body: unknown): Promise<T> {
    const { statusCode, body: answer } = await request(`${client}/v3/kv/${method}`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (statusCode !== 200) throw new Error(`etcd ${method}: ${text}`);
    return JSON.parse(text) as T; // etcd's own format
  }

  async stop(component: Component): Promise<void> {
    const child = this.#running.get(component);
    if (child !== undefined) await killGroup(child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#guardian[Symbol.asyncDispose]();
  }
}

/** `flags`, in which those of `more` replace flags of the same name: a list flag that is given twice has both values. */
function replaced(flags: readonly string[], more: readonly string[]): string[] {
  const nameOf = (flag: string): string => flag.split('=')[0] ?? '';
  const names = new Set(more.map(nameOf));
  // An authorization configuration contains the modes and excludes this flag.
  if (names.has('--authorization-config')) names.add('--authorization-mode');
  return [...flags.filter((flag) => !names.has(nameOf(flag))), ...more];
}

/** True when `/readyz` returns 200. The certificate exists only after the first start of the server. */
async function isReady(cluster: RealCluster): Promise<boolean> {
  if (!existsSync(cluster.caFile)) return false;
  const agent = new Agent({ connect: { ca: readFileSync(cluster.caFile) } });
  try {
    const headers = { authorization: `Bearer ${cluster.token}` };
    const { statusCode, body } = await request(`${cluster.url}/readyz`, { dispatcher: agent, headers });
    await body.dump();
    return statusCode === 200;
  } catch {
    return false;
  } finally {
    await agent.destroy();
  }
}

function prepareCluster(directory: string, name: 'virtual' | 'host', port: number): RealCluster {
  const token = randomBytes(16).toString('hex');
  const users = Object.fromEntries(USERS.map((user) => [user, randomBytes(16).toString('hex')]));
  const lines = [
    `${token},admin,admin,system:masters`,
    ...Object.entries(users).map(([user, secret]) => `${secret},${user},${user}`),
  ];
  writeFileSync(join(directory, `${name}.tokens`), `${lines.join('\n')}\n`);
  const cluster: RealCluster = {
    name,
    url: `https://127.0.0.1:${port}`,
    caFile: join(directory, `${name}-certs`, 'apiserver.crt'),
    token,
    kubeconfigPath: join(directory, `${name}.kubeconfig`),
    users,
  };
  writeFileSync(cluster.kubeconfigPath, kubeconfigFor(cluster, token));
  return cluster;
}

/** A kubeconfig with `token` as its credential. */
export function kubeconfigFor(cluster: RealCluster, token: string): string {
  const { name, url, caFile } = cluster;
  return kubeconfigText(name, { server: url, 'certificate-authority': caFile }, { token });
}

/** The same without a reference to a file, as vCluster writes it into a Secret. */
export function selfContainedKubeconfig(cluster: RealCluster, token = cluster.token): string {
  const data = readFileSync(cluster.caFile).toString('base64');
  const path = `"certificate-authority":${JSON.stringify(cluster.caFile)}`;
  return kubeconfigFor(cluster, token).replace(path, `"certificate-authority-data":"${data}"`);
}
