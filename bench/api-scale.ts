/** The key and token API with very many keys: duration of a start, a list page and an authentication, and memory.
 *
 *   npm run bench -- api-scale [--keys 100000] [--millis 3000]
 *
 * The server is `endpoint-syncer api` with SQLite, as in `api.ts`. One key is created through the API and copied in the database; then the
 * server is restarted and measured. The same is measured first with ten keys.
 */

import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { JsonObject } from '../src/base/json.ts';
import { SqliteStore } from '../src/apiserver/storage/sqlite/sqlite-store.ts';
import { ClientProcess } from './api-client-process.ts';
import { sendRequest, startOurs, type Subject } from './api-servers.ts';
import { thisMachine } from './machine.ts';
import { costOf } from './process-cost.ts';
import type { WriteResult } from './results.ts';

const FEW_KEYS = 10;
const CONNECTIONS = 32;
const PAGE = 500;
const MIB = 1024 * 1024;

/** Times in ms, sizes in bytes. */
interface Measured {
  readonly keys: number;
  readonly databaseBytes: number;
  /** From process start to the first response. */
  readonly startMs: number;
  /** Processor time until then. */
  readonly startCpuMs: number;
  readonly rssBytes: number;
  readonly firstPageMs: number;
  readonly lastPageMs: number;
  /** All pages, sequentially. */
  readonly completeListMs: number;
  readonly completeListCpuMs: number;
  /** GETs with one of the keys. */
  readonly getsPerSecond: number;
  readonly getP99Ms: number;
  readonly getCpuMs: number;
}

interface Plan {
  readonly keys: number;
  readonly millis: number;
}

