/** The two servers of the API benchmark, each with its objects and process id. */

import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../src/base/json.ts';
import { startRealClusters } from '../test/e2e/clusters.ts';
import { Guardian, killGroup } from '../test/support/guardian.ts';
import { freePorts } from '../test/support/free-ports.ts';
import type { RequestParts } from './http-connection.ts';
import { HttpConnection, requestText, type Peer } from './http-connection.ts';

export type SubjectName = 'ours' | 'kube-apiserver';

/** A server under test, and the same requests in its terms. */
export interface Subject extends AsyncDisposable {
  readonly name: SubjectName;
  readonly peer: Peer;
  /** The process of the server; without its database process, if any. */
  readonly pid: number;
  /** Path of a collection of objects. */
  readonly collection: string;
  /** An object of this kind; `filler` pads it to the length of the other server's. */
  readonly object: (name: string, filler: string) => JsonObject;
}

/** One merge patch that causes an event: `{n}` is its number. */
export function changeOf({ collection }: Subject, name: string): RequestParts {
  return {
    method: 'PATCH',
    path: `${collection}/${name}`,
    contentType: 'application/merge-patch+json',
    body: JSON.stringify({ metadata: { labels: { seq: 'seq-{n}' } } }),
  };
}

const ROOT = join(import.meta.dirname, '..');
const START_DEADLINE_MS = 60_000;

/** `endpoint-syncer api` with TLS, SQLite and audit; the client has an administrator's access key. */
export async function startOurs(directory: string, nodeFlags: readonly string[] = []): Promise<Subject> {
  mkdirSync(directory, { recursive: true });
  const guardian = new Guardian();
  const [port = 0] = await freePorts(1);
  const keyFile = join(directory, 'administrator.key');
  const config = {
    managementApi: {
      bindAddress: `127.0.0.1:${port}`,
      dataDir: join(directory, 'data'),
      bootstrapKeyFile: keyFile,
    },
  };
  const configFile = join(directory, 'config.json');
  writeFileSync(configFile, JSON.stringify(config));
  const log = openSync(join(directory, 'api.log'), 'a');
  const args = [...nodeFlags, join(ROOT, 'src', 'main.ts'), 'api', '--config', configFile];
  const child = guardian.spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', log, log] });
  const caFile = join(directory, 'data', 'ca.crt');
  const collection = '/apis/management.platform.sh/v1/ownedaccesskeys';
  const peer = (): Peer => ({
    url: `https://127.0.0.1:${port}`,
    ca: readFileSync(caFile, 'utf8'),
    token: readFileSync(keyFile, 'utf8').trim(),
  });
  try {
    const files = [caFile, keyFile];
    await whenReady(child, join(directory, 'api.log'), async () => {
      if (!files.every((file) => existsSync(file))) return false;
      return (await sendRequest(peer(), { method: 'GET', path: `${collection}?limit=1` })).code === 200;
    });
  } catch (error) {
    await guardian[Symbol.asyncDispose]();
    throw error;
  }
  return {
    name: 'ours',
    peer: peer(),
    pid: child.pid ?? 0,
    collection,
    object: (name, filler) => ({
      apiVersion: 'management.platform.sh/v1',
      kind: 'OwnedAccessKey',
      metadata: { name },
      spec: { displayName: filler, type: 'User', user: 'bench', ttl: 86_400 },
    }),
    [Symbol.asyncDispose]: async () => {
      // SIGTERM, because a profiler writes its file only on a graceful exit.
      await stopped(child);
      await guardian[Symbol.asyncDispose]();
    },
  };
}

/** kube-apiserver on an etcd that syncs every write to the disk; the client is in `system:masters`, which bypasses RBAC and flow control. */
export async function startKubeApiServer(): Promise<Subject> {
  const clusters = await startRealClusters({ host: false, isDurable: true });
  try {
    const { url, caFile, token } = clusters.virtual;
    const peer: Peer = { url, ca: readFileSync(caFile, 'utf8'), token };
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'bench' } };
    const created = await sendRequest(peer, {
      method: 'POST',
      path: '/api/v1/namespaces',
      body: JSON.stringify(namespace),
    });
    if (created.code !== 201) throw new Error(`the creation of the namespace returned ${created.code}`);
    return {
      name: 'kube-apiserver',
      peer,
      pid: clusters.pidOf('virtual'),
      collection: '/api/v1/namespaces/bench/configmaps',
      object: (name, filler) => ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name },
        data: { displayName: filler, type: 'User', user: 'bench', ttl: '86400' },
      }),
      [Symbol.asyncDispose]: () => clusters[Symbol.asyncDispose](),
    };
  } catch (error) {
    await clusters[Symbol.asyncDispose]();
    throw error;
  }
}

/** One request on a new connection, with the text of the response. */
export async function sendRequest(
  peer: Peer,
  request: RequestParts,
): Promise<{ code: number; text: string }> {
  const connection = await HttpConnection.open(peer);
  try {
    const pieces: Buffer[] = [];
    const { code } = await connection.exchange(requestText(peer, request), (piece) => {
      pieces.push(Buffer.from(piece));
    });
    return { code, text: Buffer.concat(pieces).toString('utf8') };
  } finally {
    connection.close();
  }
}

async function whenReady(
  child: ChildProcess,
  logFile: string,
  isReady: () => Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + START_DEADLINE_MS;
  while (!(await isReady().catch(() => false))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      throw new Error(`the API did not become ready:\n${readFileSync(logFile, 'utf8').slice(-3000)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const STOP_DEADLINE_MS = 10_000;

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  child.kill('SIGTERM');
  const timer = setTimeout(() => void killGroup(child), STOP_DEADLINE_MS);
  await ended;
  clearTimeout(timer);
}
