/** The cost of imports: Endpoints that reference Secrets, each Secret updated once, then a restart; in the same run, the same Endpoints without
 * the reference patch. On real kube-apiservers.
 *
 *   npm run bench -- references [--endpoints 1000] [--secrets 200]
 */

import { mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { KubeObject } from '../src/kube/object.ts';
import type { JsonObject } from '../src/base/json.ts';
import { startRealClusters, type RealClusters } from '../test/e2e/clusters.ts';
import { Guardian, killGroup } from '../test/support/guardian.ts';
import { TestCluster } from '../test/scenarios/cluster-client.ts';
import { freePorts } from '../test/support/free-ports.ts';
import { CopyWatch } from './copy-watch.ts';
import { metric } from './daemon-process.ts';
import { inParallel } from '../test/support/in-parallel.ts';
import { thisMachine } from './machine.ts';
import { costOf } from './process-cost.ts';
import type { WriteResult } from './results.ts';
import { quantile } from './statistics.ts';

const ROOT = join(import.meta.dirname, '..');
const NOTE = 'example.com/secret';
const IN_FLIGHT = 10;

interface Plan {
  readonly endpoints: number;
  readonly secrets: number;
}

interface Bench {
  readonly plan: Plan;
  readonly clusters: RealClusters;
  readonly guardian: Guardian;
  readonly directory: string;
}

/** Times in ms, sizes in bytes. */
interface Measured {
  /** From process start to the last Endpoints copy and the last import. */
  readonly startMs: number;
  readonly startRequests: number;
  readonly rssBytes: number;
  /** From sending the first PUT of a Secret until the last import is up to date. */
  readonly updateMs: number;
  /** Time of the updating client. */
  readonly updateClientMs: number;
  readonly updateRequests: number;
  readonly updateCpuMs: number;
  /** One Secret at a time: from the response to its PUT until its import is up to date. */
  readonly singleP50Ms: number;
  readonly singleP99Ms: number;
  /** From a start after kill -9 until the daemon is idle. */
  readonly restartRequests: number;
  readonly restartWrites: number;
}

type Subject = 'with references' | 'without';

export async function run(args: readonly string[], writeResult: WriteResult): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      endpoints: { type: 'string', default: '1000' },
      secrets: { type: 'string', default: '200' },
    },
  });
  const plan: Plan = { endpoints: Number(values.endpoints), secrets: Number(values.secrets) };
  const machine = thisMachine();
  const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-bench-'));
  await using guardian = new Guardian([directory]);
  await using clusters = await startRealClusters({ controllers: false });
  const bench: Bench = { plan, clusters, guardian, directory };
  const measured: Record<Subject, Measured> = {
    without: await measure('without', bench),
    'with references': await measure('with references', bench),
  };
  const perReference = costPerReference(measured, plan);
  const date = new Date().toISOString().slice(0, 10);
  writeResult({ date, machine, plan, measured, perReference });
  process.stdout.write(tableOf(measured, perReference));
  rmSync(directory, { recursive: true, force: true });
}

async function measure(subject: Subject, { plan, clusters, guardian, directory }: Bench): Promise<Measured> {
  const isReferring = subject === 'with references';
  const id = isReferring ? 'refs' : 'plain';
  const place = { vcluster: id, virtualNamespace: `team-${id}`, hostNamespace: `host-${id}` };
  await using virtual = new TestCluster(clusters.virtual.kubeconfigPath);
  await using host = new TestCluster(clusters.host.kubeconfigPath);
  await virtual.ensureNamespace(place.virtualNamespace);
  await host.ensureNamespace(place.hostNamespace);
  const secrets = await createObjects(virtual, plan, place.virtualNamespace);
  const namespace = place.hostNamespace;
  await using copies = await CopyWatch.open(host, { kind: 'Endpoints', namespace }, versionOf);
  await using imports = await CopyWatch.open(host, { kind: 'Secret', namespace }, versionOf);

  const [port = 0] = await freePorts(1);
  const file = join(directory, `${id}.json`);
  const config = configuration(isReferring, { clusters, port, ...place });
  writeFileSync(file, JSON.stringify(config));
  const spawn = () => {
    const log = openSync(join(directory, `${id}.log`), 'a');
    const args = [join(ROOT, 'src', 'main.ts'), 'run', '--config', file];
    return guardian.spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', log, log] });
  };
  const startedMs = performance.now();
  const child = spawn();
  const pid = child.pid ?? 0;
  const expected = isReferring ? plan.secrets : 0;
  await copies.whenAll(plan.endpoints, '');
  const startMs = (await imports.whenAll(expected, 'v0')) - startedMs;
  await whenIdle(port);
  const startRequests = await requestsOf(port);
  const { rssBytes, cpuMs } = costOf(pid);

  const updatedMs = performance.now();
  await inParallel(plan.secrets, IN_FLIGHT, (index) => update(virtual, secrets, index, 'v1'));
  const updateClientMs = performance.now() - updatedMs;
  const updateMs = isReferring ? (await imports.whenAll(expected, 'v1')) - updatedMs : updateClientMs;
  await whenIdle(port);
  const updateRequests = (await requestsOf(port)) - startRequests;
  const updateCpuMs = costOf(pid).cpuMs - cpuMs;
  const singles = isReferring ? await singleLatencies(virtual, imports, secrets) : [0];

  await killGroup(child);
  const writes = copies.events + imports.events;
  const again = spawn();
  await whenIdle(port);
  const restartRequests = await requestsOf(port);
  const restartWrites = copies.events + imports.events - writes;
  await killGroup(again);
  for (const cluster of [virtual, host])
    for (const kind of ['Endpoints', 'Secret'] as const)
      await cluster.deleteAll(kind, cluster === virtual ? place.virtualNamespace : place.hostNamespace);
  return {
    startMs,
    startRequests,
    rssBytes,
    updateMs,
    updateClientMs,
    updateRequests,
    updateCpuMs,
    singleP50Ms: quantile(singles, 0.5),
    singleP99Ms: quantile(singles, 0.99),
    restartRequests,
    restartWrites,
  };
}

