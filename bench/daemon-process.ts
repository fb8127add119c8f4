/** A daemon under measurement: its process, its configuration and its metrics. */

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { JsonObject } from '../src/base/json.ts';
import type { RealClusters } from '../test/e2e/clusters.ts';
import type { Guardian } from '../test/support/guardian.ts';
import { freePorts } from '../test/support/free-ports.ts';

export interface Running {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly startedMs: number;
  /** Of its metrics and health checks. */
  readonly url: string;
}

export interface DaemonOptions {
  readonly clusters: RealClusters;
  readonly guardian: Guardian;
  /** Of its configuration and its log. */
  readonly directory: string;
  readonly vcluster: string;
  readonly hostNamespace: string;
  /** The section `sync.toHost`. */
  readonly toHost: JsonObject;
  /** More of the section `endpointSyncer`. */
  readonly settings?: JsonObject;
}

const ROOT = join(import.meta.dirname, '..');
const PROGRAM = join(ROOT, 'dist', 'main.js');
/** From the Dockerfile; the program is the bundle, and its log has the default level. */
const IMAGE_ENV = {
  NODE_ENV: 'production',
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '65536',
  MALLOC_TRIM_THRESHOLD_: '65536',
};

export function startDaemon(options: DaemonOptions): Promise<Running> {
  const { clusters, vcluster, hostNamespace, toHost, settings } = options;
  return startProgram(options, {
    sync: { toHost },
    endpointSyncer: {
      name: vcluster,
      virtual: { kubeconfig: clusters.virtual.kubeconfigPath },
      host: { kubeconfig: clusters.host.kubeconfigPath, namespace: hostNamespace },
      ...settings,
    },
  });
}

/** `run` with this configuration. */
export async function startProgram(
  place: Place,
  { endpointSyncer, ...sections }: JsonObject & { readonly endpointSyncer: JsonObject },
): Promise<Running> {
  const { directory, vcluster } = place;
  // Once in this process: what is there may be of other sources.
  await import('../scripts/build.ts');
  // The commands of the Dockerfile.
  await compileOnce(place, PROGRAM, [
    ['demo', '--once', '--dir', join(directory, 'demo')],
    ['eval', '1'],
  ]);
  const [port = 0] = await freePorts(1);
  const file = join(directory, `${vcluster}-${port}.json`);
  const http = { bindAddress: `127.0.0.1:${port}` };
  writeFileSync(file, JSON.stringify({ ...sections, endpointSyncer: { http, ...endpointSyncer } }));
  const args = [PROGRAM, 'run', '--config', file];
  return { ...startNode(place, args), url: `http://127.0.0.1:${port}` };
}

type Place = Pick<DaemonOptions, 'directory' | 'guardian' | 'vcluster'>;

/** Fills the compile cache that the processes of a directory share by running a program with each of these arguments. */
export async function compileOnce(
  place: Place,
  program: string,
  commands: readonly string[][],
): Promise<void> {
  const file = join(place.directory, `${basename(program)}.compiled`);
  if (existsSync(file)) return;
  for (const args of commands) await once(startNode(place, [program, ...args]).child, 'exit');
  writeFileSync(file, '');
}

/** A Node program whose output goes to the log of its virtual cluster. */
export function startNode(
  { directory, guardian, vcluster }: Place,
  args: readonly string[],
): Omit<Running, 'url'> {
  const log = openSync(join(directory, `${vcluster}.log`), 'a');
  const startedMs = performance.now();
  const env = { ...process.env, ...IMAGE_ENV, NODE_COMPILE_CACHE: join(directory, 'compiled') };
  const child = guardian.spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', log, log], env });
  return { child, pid: child.pid ?? 0, startedMs };
}

/** Resolves when the daemon is ready and nothing is queued. */
export async function whenIdle(running: Running): Promise<number> {
  for (;;) {
    if ((await isReady(running)) && (await depthOf(running)) === 0) return performance.now();
    await pause(50);
  }
}

export function isReady({ url }: Running): Promise<boolean> {
  return fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}

async function depthOf({ url }: Running): Promise<number> {
  const names = ['workqueue_depth', 'workqueue_unfinished_work_seconds'];
  const values = await Promise.all(names.map((name) => metric(url, name)));
  return values.reduce<number>((sum, value) => sum + (value ?? Infinity), 0);
}

/** The sum over all series of one metric; undefined while the daemon does not respond. */
export async function metric(url: string, name: string): Promise<number | undefined> {
  try {
    const text = await (await fetch(`${url}/metrics`)).text();
    const values = text.split('\n').flatMap((line) => {
      const match = /^([a-z_]+)(?:\{.*\})? (\S+)$/.exec(line);
      return match?.[1] === name ? [Number(match[2])] : [];
    });
    return values.reduce((sum, value) => sum + value, 0);
  } catch {
    return undefined;
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
