/** The demo: both clusters in this process, samples that change, and the real daemon between them. */

import { mkdir, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type EmbeddedCluster, startEmbeddedCluster } from '../embedded-cluster/embedded-cluster.ts';
import { withLiveChanges, type Config } from '../syncer/config/config.ts';
import { type Daemon, startDaemon } from '../syncer/run.ts';
import { plainAccess } from '../kube/access.ts';
import { RestClient } from '../kube/client/client.ts';
import type { ClusterClient, ClusterName, WatchClient } from '../kube/types.ts';
import { loadConfig, type LoadedConfig } from '../cli/config/load.ts';
import {
  asJson,
  CONFIG_MAPS,
  ENDPOINT_SLICES,
  ENDPOINTS,
  NAMESPACES,
  objectKey,
  SERVICES,
  type KubeObject,
} from '../kube/object.ts';
import { sleep, systemClock } from '../base/clock.ts';
import { fileProblem, TerminalError } from '../base/errors.ts';
import { statedOrigin } from '../syncer/translate/bookkeeping.ts';
import {
  ActivityLogger,
  DEMO_HOST_NAMESPACE,
  DEMO_NAMESPACE,
  DEMO_OWNER,
  DEMO_SAMPLES,
  DEMO_SETTINGS,
  demoConfig,
} from './demo-activity.ts';
import { printObject } from '../cli/output/objects.ts';
import { type DemoPage, startDemoPage } from './demo-page.ts';
import { DemoChanges } from './demo-changes.ts';
import { reloadOnChange } from '../cli/process-lifecycle.ts';
import { programParts } from '../cli/installation.ts';

interface DemoOptions {
  /** Ends when all samples are synced, without a page and changes. */
  readonly isOnce: boolean;
  /** For the kubeconfigs and the configuration. */
  readonly dir: string;
  /** Of the page; 0: any free port. */
  readonly port: number;
  readonly signal: AbortSignal;
}

export interface SyncedSample {
  readonly endpoints: KubeObject;
  readonly copy: KubeObject | undefined;
  /** Why it is not synced; undefined if it is. */
  readonly notSynced: string | undefined;
  /** Milliseconds from event to write. */
  readonly latencyMs: number | undefined;
}

const SETTLE_MAX_MS = 30_000;

/** Runs until the signal is aborted, or with `isOnce` until the samples are synced: the result has them, and is undefined if that took too long. */
export async function runDemo({
  isOnce,
  dir,
  port,
  signal,
}: DemoOptions): Promise<readonly SyncedSample[] | undefined> {
  await using virtual = await startEmbeddedCluster({ name: 'virtual' });
  await using host = await startEmbeddedCluster({ name: 'host' });
  const files = await writeFiles(resolve(dir), { virtual, host });
  await using virtualClient = clientOf('virtual', virtual);
  await using hostClient = clientOf('host', host);
  const clients = { virtual: virtualClient, host: hostClient };
  await hostClient.create(NAMESPACES, { ...DEMO_NAMESPACE, metadata: { name: DEMO_HOST_NAMESPACE } });
  const load = (): Promise<LoadedConfig> => loadConfig({ file: files.config, env: {}, flags: {} });
  const loaded = await load();
  let config = loaded.config;
  await using page = isOnce ? undefined : await openPage(port, () => config, clients);
  let isWarm = false;
  const activity = new ActivityLogger(
    isOnce ? undefined : (line) => isWarm && process.stdout.write(`${line}\n`),
    (entry) => isWarm && page?.feed.record(entry),
  );
  const daemon = await startDaemon({
    config: loaded.config,
    isDryRun: false,
    logger: activity,
    ...programParts(),
    signal,
    hasHostControllers: false,
  });
  try {
    await virtualClient.create(NAMESPACES, DEMO_NAMESPACE);
    await warmUp(clients, daemon, signal);
    isWarm = true;
    if (page !== undefined) printIntroduction(dir, page.url, daemon.healthUrl);
    await createSamples(virtualClient);
    if (isOnce) return await syncedSamples(hostClient, activity, signal);
    const { sync } = daemon;
    const reloading: Reloading = {
      reload: async (next, textHash) => {
        await sync.reload(next, textHash);
        config = withLiveChanges(config, next);
        page?.feed.configured();
      },
      reloadFailed: (reason) => sync.reloadFailed(reason),
    };
    const watcher = reloadOnChange({ loaded, load, daemon: reloading, clock: systemClock, logger: activity });
    await using changes = new DemoChanges({ clients, config: () => config });
    await changes.run(signal);
    watcher.close();
    return undefined;
  } finally {
    await daemon.stop();
    // The API servers end with this process.
    await Promise.all([files.virtual, files.host].map((path) => rm(path, { force: true })));
  }
}

interface Clients {
  readonly virtual: WatchClient;
  readonly host: WatchClient;
}

