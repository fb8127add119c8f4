/**
 * A world is the environment of one scenario: a virtual cluster, a host cluster, a namespace of its own on the host and daemons between
 * them. The same scenario runs in a world of embedded clusters and in one of real kube-apiservers.
 */

import { deepStrictEqual } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubeObject, StringMap } from '../../src/kube/object.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import { Guardian } from '../support/guardian.ts';
import { SANDBOX_SETTINGS } from '../support/local-evaluation.ts';
import { ApiProxy } from './api-proxy.ts';
import { TestCluster, type KindName } from './cluster-client.ts';
import { Daemon } from './daemon.ts';
import { eventually, type WaitOptions } from '../support/eventually.ts';
import {
  bookkeeping,
  expectedCopy,
  hostNameOf,
  MANAGED,
  MARKER,
  viewOf,
  type CopiedKind,
  type CopyView,
  type Placement,
} from './expected-copy.ts';
import { freePorts } from '../support/free-ports.ts';
import { replaceFile } from '../support/replace-file.ts';
import { yamlText } from '../support/yaml-text.ts';
import { LocalDaemon } from './local-daemon.ts';
import { endpoints, subset, type EndpointsOptions } from './objects.ts';
import type { RunningDaemon } from './running-daemon.ts';
import { WriteLog } from './write-log.ts';

export type ClusterName = 'virtual' | 'host';

/** A rule of RBAC, as in a Role. */
export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** '' is the whole cluster. */
  readonly namespace: string;
}

/** The two clusters of a world; several worlds may share them. */
export interface WorldClusters extends AsyncDisposable {
  readonly kind: 'embedded' | 'real';
  readonly virtual: { readonly kubeconfigPath: string };
  readonly host: { readonly kubeconfigPath: string };
  /** The kubeconfig (as text) of a user with exactly these rights in one of the clusters. */
  userKubeconfig(cluster: ClusterName, rules: readonly Rule[]): Promise<string>;
  /** Kills an API server, as a crash would. */
  stop(component: ClusterName | 'controllers'): Promise<void>;
  start(component: ClusterName | 'controllers'): Promise<void>;
  /** What syncs between them. Default: the daemon of one virtual cluster. */
  readonly installation?: Installation;
}

export interface Installation {
  /** The whole file, and what it needs on the host. */
  configuration(world: World, options: StartOptions, httpPort: number): Promise<JsonObject>;
  /** In this process; ready. */
  start(configPath: string): Promise<RunningDaemon>;
  /** Before the daemons of a world end. */
  ending?(): Promise<void>;
}

const DAEMON: Installation = {
  configuration: async (world, options, httpPort) => world.configuration(options, httpPort),
  start: (configPath) => LocalDaemon.start(configPath),
};

export interface WorldOptions {
  /** Default: `vc` and a few random letters. */
  vcluster?: string;
}

export type NewWorld = (options?: WorldOptions) => Promise<World>;

export interface StartOptions {
  /** Merged deeply into the configuration of every daemon of this world. */
  config?: JsonObject;
  args?: readonly string[];
  /** Kubeconfig files to use instead of the administrator's. */
  kubeconfigs?: Partial<Record<ClusterName, string>>;
  env?: Readonly<Record<string, string>>;
  /** Of another build. */
  checkout?: string;
}

const FENCE = 'fence-';

export class World implements AsyncDisposable, Placement {
  readonly clusters: WorldClusters;
  readonly vcluster: string;
  readonly hostNamespace: string;
  readonly virtual: TestCluster;
  readonly host: TestCluster;
  readonly directory: string;
  readonly #guardian: Guardian;
  readonly #stack = new AsyncDisposableStack();
  readonly #hostNamespaces = new Set<string>();
  readonly #daemons: RunningDaemon[] = [];
  readonly #expectedErrors: RegExp[] = [];
  /** Those of Endpoints. */
  readonly #logs: { readonly cluster: ClusterName; readonly log: WriteLog }[] = [];
  #files = 0;

