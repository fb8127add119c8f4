/** Runs the program as a ServiceAccount of real clusters: kubeconfigs with its token, and the outcome of `run` with a configuration. */

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Daemon } from '../../scenarios/daemon.ts';
import { freePorts } from '../../support/free-ports.ts';
import { eventually } from '../../support/eventually.ts';
import {
  selfContainedKubeconfig,
  startRealClusters,
  type RealClusters,
  type StartOptions,
} from '../clusters.ts';
import { Guardian } from '../../support/guardian.ts';

const run = promisify(execFile);

/** Outcome of one start: ready, or an exit code and what was printed. */
export interface StartOutcome {
  readonly exitCode: number | 'ready';
  readonly stderr: string;
}

/** A separate pair of clusters, so that only what the test applies is granted. */
export class ClusterHarness implements AsyncDisposable {
  readonly clusters: RealClusters;
  readonly folder: string;
  readonly #guardian: Guardian;

  private constructor(clusters: RealClusters) {
    this.clusters = clusters;
    this.folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-account-'));
    this.#guardian = new Guardian([this.folder]);
  }

  static async start(
    namespaces: readonly string[],
    options: StartOptions = { controllers: false },
  ): Promise<ClusterHarness> {
    const harness = new ClusterHarness(await startRealClusters(options));
    for (const namespace of namespaces) await harness.kubectl('host', 'create', 'namespace', namespace);
    return harness;
  }

  async kubectl(cluster: 'host' | 'virtual', ...args: readonly string[]): Promise<string> {
    const { kubectl } = this.clusters;
    const { stdout } = await run(kubectl, [`--kubeconfig=${this.clusters[cluster].kubeconfigPath}`, ...args]);
    return stdout;
  }

  /** In a namespace of the host. */
  async createSecret(namespace: string, name: string, key: string, value: string): Promise<void> {
    const secret = ['secret', 'generic', name, `--from-literal=${key}=${value}`];
    await this.kubectl('host', '-n', namespace, 'create', ...secret);
  }

  /** Writes the documents into a file and applies them as an administrator, server-side. */
  async apply(cluster: 'host' | 'virtual', text: string, ...flags: readonly string[]): Promise<string> {
    const file = join(this.folder, 'apply.yaml');
    writeFileSync(file, text);
    return this.kubectl(cluster, 'apply', '--server-side', '--force-conflicts', ...flags, '-f', file);
  }

  /** A kubeconfig, as text, with a token of the ServiceAccount. */
  async kubeconfigOf(cluster: 'host' | 'virtual', namespace: string, name: string): Promise<string> {
    const token = await this.kubectl(cluster, '-n', namespace, 'create', 'token', name);
    return selfContainedKubeconfig(this.clusters[cluster], token.trim());
  }

  /** Starts `run` with a configuration; the caller disposes of it. */
  async startDaemon(config: string, args: readonly string[] = []): Promise<Daemon> {
    const file = join(this.folder, 'config.yaml');
    writeFileSync(file, config);
    const [port] = await freePorts(1);
    const address = `127.0.0.1:${port}`;
    return new Daemon({
      args: ['--config', file, '--http-bind-address', address, ...args],
      httpUrl: `http://${address}`,
      guardian: this.#guardian,
    });
  }

  /** Starts `run`, and stops it when it is ready and `whenReady` has resolved. */
  async startOutcome(
    config: string,
    args: readonly string[] = [],
    whenReady: (daemon: Daemon) => Promise<unknown> = async () => undefined,
  ): Promise<StartOutcome> {
    await using daemon = await this.startDaemon(config, args);
    const isReady = async (): Promise<boolean> => (await daemon.get('/readyz')).status === 200;
    const becomesReady = eventually(isReady, (ready) => ready).then(() => undefined);
    const exit = await Promise.race([daemon.exited, becomesReady]);
    becomesReady.catch(() => undefined); // the daemon has exited
    if (exit === undefined) await whenReady(daemon);
    // What it has written is complete once it has ended.
    await daemon.terminate();
    return { exitCode: exit === undefined ? 'ready' : (exit.code ?? -1), stderr: daemon.stderr };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#guardian[Symbol.asyncDispose]();
    await this.clusters[Symbol.asyncDispose]();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
