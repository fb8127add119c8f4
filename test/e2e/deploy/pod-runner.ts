/**
 * Stands in for the scheduler, the kubelet and cluster DNS: runs the containers of our image, in the Pods of one namespace, as processes of this
 * machine, and reports their readiness. Volumes of ConfigMaps and Secrets become folders; containers of other images do not run.
 */

import type { ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { TestCluster } from '../../scenarios/cluster-client.ts';
import { freePorts } from '../../support/free-ports.ts';
import { kubeconfigFor, type RealCluster } from '../clusters.ts';
import { Guardian } from '../../support/guardian.ts';

export interface PodRunnerOptions {
  readonly cluster: RealCluster;
  readonly namespace: string;
  /** Runs in place of the entry point of the image. */
  readonly entrypoint: readonly [string, ...string[]];
  readonly env: NodeJS.ProcessEnv;
  /** URL in the configuration → URL that this machine reaches: what DNS and Services do in a cluster. */
  readonly addresses: Readonly<Record<string, string>>;
}

interface Container {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
}

interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly secret?: { readonly secretName: string };
}

interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
  readonly spec: {
    readonly serviceAccountName?: string;
    readonly containers: readonly Container[];
    readonly volumes?: readonly Volume[];
  };
}

interface RunningPod {
  readonly pod: Pod;
  readonly process: ChildProcess;
  readonly httpUrl: string;
  isReady: boolean;
  isEnding: boolean;
  log: string;
}

const IMAGE = 'endpoint-syncer/endpoint-syncer:';
const POLL_MS = 100;

export class PodRunner implements AsyncDisposable {
  readonly #options: PodRunnerOptions;
  readonly #client: TestCluster;
  readonly #folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-pods-'));
  readonly #guardian = new Guardian([this.#folder]);
  readonly #running = new Map<string, RunningPod>();
  readonly #stop = new AbortController();
  readonly #loop: Promise<void>;

  constructor(options: PodRunnerOptions) {
    this.#options = options;
    this.#client = new TestCluster(options.cluster.kubeconfigPath);
    this.#loop = this.#run();
  }

  /** Standard error of all containers since the start, in place of `kubectl logs`. */
  get logs(): string {
    return [...this.#running.values()].map(({ log }) => log).join('');
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const pods = await this.#pods();
      // Its volumes may not be there yet, or no longer; like a kubelet, this one looks again.
      for (const pod of pods)
        if (!this.#running.has(pod.metadata.uid)) await this.#start(pod).catch(() => undefined);
      for (const [uid, running] of this.#running) {
        if (pods.some(({ metadata }) => metadata.uid === uid)) await this.#report(running);
        else if (!running.isEnding) running.isEnding = running.process.kill('SIGTERM');
      }
      await sleep(POLL_MS);
    }
  }

  async #pods(): Promise<readonly Pod[]> {
    const { body } = await this.#client.request('GET', this.#path('pods'));
    const { items } = body as unknown as { items: readonly Pod[] }; // a PodList
    return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  async #start(pod: Pod): Promise<void> {
    const container = pod.spec.containers.find(({ image }) => image.includes(IMAGE));
    if (container === undefined) return;
    const [port] = await freePorts(1);
    const root = join(this.#folder, pod.metadata.uid);
    await this.#mount(root, pod, container);
    const [program, ...first] = this.#options.entrypoint;
    const args = [
      ...first,
      ...(container.args ?? []).map((arg) => withFolders(arg, root, container)),
      `--http-bind-address=127.0.0.1:${port}`,
      `--host-kubeconfig=${join(root, 'kubeconfig')}`,
    ];
    const process = this.#guardian.spawn(program, args, {
      cwd: root,
      env: this.#options.env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const running = {
      pod,
      process,
      httpUrl: `http://127.0.0.1:${port}`,
      isReady: false,
      isEnding: false,
      log: '',
    };
    process.stderr?.setEncoding('utf8').on('data', (text: string) => (running.log += text));
    this.#running.set(pod.metadata.uid, running);
  }

  /** Writes the files of the volumes, and the kubeconfig of the ServiceAccount in place of its mounted token. */
  async #mount(root: string, pod: Pod, container: Container): Promise<void> {
    for (const { name, mountPath } of container.volumeMounts ?? []) {
      const folder = join(root, mountPath);
      mkdirSync(folder, { recursive: true });
      const volume = pod.spec.volumes?.find((other) => other.name === name);
      for (const [file, text] of await this.#filesOf(volume)) {
        const reachable = Object.entries(this.#options.addresses).reduce(
          (all, [from, to]) => all.replaceAll(from, to),
          withFolders(text, root, container),
        );
        writeFileSync(join(folder, file), reachable);
      }
    }
    mkdirSync(root, { recursive: true });
    const token = await this.#tokenOf(pod.spec.serviceAccountName ?? 'default');
    writeFileSync(join(root, 'kubeconfig'), kubeconfigFor(this.#options.cluster, token));
  }

  async #filesOf(volume: Volume | undefined): Promise<[string, string][]> {
    if (volume?.configMap !== undefined) {
      const { data } = await this.#dataOf(`configmaps/${volume.configMap.name}`);
      return Object.entries(data);
    }
    if (volume?.secret === undefined) return [];
    const { data } = await this.#dataOf(`secrets/${volume.secret.secretName}`);
    return Object.entries(data).map(([name, text]) => [name, Buffer.from(text, 'base64').toString()]);
  }

  async #dataOf(path: string): Promise<{ data: Record<string, string> }> {
    const { status, body } = await this.#client.request('GET', this.#path(path));
    if (status !== 200) throw new Error(`a volume of the Pod needs ${path}: ${JSON.stringify(body)}`);
    return body as unknown as { data: Record<string, string> }; // a ConfigMap or Secret
  }

  async #tokenOf(account: string): Promise<string> {
    const path = this.#path(`serviceaccounts/${account}/token`);
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
    const answer = (await this.#client.request('POST', path, body)).body;
    const { status } = answer as unknown as { status: { token: string } }; // a TokenRequest
    return status.token;
  }

  async #report(running: RunningPod): Promise<void> {
    if (running.isReady || !(await answersReady(running.httpUrl))) return;
    running.isReady = true;
    const condition = (type: string) => ({
      type,
      status: 'True',
      lastTransitionTime: new Date().toISOString(),
    });
    const patch = { status: { phase: 'Running', conditions: ['Ready', 'ContainersReady'].map(condition) } };
    const path = this.#path(`pods/${running.pod.metadata.name}/status`);
    await this.#client.request('PATCH', path, patch, 'application/merge-patch+json');
  }

  #path(path: string): string {
    return `/api/v1/namespaces/${this.#options.namespace}/${path}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#loop;
    await this.#guardian[Symbol.asyncDispose]();
    await this.#client[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function withFolders(text: string, root: string, { volumeMounts = [] }: Container): string {
  return volumeMounts.reduce((all, { mountPath }) => all.replaceAll(mountPath, join(root, mountPath)), text);
}

async function answersReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/readyz`);
    await response.text();
    return response.status === 200;
  } catch {
    return false; // it does not listen yet
  }
}