  private constructor(clusters: WorldClusters, vcluster: string, hostNamespace: string) {
    this.clusters = clusters;
    this.vcluster = vcluster;
    this.hostNamespace = hostNamespace;
    this.directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-world-'));
    this.virtual = new TestCluster(clusters.virtual.kubeconfigPath);
    this.host = new TestCluster(clusters.host.kubeconfigPath);
    this.#guardian = new Guardian([this.directory]);
  }

  static async open(clusters: WorldClusters, options: WorldOptions = {}): Promise<World> {
    const id = randomBytes(3).toString('hex');
    const world = new World(clusters, options.vcluster ?? `vc${id}`, `host-${id}`);
    if (clusters.kind === 'real') await world.#emptyVirtual();
    await world.virtualNamespace('default');
    await world.hostNamespaceNamed(world.hostNamespace);
    return world;
  }

  async virtualNamespace(name: string): Promise<void> {
    await this.virtual.ensureNamespace(name);
  }

  async hostNamespaceNamed(name: string): Promise<void> {
    this.#hostNamespaces.add(name);
    await this.host.ensureNamespace(name);
  }

  /** A host namespace that the daemon may create: it is deleted with this world. */
  claimHostNamespace(name: string): void {
    this.#hostNamespaces.add(name);
  }

  /** A file that is deleted with this world, also in place of the one of this name. */
  file(name: string, text: string): string {
    const path = join(this.directory, name);
    replaceFile(path, text);
    return path;
  }

  /** An API proxy in front of one cluster, and a kubeconfig file for it. */
  async proxy(cluster: ClusterName): Promise<ApiProxy & { path: string }> {
    const proxy = await ApiProxy.open(this[cluster].kubeconfigPath);
    this.#stack.use(proxy);
    const path = this.file(`${cluster}-${++this.#files}.proxied.kubeconfig`, proxy.kubeconfig);
    return Object.assign(proxy, { path });
  }

  /** Closed when the world is. */
  keep<T extends AsyncDisposable>(resource: T): T {
    return this.#stack.use(resource);
  }

  configuration(options: StartOptions, httpPort: number): JsonObject {
    const base: JsonObject = {
      endpointSyncer: {
        name: this.vcluster,
        virtual: { kubeconfig: options.kubeconfigs?.virtual ?? this.virtual.kubeconfigPath },
        host: {
          kubeconfig: options.kubeconfigs?.host ?? this.host.kubeconfigPath,
          namespace: this.hostNamespace,
        },
        http: { bindAddress: `127.0.0.1:${httpPort}` },
        log: { level: 'info', format: 'json' },
        ...SANDBOX_SETTINGS,
      },
    };
    return merged(base, options.config ?? {});
  }

  writeConfig(config: JsonObject, name = `config-${++this.#files}.yaml`): string {
    return this.file(name, yamlText(config));
  }

