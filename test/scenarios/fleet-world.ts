/** A host cluster, several virtual clusters, and on the host what vCluster's chart and vCluster leave there of each. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { META_TYPES, TypeTable } from '../../src/apiserver/schema/object-schema.ts';
import { defineResource, type ResourceDefinition } from '../../src/apiserver/objects/resource-definition.ts';
import { systemClock, type Clock } from '../../src/base/clock.ts';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import { createLogger } from '../../src/base/logger.ts';
import { systemRandom } from '../../src/base/random.ts';
import { reloadOnChange } from '../../src/cli/process-lifecycle.ts';
import { loadConfig, type LoadedConfig } from '../../src/cli/config/load.ts';
import { startEmbeddedCluster } from '../../src/embedded-cluster/embedded-cluster.ts';
import { startFleet, type Fleet } from '../../src/fleet/fleet.ts';
import { subdomainProblem } from '../../src/kube/names.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { eventually, type WaitOptions } from '../support/eventually.ts';
import { SANDBOX_SETTINGS } from '../support/local-evaluation.ts';
import { replaceFile } from '../support/replace-file.ts';
import { yamlText } from '../support/yaml-text.ts';
import { RefusedError, TestCluster, type KindName } from './cluster-client.ts';
import { hostNameOf } from './expected-copy.ts';
import { gadgets } from './gadgets.ts';
import { endpoints, subset } from './objects.ts';
import { RunningDaemon } from './running-daemon.ts';

/** A cluster of a world, with a kubeconfig that names no files. */
export interface FleetCluster {
  readonly kubeconfig: string;
  readonly client: TestCluster;
}

export interface FleetClusters extends AsyncDisposable {
  readonly host: FleetCluster;
  /** By index, opened at the first use. */
  virtual(index: number): Promise<FleetCluster>;
}

export type NewFleetWorld = () => Promise<FleetWorld>;

/** A vCluster in the namespace of its own name, `team-NAME`. */
export interface Installed {
  readonly name: string;
  readonly namespace: string;
  readonly virtual: TestCluster;
  /** `NAMESPACE/NAME`. */
  readonly key: string;
}

export interface InstallOptions {
  readonly index?: number;
  readonly namespace?: string;
  readonly values?: JsonObject;
  readonly labels?: Record<string, string>;
  readonly replicas?: number;
  /** Instead of the kubeconfig of the virtual cluster; undefined: no Secret. */
  readonly access?: Record<string, string> | undefined;
}

/** The fleet's own, which its patterns do not include. */
export const FLEET_NAMESPACE = 'fleet';

/** What a vCluster that joins has in its values. */
export const SWITCHED_OFF = { endpoints: { enabled: false }, endpointSlices: { enabled: false } };

/** The values of a vCluster that joins, with a patch of the annotation that every Endpoints of {@link FleetWorld.createEndpoints} has. */
export function annotating(value: string): JsonObject {
  const patches = [{ path: 'metadata.annotations["example.com/by"]', expression: `"${value}"` }];
  return { sync: { toHost: { ...SWITCHED_OFF, endpoints: { enabled: false, patches } } } };
}

export class FleetWorld implements AsyncDisposable {
  readonly host: TestCluster;
  readonly directory: string;
  readonly #clusters: FleetClusters;
  readonly #stack = new AsyncDisposableStack();
  readonly #fleets: LocalFleet[] = [];
  readonly #expectedErrors: RegExp[] = [];
  #count = 0;

  constructor(clusters: FleetClusters) {
    this.#clusters = clusters;
    this.host = clusters.host.client;
    this.directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-fleet-'));
    this.#stack.defer(() => rmSync(this.directory, { recursive: true, force: true }));
  }