/** Throws a `TerminalError` where the folder cannot be written. */
async function writeFiles(dir: string, clusters: Readonly<Record<ClusterName, EmbeddedCluster>>) {
  const files = {
    virtual: join(dir, 'virtual.kubeconfig'),
    host: join(dir, 'host.kubeconfig'),
    config: join(dir, 'config.yaml'),
  };
  try {
    await makeFolder(dir);
    await writeFile(files.virtual, clusters.virtual.kubeconfig);
    await writeFile(files.host, clusters.host.kubeconfig);
    await writeFile(files.config, demoConfig(files));
  } catch (cause) {
    const message = `cannot write the kubeconfigs to ${dir} (${fileProblem(cause)}): choose another --dir`;
    throw new TerminalError(message, { cause });
  }
  return files;
}

/** With its parents. Node's own option for that never ends where the system creates no folders, such as below /proc. */
async function makeFolder(path: string): Promise<void> {
  if (existsSync(path)) return;
  if (dirname(path) !== path) await makeFolder(dirname(path));
  await mkdir(path);
}

function clientOf(cluster: ClusterName, { url }: EmbeddedCluster): WatchClient {
  const metrics = { requested: () => undefined };
  return new RestClient({
    cluster,
    access: plainAccess(url),
    clock: systemClock,
    metrics,
    userAgent: 'demo',
  });
}

type Reloading = Parameters<typeof reloadOnChange>[0]['daemon'];

function openPage(port: number, config: () => Config, clients: Clients): Promise<DemoPage> {
  const resources = [SERVICES, ENDPOINTS, ENDPOINT_SLICES, CONFIG_MAPS];
  const namespaces = { virtual: DEMO_NAMESPACE.metadata.name, host: DEMO_HOST_NAMESPACE };
  const sample = [DEMO_SAMPLES[0]?.endpoints, DEMO_SETTINGS].flatMap((object) => object ?? []);
  const text = sample.map((object) => printObject(asJson(object), 'yaml')).join('---\n');
  return startDemoPage({ port, config, clients, resources, namespaces, sample: text });
}

function printIntroduction(dir: string, pageUrl: string, healthUrl: string): void {
  process.stdout.write(
    [
      'Two API servers run in this process. Look at both sides, in another terminal:',
      '',
      `  kubectl --kubeconfig ${join(dir, 'virtual.kubeconfig')} get endpoints -A`,
      `  kubectl --kubeconfig ${join(dir, 'host.kubeconfig')} get endpoints -A`,
      '',
      `or in a browser: ${pageUrl}`,
      '',
      `The configuration is ${join(dir, 'config.yaml')}; changes below sync are applied immediately. Ctrl-C ends it.`,
      '',
      `Metrics and health: ${healthUrl}/metrics, ${healthUrl}/readyz`,
      '',
      '',
    ].join('\n'),
  );
}

async function syncedSamples(
  host: ClusterClient,
  activity: ActivityLogger,
  signal: AbortSignal,
): Promise<readonly SyncedSample[] | undefined> {
  const deadlineMs = systemClock.monotonicMs() + SETTLE_MAX_MS;
  for (;;) {
    const { items } = await host.list(ENDPOINTS, { namespace: DEMO_HOST_NAMESPACE });
    const copies = new Map(items.map((copy) => [statedOrigin(copy) ?? '', copy]));
    const samples = DEMO_SAMPLES.map(({ endpoints, notSynced }) => {
      const key = objectKey(endpoints);
      return { endpoints, notSynced, copy: copies.get(key), latencyMs: activity.latencyMs(key) };
    });
    const isSynced = ({ copy, latencyMs }: SyncedSample): boolean =>
      copy !== undefined && latencyMs !== undefined;
    if (samples.every((sample) => sample.notSynced !== undefined || isSynced(sample))) return samples;
    if (signal.aborted || systemClock.monotonicMs() > deadlineMs) return undefined;
    await sleep(systemClock, 20, signal);
  }
}

const WARM_UP_MAX_MS = 10_000;

/** Syncs and deletes one object, which starts the sandbox, so that the latencies of the samples are those of a sync and not of a start. */
async function warmUp({ virtual, host }: Clients, daemon: Daemon, signal: AbortSignal): Promise<void> {
  const [sample] = DEMO_SAMPLES;
  if (sample === undefined) return;
  const place = { namespace: DEMO_NAMESPACE.metadata.name, name: 'warm-up' };
  const deadlineMs = systemClock.monotonicMs() + WARM_UP_MAX_MS;
  const waitFor = async (copies: number): Promise<void> => {
    const count = async (): Promise<number> =>
      (await host.list(ENDPOINTS, { namespace: DEMO_HOST_NAMESPACE })).items.length;
    while (!signal.aborted && systemClock.monotonicMs() < deadlineMs && (await count()) !== copies)
      await sleep(systemClock, 20, signal);
  };
  await daemon.sync.firstPass(signal);
  const metadata = { ...place, annotations: { [DEMO_OWNER]: 'demo' } };
  const created = await virtual.create(ENDPOINTS, { ...sample.endpoints, metadata });
  await waitFor(1);
  await virtual.delete(ENDPOINTS, place, { uid: created.metadata.uid ?? '' });
  await waitFor(0);
}

async function createSamples(virtual: ClusterClient): Promise<void> {
  await virtual.create(CONFIG_MAPS, DEMO_SETTINGS);
  for (const { service, endpoints } of DEMO_SAMPLES) {
    if (service !== undefined) await virtual.create(SERVICES, service);
    await virtual.create(ENDPOINTS, endpoints);
  }
}