  /** Started, not waited for. */
  async spawnDaemon(options: StartOptions = {}): Promise<Daemon & { configPath: string }> {
    const [port = 0] = await freePorts(1);
    const configPath = this.writeConfig(await this.#installation.configuration(this, options, port));
    const daemon = new Daemon({
      args: ['--config', configPath, ...(options.args ?? [])],
      httpUrl: `http://127.0.0.1:${port}`,
      guardian: this.#guardian,
      ...(options.env === undefined ? {} : { env: options.env }),
      ...(options.checkout === undefined ? {} : { checkout: options.checkout }),
    });
    this.#daemons.push(this.#stack.use(daemon));
    return Object.assign(daemon, { configPath });
  }

  /** Started and ready. */
  async startDaemon(options: StartOptions = {}): Promise<Daemon & { configPath: string }> {
    const daemon = await this.spawnDaemon(options);
    await daemon.ready();
    return daemon;
  }

  /**
   * Started and ready: in this process on embedded clusters, which is much cheaper, and a process of its own on real ones. For tests that
   * need neither signals nor an exit code.
   */
  async startSync(
    options: Pick<StartOptions, 'config' | 'kubeconfigs'> = {},
  ): Promise<RunningDaemon & { configPath: string }> {
    if (this.clusters.kind === 'real') return this.startDaemon(options);
    const configPath = this.writeConfig(await this.#installation.configuration(this, options, 0));
    const daemon = await this.#installation.start(configPath);
    this.#daemons.push(this.#stack.use(daemon));
    return Object.assign(daemon, { configPath });
  }

  get #installation(): Installation {
    return this.clusters.installation ?? DAEMON;
  }

  hostName(key: string): string {
    const [namespace = '', name = ''] = key.split('/');
    return hostNameOf(this, namespace, name);
  }

  hostKey(key: string): [string, string] {
    return [this.hostNamespace, this.hostName(key)];
  }

  /** An Endpoints object of the virtual cluster, see {@link endpoints}. */
  createVirtual(key: string, options?: EndpointsOptions): Promise<KubeObject> {
    return this.virtual.create('Endpoints', endpoints(key, options));
  }

  mergeVirtual(key: string, patch: unknown): Promise<KubeObject> {
    return this.virtual.merge('Endpoints', pair(key), patch);
  }

  async deleteVirtual(key: string): Promise<void> {
    await this.virtual.delete('Endpoints', ...pair(key));
  }

  /** As another client of the host changes the copy of the virtual object `namespace/name`. */
  mergeCopy(key: string, patch: unknown): Promise<KubeObject> {
    return this.host.merge('Endpoints', this.hostKey(key), patch);
  }

  async deleteCopy(key: string): Promise<void> {
    await this.host.delete('Endpoints', ...this.hostKey(key));
  }

  /** Labels and annotations with which another syncer, such as vCluster's, marks the copy of an object. */
  bookkeeping(kind: CopiedKind, key: string, uid?: string): { labels: StringMap; annotations: StringMap } {
    const [namespace, name] = pair(key);
    const [hostNamespace, hostName] = this.hostKey(key);
    const virtual = { namespace, name, ...(uid !== undefined && { uid }) };
    return {
      labels: { [MARKER]: this.vcluster, 'vcluster.loft.sh/namespace': namespace },
      annotations: bookkeeping(kind, virtual, { namespace: hostNamespace, name: hostName }),
    };
  }

  /** The copy of the virtual object `namespace/name`, if it exists. */
  findCopy(key: string): Promise<KubeObject | undefined> {
    return this.host.find('Endpoints', ...this.hostKey(key));
  }

  getCopy(key: string): Promise<KubeObject> {
    return this.host.get('Endpoints', ...this.hostKey(key));
  }

  whenCopy(key: string, holds?: (copy: KubeObject) => boolean, options?: WaitOptions): Promise<KubeObject> {
    return this.host.when('Endpoints', this.hostKey(key), holds, options);
  }

  whenNoCopy(key: string, options?: WaitOptions): Promise<void> {
    return this.host.whenGone('Endpoints', this.hostKey(key), options);
  }

  whenVirtual(
    key: string,
    holds: (object: KubeObject) => boolean,
    options?: WaitOptions,
  ): Promise<KubeObject> {
    return this.virtual.when('Endpoints', pair(key), holds, options);
  }

  getVirtual(key: string): Promise<KubeObject> {
    return this.virtual.get('Endpoints', ...pair(key));
  }

  /**
   * Waits until the copy is exactly what the rules derive from the current virtual object. `anyOrigin`: some annotations may have
   * come from the host, so that which of them are managed depends on what happened.
   */
  async whenCopied(key: string, options: WaitOptions & { anyOrigin?: boolean } = {}): Promise<KubeObject> {
    const { anyOrigin = false } = options;
    try {
      const { copy } = await eventually(
        () => this.#compare(key, anyOrigin),
        ({ seen, wanted }) => JSON.stringify(sorted(seen)) === JSON.stringify(sorted(wanted)),
        options,
      );
      return copy;
    } catch {
      const { seen, wanted, copy } = await this.#compare(key, anyOrigin);
      deepStrictEqual(seen, wanted); // throws with a readable difference
      return copy;
    }
  }

  async #compare(
    key: string,
    anyOrigin: boolean,
  ): Promise<{ copy: KubeObject; seen: CopyView; wanted: CopyView }> {
    const [copy, virtual] = await Promise.all([this.getCopy(key), this.getVirtual(key)]);
    const hasService = (await this.host.find('Service', ...this.hostKey(key))) !== undefined;
    const [seen, wanted] = [viewOf(copy), expectedCopy(virtual, this, hasService)];
    if (anyOrigin) {
      const there = virtual.metadata.annotations ?? {};
      const managed = seen.annotations[MANAGED]?.split('\n') ?? [];
      if (managed.every((name) => Object.hasOwn(there, name)))
        for (const view of [seen, wanted]) delete view.annotations[MANAGED];
    }
    return { copy, seen, wanted };
  }

