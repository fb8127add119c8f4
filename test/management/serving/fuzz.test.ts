/** Garbage in, a proper Status out: `FUZZ_SEED` and `FUZZ_COUNT` choose other garbage, and more of it. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { accessKeyTable } from '../../api/access-key-kind.ts';
import { startMachinery, type Machinery } from '../../api/machinery.ts';
import { runFuzz, type FuzzReport } from './fuzz-run.ts';

const KEYS = '/apis/management.platform.sh/v1/ownedaccesskeys';
const SEED = Number(process.env['FUZZ_SEED'] ?? 20_261_121);
const COUNT = Number(process.env['FUZZ_COUNT'] ?? 1500);
/** More than the noise of a heap, less than what 1 500 requests would leave behind. */
const GROWTH_BYTES_MAX = 24 * 1024 * 1024;

let machinery: Machinery;

beforeAll(async () => {
  machinery = await startMachinery({ table: accessKeyTable() });
  for (const name of ['k-1', 'k-2']) {
    const spec = { user: 'ann', groups: ['a'], ttl: 5 };
    await machinery.client.send({
      method: 'POST',
      path: KEYS,
      body: { metadata: { name, labels: { a: 'b' } }, spec },
    });
  }
});
afterAll(() => machinery[Symbol.asyncDispose]());

function fuzz(seed: number, count: number): Promise<FuzzReport> {
  return runFuzz({ peer: { address: machinery.server.address }, token: 'ann', seed, count });
}

async function heldBytes(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test(
  `${COUNT} garbage requests of seed ${SEED}: each a proper Status, and nothing has changed`,
  { timeout: 120_000 },
  async () => {
    const { store, client } = machinery;
    await fuzz(SEED + 1, 300); // code that runs for the first time takes memory of its own
    const revision = await store.revision();
    const bytes = await heldBytes();
    const { codes, faults } = await fuzz(SEED, COUNT);
    expect(faults.slice(0, 10)).toEqual([]);
    expect((await heldBytes()) - bytes).toBeLessThan(GROWTH_BYTES_MAX);
    expect(await store.revision()).toBe(revision);
    expect('polluted' in Object.prototype || 'isAdmin' in Object.prototype).toBe(false);
    // It did not all end at the first check.
    for (const code of [200, 400, 404, 405, 413, 414, 415, 422, 431])
      expect([code, codes.has(code)]).toEqual([code, true]);
    expect(codes.get(0) ?? 0).toBeLessThan(COUNT / 10);
    expect((await client.send({ method: 'GET', path: `${KEYS}/k-1` })).status).toBe(200);
  },
);