  /** As installed by the chart, and started. */
  async install(name: string, options: InstallOptions = {}): Promise<Installed> {
    const { index = this.#count++, namespace = `team-${name}` } = options;
    const { kubeconfig, client } = await this.#clusters.virtual(index);
    const access = 'access' in options ? options.access : { config: kubeconfig };
    const vcluster = { name, namespace, virtual: client, key: `${namespace}/${name}` };
    await this.host.ensureNamespace(namespace);
    await client.ensureNamespace('default');
    await this.setValues(vcluster, options.values ?? { sync: { toHost: SWITCHED_OFF } });
    await this.host.create('Service', {
      metadata: { name, namespace },
      spec: { ports: [{ name: 'https', port: 443, protocol: 'TCP' }] },
    });
    await this.setWorkload(vcluster, options);
    if (access !== undefined) await this.setSecret(namespace, `vc-${name}`, access);
    return vcluster;
  }

  async setWorkload(
    { name, namespace }: Installed,
    { labels = { 'endpoint-syncer/enabled': 'true' }, replicas = 1 }: InstallOptions,
    kind: 'StatefulSet' | 'Deployment' = 'StatefulSet',
  ): Promise<void> {
    const pod = { app: 'vcluster', release: name };
    await this.#put(kind, {
      metadata: { name, namespace, labels: { ...pod, ...labels } },
      spec: {
        replicas,
        selector: { matchLabels: pod },
        template: {
          metadata: { labels: pod },
          spec: { containers: [{ name: 'syncer', image: 'vcluster' }] },
        },
        ...(kind === 'StatefulSet' ? { serviceName: `${name}-headless` } : {}),
      },
    });
  }

  async setValues(
    { name, namespace }: Pick<Installed, 'name' | 'namespace'>,
    values: JsonObject | string,
  ): Promise<void> {
    const text = typeof values === 'string' ? values : yamlText(values);
    await this.setSecret(namespace, `vc-config-${name}`, { 'config.yaml': text });
  }

  async setSecret(namespace: string, name: string, texts: Record<string, string>): Promise<void> {
    const data = Object.fromEntries(
      Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
    );
    await this.#put('Secret', { metadata: { name, namespace }, data });
  }

  async setOverlay({ name, namespace }: Installed, file: JsonObject): Promise<void> {
    const data = { 'config.yaml': yamlText(file) };
    await this.#put('ConfigMap', { metadata: { name: `endpoint-syncer-${name}`, namespace }, data });
  }

  /** As helm does. */
  async uninstall({ name, namespace }: Installed): Promise<void> {
    await this.host.delete('StatefulSet', namespace, name);
    await this.host.delete('Service', namespace, name);
    await this.host.delete('Secret', namespace, `vc-config-${name}`);
    await this.host.delete('Secret', namespace, `vc-${name}`);
  }

  async scale({ name, namespace }: Installed, replicas: number): Promise<void> {
    await this.host.merge('StatefulSet', [namespace, name], { spec: { replicas } });
  }

  /** Started and ready. */
  async start(config: JsonObject = {}, options: LocalFleetOptions = {}): Promise<LocalFleet> {
    const file = join(this.directory, 'fleet.yaml');
    this.writeConfig(config);
    await this.host.ensureNamespace(FLEET_NAMESPACE);
    const fleet = this.#stack.use(await LocalFleet.start(file, options));
    this.#fleets.push(fleet);
    return fleet;
  }

  /** What is below `endpointSyncer`; `managementApi` is beside it. */
  writeConfig({
    fleet = {},
    managementApi = {},
    defaults = {},
    ...rest
  }: { fleet?: JsonValue; managementApi?: JsonValue; defaults?: JsonValue } & JsonObject): void {
    const endpointSyncer = {
      host: { kubeconfig: this.host.kubeconfigPath, namespace: FLEET_NAMESPACE },
      http: { bindAddress: '127.0.0.1:0' },
      log: { level: 'info', format: 'json' },
      fleet: { enabled: true, namespaces: { include: ['team-*'] }, ...(fleet as JsonObject) },
      ...rest,
      defaults: { ...SANDBOX_SETTINGS, ...(defaults as JsonObject) },
    };
    this.file('fleet.yaml', stringify({ endpointSyncer, managementApi }));
  }

  /** In the ConfigMap from which a fleet in a Pod has its file. */
  async publishConfig(): Promise<void> {
    const data = { 'config.yaml': readFileSync(join(this.directory, 'fleet.yaml'), 'utf8') };
    await this.#put('ConfigMap', {
      metadata: { name: 'endpoint-syncer', namespace: FLEET_NAMESPACE },
      data,
    });
  }

  /** The path of a file that is deleted with this world. */
  file(name: string, text: string): string {
    const path = join(this.directory, name);
    replaceFile(path, text);
    return path;
  }

  async createEndpoints({ virtual }: Installed, name: string, ip: string): Promise<void> {
    await virtual.create(
      'Endpoints',
      endpoints(`default/${name}`, {
        annotations: { 'example.com/by': 'the tenant' },
        subsets: [subset(ip)],
      }),
    );
  }

  /** Waits for the copy of `default/NAME` with this address. */
  async whenCopied(
    vcluster: Installed,
    name: string,
    ip: string,
    options: WaitOptions = {},
  ): Promise<KubeObject> {
    return this.host.when(
      'Endpoints',
      this.hostKey(vcluster, name),
      (copy) => JSON.stringify(copy['subsets'] ?? []).includes(`"${ip}"`),
      options,
    );
  }

  async whenNoCopy(vcluster: Installed, name: string): Promise<void> {
    await this.host.whenGone('Endpoints', this.hostKey(vcluster, name));
  }

  hostKey({ name: vcluster, namespace }: Installed, name: string): [string, string] {
    return [namespace, hostNameOf({ vcluster, hostNamespace: namespace }, 'default', name)];
  }

  /** Waits until `/readyz?verbose` shows this state, and returns the line. */
  async whenState(fleet: RunningDaemon, { key }: Installed, state: string): Promise<string> {
    const prefix = `[+]vcluster ${key} ok: `;
    return eventually(
      async () =>
        (await fleet.get('/readyz?verbose')).text.split('\n').find((line) => line.startsWith(prefix)) ?? '',
      (line) => line === `${prefix}${state}` || line.startsWith(`${prefix}${state}: `),
      { what: `the state ${state} of ${key}` },
    );
  }

  /** Waits until the vCluster is no member. */
  async whenGone(fleet: RunningDaemon, { key }: Installed): Promise<void> {
    await eventually(
      () => fleet.get('/readyz?verbose'),
      ({ text }) => !text.includes(`vcluster ${key} `),
      { what: `the end of the member ${key}` },
    );
  }

  async virtual(index: number): Promise<TestCluster> {
    return (await this.#clusters.virtual(index)).client;
  }

  /** The kubeconfig of a virtual cluster. */
  async access(index: number): Promise<string> {
    return (await this.#clusters.virtual(index)).kubeconfig;
  }

  /** Any other line of level `error`, or with a stack, in the log of a fleet fails the scenario. */
  expectErrors(...patterns: readonly RegExp[]): void {
    this.#expectedErrors.push(...patterns);
  }

  /** In one write: a reader never sees half of it. */
  async #put(kind: KindName, object: KubeObject): Promise<void> {
    try {
      await this.host.create(kind, object);
    } catch (error) {
      if (!(error instanceof RefusedError) || error.status !== 409) throw error;
      await this.host.update(kind, object);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
    await this.#clusters[Symbol.asyncDispose]();
    const unexpected = this.#fleets.flatMap((fleet) => fleet.unexpectedLines(this.#expectedErrors));
    if (unexpected.length > 0)
      throw new Error(
        `the log has unexpected lines:\n${unexpected.map((line) => JSON.stringify(line)).join('\n')}`,
      );
  }
}

export interface LocalFleetOptions {
  readonly isDryRun?: boolean;
  readonly clock?: Clock;
}

/** A fleet in the process of the test, composed as `run` composes it. */
export class LocalFleet extends RunningDaemon {
  readonly #fleet: Fleet;
  readonly #lines: { text: string };
  readonly #watching: { close(): void };
  #isStopped = false;

  private constructor(fleet: Fleet, lines: { text: string }, watching: { close(): void }) {
    super(fleet.healthUrl);
    this.#fleet = fleet;
    this.#lines = lines;
    this.#watching = watching;
  }

  static async start(
    file: string,
    { isDryRun = false, clock = systemClock }: LocalFleetOptions,
  ): Promise<LocalFleet> {
    const load = (): Promise<LoadedConfig> =>
      loadConfig({ file, env: {}, flags: {}, isStart: true, acceptsFleet: true });
    const loaded = await load();
    const lines = { text: '' };
    const destination = { write: (line: string) => void (lines.text += line) };
    const logger = await createLogger({ ...loaded.config.log, destination });
    const fleet = await startFleet({
      config: loaded.config,
      textHash: loaded.textHash,
      isDryRun,
      logger,
      clock,
      random: systemRandom,
      version: 'test',
      signal: new AbortController().signal,
    });
    const watching = reloadOnChange({ loaded, load, daemon: fleet, clock: systemClock, logger });
    return new LocalFleet(fleet, lines, watching);
  }

  override get stderr(): string {
    return this.#lines.text;
  }

  override async stop(): Promise<void> {
    this.#isStopped = true;
    this.#watching.close();
    await this.#fleet.stop();
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isStopped) await this.stop();
  }
}