  /** Every host object in this world's namespace with the marker, without the fences. */
  async copies(): Promise<KubeObject[]> {
    const all = await this.host.list(
      'Endpoints',
      this.hostNamespace,
      `?labelSelector=${MARKER}%3D${this.vcluster}`,
    );
    return all.filter(({ metadata }) => !metadata.name.startsWith(FENCE));
  }

  /**
   * Waits until the daemon has dealt with everything that happened on either side before: a new object has gone to the host, a
   * change of its copy has come back, and nothing is queued. The logs of Endpoints have every write until then.
   */
  async settle(daemon: RunningDaemon, namespace = 'default'): Promise<void> {
    const key = `${namespace}/${FENCE}${randomBytes(4).toString('hex')}`;
    await this.virtual.create('Endpoints', endpoints(key, { subsets: [subset('10.99.0.1')] }));
    await this.whenCopy(key, () => true, { what: 'the fence on the host' });
    await this.host.merge('Endpoints', this.hostKey(key), { metadata: { annotations: { fence: 'back' } } });
    await this.whenVirtual(key, ({ metadata }) => metadata.annotations?.['fence'] === 'back', {
      what: 'the fence, back in the virtual cluster',
    });
    await this.whenIdle(daemon);
    if (this.#logs.length > 0) await this.#completeLogs(key);
  }

  /** Waits until every log has the last event of the fence, and with it all earlier events. */
  async #completeLogs(fence: string): Promise<void> {
    const isSeen = ({ metadata }: KubeObject): boolean => metadata.annotations?.['fence'] === 'seen';
    await this.host.merge('Endpoints', this.hostKey(fence), { metadata: { annotations: { fence: 'seen' } } });
    await this.whenVirtual(fence, isSeen, { what: 'the last change of the fence in the virtual cluster' });
    const names = { virtual: pair(fence)[1], host: this.hostName(fence) };
    for (const { cluster, log } of this.#logs)
      await log.until(({ name, object }) => name === names[cluster] && isSeen(object));
  }

  /** Waits until no object is queued or being reconciled, in two consecutive checks. */
  async whenIdle(daemon: RunningDaemon): Promise<void> {
    let quiet = 0;
    await eventually(
      async () => {
        quiet = (await daemon.isIdle()) ? quiet + 1 : 0;
        return quiet;
      },
      (times) => times >= 2,
      { what: 'an idle work queue' },
    );
  }

  async log(cluster: ClusterName, kind: KindName = 'Endpoints'): Promise<WriteLog> {
    const namespace = cluster === 'host' ? this.hostNamespace : '';
    const log = this.keep(await WriteLog.open(this[cluster], kind, namespace));
    if (kind === 'Endpoints') this.#logs.push({ cluster, log });
    return log;
  }

  /** The events of a log, without the fences. */
  writesIn(log: WriteLog): string[] {
    return log.except(FENCE);
  }

  /** Events of events.k8s.io on this object with this reason. */
  async eventsOn(key: string, reason: string, kind: KindName = 'Endpoints'): Promise<KubeObject[]> {
    const [namespace, name] = pair(key);
    const { metadata } = await this.virtual.get(kind, namespace, name);
    const all = await this.virtual.list('Event', namespace);
    return all.filter((event) => {
      const regarding = event['regarding'];
      const isAbout = isJsonObject(regarding) && regarding['uid'] === metadata.uid;
      return isAbout && event['reason'] === reason;
    });
  }

  async whenEvent(
    key: string,
    reason: string,
    options: WaitOptions & { kind?: KindName } = {},
  ): Promise<string> {
    const events = await eventually(
      () => this.eventsOn(key, reason, options.kind),
      (found) => found.length > 0,
      { what: `an Event ${reason} on ${key}`, ...options },
    );
    const note = events[0]?.['note'];
    return typeof note === 'string' ? note : '';
  }

  /** Any other line of level `error`, or with a stack, in the log of a daemon fails the scenario. */
  expectErrors(...patterns: readonly RegExp[]): void {
    this.#expectedErrors.push(...patterns);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#installation.ending?.();
    } finally {
      await this.#end();
    }
  }