function configuration(
  isReferring: boolean,
  place: {
    clusters: RealClusters;
    port: number;
    vcluster: string;
    hostNamespace: string;
  },
): JsonObject {
  const patch = {
    path: `metadata.annotations["${NOTE}"]`,
    reference: { apiVersion: 'v1', kind: 'Secret' },
  };
  return {
    sync: { toHost: { endpoints: { enabled: true, patches: isReferring ? [patch] : [] } } },
    endpointSyncer: {
      name: place.vcluster,
      virtual: { kubeconfig: place.clusters.virtual.kubeconfigPath },
      host: { kubeconfig: place.clusters.host.kubeconfigPath, namespace: place.hostNamespace },
      http: { bindAddress: `127.0.0.1:${place.port}` },
      log: { level: 'warn', format: 'json' },
    },
  };
}

async function createObjects(virtual: TestCluster, plan: Plan, namespace: string): Promise<KubeObject[]> {
  const secrets: KubeObject[] = [];
  await inParallel(plan.secrets, IN_FLIGHT, async (index) => {
    const metadata = { name: `s-${index}`, namespace, labels: { version: 'v0' } };
    const data = { k: Buffer.from(`${'x'.repeat(1000)} v0`).toString('base64') };
    secrets[index] = await virtual.create('Secret', { metadata, type: 'Opaque', data });
  });
  await inParallel(plan.endpoints, IN_FLIGHT, async (index) => {
    const annotations = { [NOTE]: `s-${index % plan.secrets}` };
    await virtual.create('Endpoints', {
      metadata: { name: `ep-${index}`, namespace, annotations },
      subsets: [{ addresses: [{ ip: `10.1.${(index >> 8) & 255}.${index & 255}` }], ports: [{ port: 80 }] }],
    });
  });
  return secrets;
}

async function update(
  virtual: TestCluster,
  secrets: KubeObject[],
  index: number,
  version: string,
): Promise<void> {
  const secret = secrets[index];
  if (secret === undefined) return;
  const metadata = { ...secret.metadata, labels: { version } };
  const data = { k: Buffer.from(`${'x'.repeat(1000)} ${version}`).toString('base64') };
  secrets[index] = await virtual.update('Secret', { ...secret, metadata, data });
}

async function singleLatencies(
  virtual: TestCluster,
  imports: CopyWatch,
  secrets: KubeObject[],
): Promise<number[]> {
  const latencies: number[] = [];
  for (const [index, { metadata }] of secrets.entries()) {
    const seen = imports.when(metadata.name, 'v2');
    await update(virtual, secrets, index, 'v2');
    const answeredMs = performance.now();
    latencies.push(Math.max(0, (await seen) - answeredMs));
  }
  return latencies.toSorted((a, b) => a - b);
}

/** The label `version` of a copy. */
function versionOf({ metadata }: KubeObject): string {
  return metadata.labels?.['version'] ?? '';
}

function urlOf(port: number): string {
  return `http://127.0.0.1:${port}`;
}

async function requestsOf(port: number): Promise<number> {
  return (await metric(urlOf(port), 'rest_client_requests_total')) ?? 0;
}

/** Waits until the daemon is ready and has neither queued keys nor requests for a second. */
async function whenIdle(port: number): Promise<void> {
  for (let quiet = 0, before = -1; quiet < 10;) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    const isReady = (await fetch(`${urlOf(port)}/readyz`).catch(() => undefined))?.ok === true;
    const now = await requestsOf(port);
    const depth = await metric(urlOf(port), 'workqueue_depth');
    quiet = isReady && depth === 0 && now === before ? quiet + 1 : 0;
    before = now;
  }
}

interface CostPerReference {
  /** More resident memory than without references, per imported Secret, bytes. */
  readonly bytesPerImport: number;
  readonly startRequestsPerImport: number;
  readonly updateRequestsPerImport: number;
  readonly restartRequestsPerImport: number;
}

function costPerReference(measured: Record<Subject, Measured>, plan: Plan): CostPerReference {
  const { without, 'with references': referring } = measured;
  const more = (of: (one: Measured) => number): number => (of(referring) - of(without)) / plan.secrets;
  return {
    bytesPerImport: more((one) => one.rssBytes),
    startRequestsPerImport: more((one) => one.startRequests),
    updateRequestsPerImport: more((one) => one.updateRequests),
    restartRequestsPerImport: more((one) => one.restartRequests),
  };
}

function tableOf(measured: Record<Subject, Measured>, perReference: CostPerReference): string {
  const names = Object.keys(measured['with references']) as (keyof Measured)[];
  const show = (name: string, value: number): string =>
    name.endsWith('Bytes') ? `${(value / 2 ** 20).toFixed(1)} MiB` : String(Math.round(value * 10) / 10);
  const rows = names.map((name) =>
    [name, show(name, measured['with references'][name]), show(name, measured.without[name])]
      .map((cell) => cell.padEnd(20))
      .join(''),
  );
  const costs = Object.entries(perReference).map(
    ([name, value]) => `${name.padEnd(28)}${Number(value).toFixed(2)}`,
  );
  const head = ['', 'with references', 'without'].map((cell) => cell.padEnd(20)).join('');
  return `${[head, ...rows, '', ...costs].join('\n')}\n`;
}
