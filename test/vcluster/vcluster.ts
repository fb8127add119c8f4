/**
 * A whole vCluster on a real host cluster, as processes in the namespaces that main.ts has made: its chart is installed by Helm, and vCluster runs
 * as its Pod would, with the volumes of the StatefulSet, the ServiceAccount of the chart as its only identity, and the control plane that it starts itself.
 * The backing store is the etcd that the chart would deploy.
 */

import { type ChildProcess } from 'node:child_process';
import {
  copyFileSync,
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { startRealClusters, type RealClusters } from '../e2e/clusters.ts';
import { helm } from '../e2e/deploy/helm.ts';
import { Guardian, killGroup } from '../support/guardian.ts';
import { TestCluster, type KindName } from '../scenarios/cluster-client.ts';
import { Daemon } from '../scenarios/daemon.ts';
import { eventually } from '../support/eventually.ts';

/** The Pod of vCluster. */
export const POD = { ip: '10.244.0.5', namespace: 'team-a', vcluster: 'my-vcluster', name: 'my-vcluster-0' };

const START_MS = 300_000;
const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** One write, as an API server has recorded it. */
export interface AuditedWrite {
  /** First word of the user agent: `endpoint-syncer`, `vcluster`, `kube-controller-manager`. */
  readonly agent: string;
  readonly verb: string;
  readonly resource: string;
  readonly name: string;
  readonly status: number;
}

export class WholeVcluster implements AsyncDisposable {
  readonly host: TestCluster;
  readonly #assets: string;
  readonly #clusters: RealClusters;
  readonly #directory: string;
  readonly #guardian: Guardian;
  #process: ChildProcess | undefined;

  private constructor(clusters: RealClusters, directory: string) {
    this.#clusters = clusters;
    this.#directory = directory;
    this.#guardian = new Guardian([directory]);
    this.#assets = process.env['VCLUSTER_ASSETS'] ?? '';
    this.host = new TestCluster(clusters.host.kubeconfigPath);
  }

  /** Installs and starts it with these values, and vCluster's defaults below them. */
  static async start(values: JsonObject): Promise<WholeVcluster> {
    const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-vcluster-'));
    const policy = join(directory, 'audit.yaml');
    const writes = { level: 'Metadata', verbs: ['create', 'update', 'patch', 'delete', 'deletecollection'] };
    const rules = [writes, { level: 'None' }];
    writeFileSync(
      policy,
      stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['RequestReceived'], rules }),
    );
    const hostFlags = auditFlags(policy, join(directory, 'host-audit.log'));
    const clusters = await startRealClusters({ virtual: false, hostFlags });
    const vcluster = new WholeVcluster(clusters, directory);
    try {
      await vcluster.#prepare();
      await vcluster.install(values);
      return vcluster;
    } catch (error) {
      await vcluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The Pod, which no controller creates, and what its init containers leave. */
  async #prepare(): Promise<void> {
    const kube = process.env['KUBEBUILDER_ASSETS'] ?? '';
    for (const name of ['kube-apiserver', 'kube-controller-manager'])
      symlinkSync(join(kube, name), `/binaries/${name}`);
    await this.host.ensureNamespace(POD.namespace);
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node' } };
    await this.#post('/api/v1/nodes', node);
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: POD.name, labels: { app: 'vcluster', release: POD.vcluster } },
      spec: {
        nodeName: 'node',
        serviceAccountName: `vc-${POD.vcluster}`,
        containers: [{ name: 'syncer', image: 'vcluster' }],
      },
    };
    await this.#post(`/api/v1/namespaces/${POD.namespace}/pods`, pod);
    const status = {
      phase: 'Running',
      podIP: POD.ip,
      podIPs: [{ ip: POD.ip }],
      conditions: [{ type: 'Ready', status: 'True' }],
    };
    const path = `/api/v1/namespaces/${POD.namespace}/pods/${POD.name}/status`;
    await this.host.request('PATCH', path, { status }, 'application/merge-patch+json');
  }

  /** `helm upgrade --install` with these values; a changed StatefulSet restarts its Pod. */
  async install(values: JsonObject): Promise<void> {
    const virtualAudit = auditFlags(
      join(this.#directory, 'audit.yaml'),
      join(this.#directory, 'virtual-audit.log'),
    );
    const own = {
      telemetry: { enabled: false },
      controlPlane: {
        backingStore: { etcd: { deploy: { enabled: true } } },
        distro: { k8s: { apiServer: { extraArgs: virtualAudit } } },
      },
    };
    const files = [own, values].map(
      (one, index) => `--values=${this.#file(`values-${index}.yaml`, stringify(one))}`,
    );
    await this.helm('upgrade', '--install', POD.vcluster, join(this.#assets, 'chart'), ...files);
    await this.restart();
  }

  helm(...args: readonly string[]): Promise<string> {
    const { kubeconfigPath } = this.#clusters.host;
    return helm(this.#directory, ...args, `--namespace=${POD.namespace}`, `--kubeconfig=${kubeconfigPath}`);
  }

  /** Ends vCluster and what it has started, and starts it with the Secret as it is now. */
  async restart(): Promise<void> {
    await this.stop();
    await this.#mountVolumes();
    const log = createWriteStream(join(this.#directory, 'vcluster.log'), { flags: 'a' });
    const { PATH } = process.env;
    const child = this.#guardian.spawn(join(this.#assets, 'vcluster'), ['start'], {
      cwd: '/',
      env: { PATH, HOME: this.#directory, ...this.#podEnvironment() },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout?.pipe(log, { end: false });
    child.stderr?.pipe(log, { end: false });
    this.#process = child;
    await this.#startEtcd();
    await eventually(
      async () => {
        if (child.exitCode !== null) throw new Error(readFileSync(log.path, 'utf8').slice(-4000));
        await using virtual = await this.virtual();
        return (await virtual.request('GET', '/readyz')).status;
      },
      (status) => status === 200,
      { timeoutMs: START_MS, what: 'the API server of vCluster' },
    );
  }

  /** SIGKILL of all its processes, if it runs. */
  async stop(): Promise<void> {
    if (this.#process !== undefined) await killGroup(this.#process);
    this.#process = undefined;
  }

  /** An administrator of the virtual cluster, from the Secret that vCluster writes. */
  async virtual(): Promise<TestCluster> {
    const secret = await this.host.get('Secret', POD.namespace, `vc-${POD.vcluster}`);
    return new TestCluster(this.#file('virtual.kubeconfig', dataOf(secret, 'config')));
  }

  /** Starts `run` as the sidecar, with the configuration in the ConfigMap of our chart. */
  async startSidecar(...args: readonly string[]): Promise<Daemon> {
    const { data } = (await this.host.get(
      'ConfigMap',
      POD.namespace,
      'syncer-endpoint-syncer',
    )) as KubeObject & {
      data: Record<string, string>;
    };
    writeFileSync('/etc/endpoint-syncer/config.yaml', data['config.yaml'] ?? '');
    await this.#mountVolumes();
    return new Daemon({
      args: ['--config=/etc/endpoint-syncer/config.yaml', ...args],
      httpUrl: 'http://127.0.0.1:8080',
      guardian: this.#guardian,
      env: this.#podEnvironment(),
    });
  }

  /** The writes to one cluster since `from`, a number of them that an earlier call has returned. */
  writes(cluster: 'host' | 'virtual', from = 0): readonly AuditedWrite[] {
    const lines = readFileSync(join(this.#directory, `${cluster}-audit.log`), 'utf8')
      .trim()
      .split('\n');
    return lines.slice(from).map((line) => {
      const entry = JSON.parse(line) as {
        userAgent?: string;
        verb: string;
        objectRef?: { resource?: string; name?: string };
        responseStatus?: { code?: number };
      }; // an Event of audit.k8s.io/v1
      return {
        agent: entry.userAgent?.split('/')[0] ?? '',
        verb: entry.verb,
        resource: entry.objectRef?.resource ?? '',
        name: entry.objectRef?.name ?? '',
        status: entry.responseStatus?.code ?? 0,
      };
    });
  }

  /** As the kubelet does it. */
  async #mountVolumes(): Promise<void> {
    const secret = await this.host.get('Secret', POD.namespace, `vc-config-${POD.vcluster}`);
    for (const folder of ['/var/lib/vcluster', '/etc/vcluster'])
      writeFileSync(`${folder}/config.yaml`, dataOf(secret, 'config.yaml'));
    const path = `/api/v1/namespaces/${POD.namespace}/serviceaccounts/vc-${POD.vcluster}/token`;
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 86_400 },
    };
    const { status } = (await this.#post(path, request)) as unknown as { status: { token: string } }; // a TokenRequest
    writeFileSync(`${ACCOUNT}/token`, status.token);
    writeFileSync(`${ACCOUNT}/namespace`, POD.namespace);
    copyFileSync(this.#clusters.host.caFile, `${ACCOUNT}/ca.crt`);
  }

  #podEnvironment(): Record<string, string> {
    const { hostname, port } = new URL(this.#clusters.host.url);
    return {
      KUBERNETES_SERVICE_HOST: hostname,
      KUBERNETES_SERVICE_PORT: port,
      VCLUSTER_NAME: POD.vcluster,
      POD_NAME: POD.name,
      POD_IP: POD.ip,
      NODE_NAME: 'node',
      NODE_IP: '10.0.2.15',
    };
  }

  /** With the certificates that vCluster has written into a Secret. It keeps running when vCluster restarts. */
  async #startEtcd(): Promise<void> {
    const folder = join(this.#directory, 'etcd');
    if (mkdirSync(folder, { recursive: true }) === undefined) return;
    const certs = await this.host.when(
      'Secret',
      [POD.namespace, `${POD.vcluster}-certs`],
      (secret) => secret !== undefined,
      { timeoutMs: START_MS },
    );
    for (const name of ['etcd-server.crt', 'etcd-server.key', 'etcd-ca.crt'])
      writeFileSync(join(folder, name), dataOf(certs, name));
    const peer = 'http://127.0.0.1:2380';
    const name = `${POD.vcluster}-etcd-0`;
    const flags = {
      name,
      'data-dir': join(folder, 'data'),
      'unsafe-no-fsync': 'true',
      'client-cert-auth': 'true',
      'cert-file': join(folder, 'etcd-server.crt'),
      'key-file': join(folder, 'etcd-server.key'),
      'trusted-ca-file': join(folder, 'etcd-ca.crt'),
      'listen-client-urls': 'https://127.0.0.1:2379',
      'advertise-client-urls': 'https://127.0.0.1:2379',
      'listen-peer-urls': peer,
      'initial-advertise-peer-urls': peer,
      'initial-cluster': `${name}=${peer}`,
    };
    const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
    this.#guardian.spawn(join(process.env['KUBEBUILDER_ASSETS'] ?? '', 'etcd'), args, { stdio: 'ignore' });
  }

  async #post(path: string, body: unknown): Promise<JsonValue> {
    const answer = await this.host.request('POST', path, body);
    if (answer.status >= 300) throw new Error(`POST ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  #file(name: string, text: string): string {
    const path = join(this.#directory, name);
    writeFileSync(path, text);
    return path;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#guardian[Symbol.asyncDispose]();
    await this.host[Symbol.asyncDispose]();
    await this.#clusters[Symbol.asyncDispose]();
  }
}

function auditFlags(policy: string, log: string): string[] {
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${log}`];
}

function dataOf(secret: KubeObject, key: string): string {
  const { data } = secret as KubeObject & { data: Record<string, string> };
  return Buffer.from(data[key] ?? '', 'base64').toString();
}

/** The names of the objects of one kind in the host namespace that are copies. */
export async function copiesOn(host: TestCluster, kind: KindName): Promise<string[]> {
  const selector = `?labelSelector=vcluster.loft.sh/managed-by%3D${POD.vcluster}`;
  return (await host.list(kind, POD.namespace, selector)).map(({ metadata }) => metadata.name);
}