  async #end(): Promise<void> {
    await this.#stack.disposeAsync();
    const unexpected = this.#daemons.flatMap((daemon) => daemon.unexpectedLines(this.#expectedErrors));
    await this.#close();
    if (unexpected.length > 0)
      throw new Error(
        `the log has unexpected lines:\n${unexpected.map((line) => JSON.stringify(line)).join('\n')}`,
      );
  }

  async #close(): Promise<void> {
    await this.#empty();
    await Promise.all([this.virtual[Symbol.asyncDispose](), this.host[Symbol.asyncDispose]()]);
    await this.#guardian[Symbol.asyncDispose]();
    await this.clusters[Symbol.asyncDispose]();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Deletes its objects, because later tests use the same clusters. */
  async #empty(): Promise<void> {
    if (this.clusters.kind === 'embedded') return;
    await this.#emptyVirtual();
    for (const namespace of this.#hostNamespaces) await this.host.delete('Namespace', '', namespace);
  }

  /** A daemon syncs the whole virtual cluster, so objects that another test left there would be in this world too. */
  async #emptyVirtual(): Promise<void> {
    const [left, services] = [
      await this.virtual.list('Endpoints', ''),
      await this.virtual.list('Service', ''),
    ];
    for (const { metadata } of left) {
      if (!Array.isArray(metadata['finalizers'])) continue;
      const place: [string, string] = [metadata.namespace ?? '', metadata.name];
      await this.virtual.merge('Endpoints', place, { metadata: { finalizers: null } });
    }
    for (const namespace of new Set(left.map(({ metadata }) => metadata.namespace ?? '')))
      await this.virtual.deleteAll('Endpoints', namespace);
    await this.#emptyReferenced();
    for (const { metadata } of services)
      if (metadata.name !== 'kubernetes')
        await this.virtual.delete('Service', metadata.namespace ?? '', metadata.name);
  }

  /** The kinds that tests create; objects of the cluster itself are kept. */
  async #emptyReferenced(): Promise<void> {
    for (const kind of ['Secret', 'ConfigMap', 'EndpointSlice'] as const) {
      for (const { metadata } of await this.virtual.list(kind, '')) {
        const { namespace = '', name } = metadata;
        if (namespace.startsWith('kube-') || name === 'kube-root-ca.crt') continue;
        await this.virtual.delete(kind, namespace, name);
      }
    }
  }
}

export function pair(key: string): [string, string] {
  const [namespace = '', name = ''] = key.split('/');
  return [namespace, name];
}

function merged(base: JsonObject, over: JsonObject): JsonObject {
  const result: JsonObject = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const below = result[key];
    result[key] = isJsonObject(below) && isJsonObject(value) ? merged(below, value) : value;
  }
  return result;
}

/** The same value with every object's keys in order, so that texts can be compared. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key] as JsonValue)]),
  );
}