export async function run(args: readonly string[], writeResult: WriteResult): Promise<void> {
  const options = {
    keys: { type: 'string', default: '100000' },
    millis: { type: 'string', default: '3000' },
  } as const;
  const { values } = parseArgs({ args: [...args], options });
  const plan: Plan = { keys: Number(values.keys), millis: Number(values.millis) };
  const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-bench-'));
  await using client = new ClientProcess();
  try {
    const few = await measure(directory, client, { plan, keys: FEW_KEYS });
    const many = await measure(directory, client, { plan, keys: plan.keys });
    process.stdout.write(tableOf([few, many]));
    const date = new Date().toISOString().slice(0, 10);
    writeResult({ date, machine: thisMachine(), plan, few, many });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Measures a server whose database has `keys` keys besides the caller's. */
async function measure(
  directory: string,
  client: ClientProcess,
  { plan, keys }: { plan: Plan; keys: number },
): Promise<Measured> {
  const place = join(directory, `keys-${keys}`);
  let secret: string;
  {
    await using server = await startOurs(place);
    secret = await createCaller(server);
  }
  const file = join(place, 'data', 'management.db');
  await copyKeys(file, keys);
  const startedMs = performance.now();
  await using server = await startOurs(place);
  const startMs = performance.now() - startedMs;
  const { rssBytes, cpuMs: startCpuMs } = costOf(server.pid);
  const list = await readList(server);
  return {
    keys,
    databaseBytes: statSync(file).size,
    startMs,
    startCpuMs,
    rssBytes,
    ...list,
    ...(await readKeys(server, client, { plan, secret })),
  };
}

/** Copies the caller's key in the database, because the API limits the rate of creates. */
async function copyKeys(file: string, keys: number): Promise<void> {
  await using store = await SqliteStore.open({ file });
  const caller = await store.get({ ...KEYS, name: 'caller' });
  if (!caller) throw new Error('the store has no key called caller');
  const metadata = caller.value['metadata'] as JsonObject; // the API wrote it
  for (let first = 0; first < keys; first += WRITES_AT_ONCE) {
    const count = Math.min(WRITES_AT_ONCE, keys - first);
    await Promise.all(
      Array.from({ length: count }, (_, index) => {
        const name = `key-${first + index}`;
        const credential = { id: `bench${first + index}`, digest: randomBytes(32).toString('base64') };
        const copy = { ...caller.value, metadata: { ...metadata, name, uid: randomUUID() }, credential };
        return store.create({ ...KEYS, name }, copy);
      }),
    );
  }
}

const KEYS = { resource: 'ownedaccesskeys.management.platform.sh', namespace: '' };
const WRITES_AT_ONCE = 5000;

/** Creates the key that sends the measured requests; returns its secret. */
async function createCaller({ peer, collection, object }: Subject): Promise<string> {
  const key = object('caller', 'caller');
  const spec = { ...(key['spec'] as JsonObject), groups: ['platform:admins'] }; // object() sets it
  const { code, text } = await sendRequest(peer, {
    method: 'POST',
    path: collection,
    body: JSON.stringify({ ...key, spec }),
  });
  const created = JSON.parse(text) as { spec?: { key?: string } };
  if (code !== 201 || created.spec?.key === undefined) throw new Error(`POST: ${code} ${text}`);
  return created.spec.key;
}

type ListCost = Pick<Measured, 'firstPageMs' | 'lastPageMs' | 'completeListMs' | 'completeListCpuMs'>;

async function readList({ peer, collection, pid }: Subject): Promise<ListCost> {
  const { cpuMs } = costOf(pid);
  const pageMs: number[] = [];
  for (let token = ''; ;) {
    const startedMs = performance.now();
    const path = `${collection}?limit=${PAGE}${token === '' ? '' : `&continue=${token}`}`;
    const { code, text } = await sendRequest(peer, { method: 'GET', path });
    pageMs.push(performance.now() - startedMs);
    if (code !== 200) throw new Error(`GET ${path}: ${code} ${text.slice(0, 300)}`);
    const { metadata } = JSON.parse(text) as { metadata: { continue?: string } };
    token = metadata.continue ?? '';
    if (token === '') break;
  }
  return {
    firstPageMs: pageMs[0] ?? 0,
    lastPageMs: pageMs.at(-1) ?? 0,
    completeListMs: pageMs.reduce((sum, ms) => sum + ms, 0),
    completeListCpuMs: costOf(pid).cpuMs - cpuMs,
  };
}

async function readKeys(
  { peer, collection, pid }: Subject,
  client: ClientProcess,
  { plan, secret }: { plan: Plan; secret: string },
): Promise<Pick<Measured, 'getsPerSecond' | 'getP99Ms' | 'getCpuMs'>> {
  const load = {
    peer: { ...peer, token: secret },
    request: { method: 'GET', path: `${collection}/caller` },
    code: 200,
    connections: CONNECTIONS,
  };
  await client.load({ ...load, millis: plan.millis / 2 });
  const cpuMs = costOf(pid).cpuMs;
  const { requestsPerSecond, requests, p99Ms } = await client.load({ ...load, millis: plan.millis });
  return {
    getsPerSecond: requestsPerSecond,
    getP99Ms: p99Ms,
    getCpuMs: (costOf(pid).cpuMs - cpuMs) / requests,
  };
}

function tableOf(columns: readonly Measured[]): string {
  const rows: readonly (readonly [name: string, value: (measured: Measured) => string])[] = [
    ['keys', ({ keys }) => String(keys)],
    ['database', ({ databaseBytes }) => `${(databaseBytes / MIB).toFixed(1)} MiB`],
    ['start to first response', ({ startMs }) => `${startMs.toFixed(0)} ms`],
    ['  server CPU', ({ startCpuMs }) => `${startCpuMs.toFixed(0)} ms`],
    ['resident memory after start', ({ rssBytes }) => `${(rssBytes / MIB).toFixed(0)} MiB`],
    [`first page of ${PAGE}`, ({ firstPageMs }) => `${firstPageMs.toFixed(1)} ms`],
    ['last page', ({ lastPageMs }) => `${lastPageMs.toFixed(1)} ms`],
    ['all pages', ({ completeListMs }) => `${completeListMs.toFixed(0)} ms`],
    ['  server CPU', ({ completeListCpuMs }) => `${completeListCpuMs.toFixed(0)} ms`],
    ['GET with an access key', ({ getsPerSecond }) => `${getsPerSecond.toFixed(0)} /s`],
    ['  p99', ({ getP99Ms }) => `${getP99Ms.toFixed(1)} ms`],
    ['  server CPU each', ({ getCpuMs }) => `${getCpuMs.toFixed(3)} ms`],
  ];
  const lines = rows.map(
    ([name, value]) => name.padEnd(30) + columns.map((column) => value(column).padStart(14)).join(''),
  );
  return `${lines.join('\n')}\n`;
}
