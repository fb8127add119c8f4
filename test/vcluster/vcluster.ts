/**
 * A whole vCluster on a real host cluster, as processes in the namespaces that main.ts and pod.ts create: its chart is installed by Helm, and vCluster
 * runs as its Pod would, with the volumes of the StatefulSet, the ServiceAccount of the chart as its only identity, and the control plane that it
 * starts itself. The backing store is the etcd that the chart would deploy.
 */

import { type ChildProcess } from 'node:child_process';
import {
  copyFileSync,
  createWriteStream,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { helm } from '../e2e/deploy/helm.ts';
import { killGroup } from '../support/guardian.ts';
import { TestCluster, type KindName } from '../scenarios/cluster-client.ts';
import { Daemon } from '../scenarios/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { auditFlags, HOST_IP, type VclusterHost } from './host.ts';
import { ACCOUNT, Pod, VCLUSTER, type Place } from './pod.ts';

const START_MS = 300_000;
const POD_NAME = `${VCLUSTER}-0`;

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
  readonly namespace: string;
  readonly #assets = process.env['VCLUSTER_ASSETS'] ?? '';
  readonly #host: VclusterHost;
  readonly #pod: Pod;
  #process: ChildProcess | undefined;

  private constructor(host: VclusterHost, place: Place) {
    this.namespace = place.namespace;
    this.#host = host;
    this.#pod = new Pod(place);
  }

  /** Installs and starts it with these values, and vCluster's defaults below them. */
  static async start(
    host: VclusterHost,
    place: Place,
    ...values: readonly JsonObject[]
  ): Promise<WholeVcluster> {
    const vcluster = new WholeVcluster(host, place);
    try {
      await vcluster.#prepare();
      await vcluster.install(...values);
      return vcluster;
    } catch (error) {
      await vcluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  get host(): TestCluster {
    return this.#host.client;
  }

  /** The Pod, which no controller creates, and what its init containers leave. */
  async #prepare(): Promise<void> {
    const kube = process.env['VIRTUAL_ASSETS'] ?? '';
    for (const name of ['kube-apiserver', 'kube-controller-manager'])
      symlinkSync(join(kube, name), this.#pod.path(`/binaries/${name}`));
    await this.host.ensureNamespace(this.namespace);
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: POD_NAME, labels: { app: 'vcluster', release: VCLUSTER } },
      spec: {
        nodeName: 'node',
        serviceAccountName: `vc-${VCLUSTER}`,
        containers: [{ name: 'syncer', image: 'vcluster' }],
      },
    };
    await this.#post(`/api/v1/namespaces/${this.namespace}/pods`, pod);
    const { ip } = this.#pod;
    const status = {
      phase: 'Running',
      podIP: ip,
      podIPs: [{ ip }],
      conditions: [{ type: 'Ready', status: 'True' }],
    };
    const path = `/api/v1/namespaces/${this.namespace}/pods/${POD_NAME}/status`;
    await this.host.request('PATCH', path, { status }, 'application/merge-patch+json');
  }

  /** {@link upgrade}, and the start with these values: a changed StatefulSet restarts its Pod. */
  async install(...values: readonly JsonObject[]): Promise<void> {
    await this.upgrade(...values);
    await this.restart();
  }

  /** `helm upgrade --install` with these values, of which later ones win. */
  async upgrade(...values: readonly JsonObject[]): Promise<void> {
    const own = {
      telemetry: { enabled: false },
      controlPlane: {
        backingStore: { etcd: { deploy: { enabled: true } } },
        distro: { k8s: { apiServer: { extraArgs: auditFlags(this.#pod.directory) } } },
      },
    };
    const files = [own, ...values].map(
      (one, index) => `--values=${this.#file(`values-${index}.yaml`, stringify(one))}`,
    );
    await this.helm('upgrade', '--install', VCLUSTER, join(this.#assets, 'chart'), ...files);
  }

  helm(...args: readonly string[]): Promise<string> {
    const { kubeconfigPath } = this.host;
    return helm(
      this.#pod.directory,
      ...args,
      `--namespace=${this.namespace}`,
      `--kubeconfig=${kubeconfigPath}`,
    );
  }

  /** Ends vCluster and what it has started, and starts it with the Secret as it is now. */
  async restart(): Promise<void> {
    await this.stop();
    await this.#mountVolumes();
    const log = createWriteStream(this.#pod.path('vcluster.log'), { flags: 'a' });
    const { PATH } = process.env;
    const child = this.#pod.spawn(join(this.#assets, 'vcluster'), ['start'], {
      cwd: '/',
      env: { PATH, HOME: this.#pod.directory, ...this.#podEnvironment() },
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
    const secret = await this.host.get('Secret', this.namespace, `vc-${VCLUSTER}`);
    const service = `https://${VCLUSTER}.${this.namespace}`;
    const access = dataOf(secret, 'config').replace('https://localhost:8443', service);
    return new TestCluster(this.#file('virtual.kubeconfig', access));
  }

  /** Starts `run` as the sidecar, with the configuration in the ConfigMap of our chart. */
  async startSidecar(...args: readonly string[]): Promise<Daemon> {
    const { data } = (await this.host.get(
      'ConfigMap',
      this.namespace,
      'syncer-endpoint-syncer',
    )) as KubeObject & {
      data: Record<string, string>;
    };
    writeFileSync(this.#pod.path('/etc/endpoint-syncer/config.yaml'), data['config.yaml'] ?? '');
    await this.#mountVolumes();
    return new Daemon({
      args: ['--config=/etc/endpoint-syncer/config.yaml', ...args],
      httpUrl: `http://${this.#pod.ip}:8080`,
      guardian: this.#pod,
      env: this.#podEnvironment(),
    });
  }

  /** The writes to one cluster since `from`, a number of them that an earlier call has returned. */
  writes(cluster: 'host' | 'virtual', from = 0): readonly AuditedWrite[] {
    const log = cluster === 'host' ? this.#host.auditLog : this.#pod.path('audit.log');
    const lines = readFileSync(log, 'utf8').trim().split('\n');
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
    const secret = await this.host.get('Secret', this.namespace, `vc-config-${VCLUSTER}`);
    for (const folder of ['/var/lib/vcluster', '/etc/vcluster'])
      writeFileSync(this.#pod.path(`${folder}/config.yaml`), dataOf(secret, 'config.yaml'));
    const path = `/api/v1/namespaces/${this.namespace}/serviceaccounts/vc-${VCLUSTER}/token`;
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 86_400 },
    };
    const { status } = (await this.#post(path, request)) as unknown as { status: { token: string } }; // a TokenRequest
    const account = this.#pod.path(ACCOUNT);
    writeFileSync(join(account, 'token'), status.token);
    writeFileSync(join(account, 'namespace'), this.namespace);
    copyFileSync(this.#host.access.caFile, join(account, 'ca.crt'));
  }

  #podEnvironment(): Record<string, string> {
    return {
      KUBERNETES_SERVICE_HOST: HOST_IP,
      KUBERNETES_SERVICE_PORT: new URL(this.#host.access.url).port,
      VCLUSTER_NAME: VCLUSTER,
      POD_NAME: POD_NAME,
      POD_IP: this.#pod.ip,
      NODE_NAME: 'node',
      NODE_IP: '10.0.2.15',
    };
  }

  /** With the certificates that vCluster has written into a Secret. It keeps running when vCluster restarts. */
  async #startEtcd(): Promise<void> {
    const folder = this.#pod.path('etcd');
    if (mkdirSync(folder, { recursive: true }) === undefined) return;
    const certs = await this.host.when('Secret', [this.namespace, `${VCLUSTER}-certs`], () => true, {
      timeoutMs: START_MS,
    });
    for (const name of ['etcd-server.crt', 'etcd-server.key', 'etcd-ca.crt'])
      writeFileSync(join(folder, name), dataOf(certs, name));
    const peer = 'http://127.0.0.1:2380';
    const name = `${VCLUSTER}-etcd-0`;
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
    this.#pod.spawn(join(process.env['KUBEBUILDER_ASSETS'] ?? '', 'etcd'), args, { stdio: 'ignore' });
  }

  async #post(path: string, body: unknown): Promise<JsonValue> {
    const answer = await this.host.request('POST', path, body);
    if (answer.status >= 300) throw new Error(`POST ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  #file(name: string, text: string): string {
    const path = this.#pod.path(name);
    writeFileSync(path, text);
    return path;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pod[Symbol.asyncDispose]();
  }
}

function dataOf(secret: KubeObject, key: string): string {
  const { data } = secret as KubeObject & { data: Record<string, string> };
  return Buffer.from(data[key] ?? '', 'base64').toString();
}

/** The names of the objects of one kind in the host namespace that are copies. */
export async function copiesOf({ host, namespace }: WholeVcluster, kind: KindName): Promise<string[]> {
  const selector = `?labelSelector=vcluster.loft.sh/managed-by%3D${VCLUSTER}`;
  return (await host.list(kind, namespace, selector)).map(({ metadata }) => metadata.name);
}