/** Embedded clusters, which a test has for itself. */
export const newEmbeddedFleet: NewFleetWorld = async () => {
  const stack = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-fleet-clusters-'));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const opened = new Map<number, Promise<FleetCluster>>();
  const open = async (name: string): Promise<FleetCluster> => {
    const cluster = stack.use(
      await startEmbeddedCluster({ name, token: name, kinds: [...workloads(), gadgets()] }),
    );
    const file = join(directory, `${name}.kubeconfig`);
    writeFileSync(file, cluster.kubeconfig);
    return { kubeconfig: cluster.kubeconfig, client: stack.use(new TestCluster(file)) };
  };
  return new FleetWorld({
    host: await open('host'),
    virtual(index) {
      const known = opened.get(index) ?? open(`virtual-${index}`);
      opened.set(index, known);
      return known;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  });
};

/** As far as a fleet reads them. */
function workloads(): ResourceDefinition[] {
  const types = new TypeTable([
    META_TYPES,
    'apps.Workload = metadata:1! meta.ObjectMeta; spec:2 any; status:3 any',
  ]);
  return ['StatefulSet', 'Deployment'].map((kind) =>
    defineResource({
      group: 'apps',
      version: 'v1',
      kind,
      plural: `${kind.toLowerCase()}s`,
      singular: kind.toLowerCase(),
      isNamespaced: true,
      schema: types.get('apps.Workload'),
      checkName: subdomainProblem,
      hasStatus: true,
      hasGeneration: true,
      hasTypedItems: true,
    }),
  );
}
