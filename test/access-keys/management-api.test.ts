/** The data directory: the master key and the SQLite database. */

import { chmodSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { KEYS_PATH, startComposed, type Composed } from './composed-api.ts';
import { systemClock, type Clock } from '../../src/base/clock.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { publicDocuments } from '../../src/access-keys/management-api.ts';
import { DefinitionTable } from '../../src/apiserver/objects/resource-definition.ts';
import { MetaHandler } from '../../src/apiserver/request/meta-handler.ts';
import { MemoryStore } from '../../src/apiserver/storage/revisioned-store.ts';
import { StoreError } from '../../src/apiserver/storage/store.ts';
import { type Logger, silentLogger } from '../../src/base/logger.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { temporaryFolder } from '../apiserver/storage/temporary-folder.ts';

test.each([
  [0o777, 1],
  [0o1777, 1],
  [0o770, 0],
  [0o700, 0],
])('of mode %o: %i warnings', async (mode, count) => {
  using folder = temporaryFolder();
  chmodSync(folder.path, mode);
  const warnings: string[] = [];
  const logger: Logger = { ...silentLogger, warn: (_fields, message) => void warnings.push(message) };
  await using api = await startComposed({ dataDir: folder.path, logger });
  expect(api.dataDir).toBe(folder.path);
  expect(warnings.filter((message) => message.includes('data directory'))).toHaveLength(count);
});

describe('an empty database file', () => {
  const config = { store: { driver: 'sqlite' } } as const;

  test('next to a master key is an error with the next step', async () => {
    using folder = temporaryFolder();
    const database = join(folder.path, 'management.db');
    await (await startComposed({ dataDir: folder.path, config }))[Symbol.asyncDispose]();
    truncateSync(database);
    await expect(startComposed({ dataDir: folder.path, config })).rejects.toThrow(
      /management\.db is empty \(0 bytes\), but .*master\.key .*: restore .* from a backup, or remove it to start with an empty store/,
    );
    rmSync(database);
    await using api = await startComposed({ dataDir: folder.path, config });
    expect(api.dataDir).toBe(folder.path);
  });
});

describe('a key that is refused', () => {
  let aheadMs = 0;
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  const REFUSALS: Readonly<
    Record<string, [spec: JsonObject, refuse: (api: Composed) => unknown, why: string]>
  > = {
    disabled: [
      {},
      ({ administrator }) =>
        administrator.send({
          method: 'PATCH',
          path: `${KEYS_PATH}/refused`,
          headers: { 'content-type': 'application/merge-patch+json' },
          body: { spec: { disabled: true } },
        }),
      'platform access key is disabled. Enable it or use another one',
    ],
    expired: [{ ttl: 60 }, () => (aheadMs = 120_000), 'platform access key expired. Please login again'],
    rotated: [
      {},
      ({ administrator }) =>
        administrator.send({ method: 'POST', path: `${KEYS_PATH}/refused/rotate`, body: {} }),
      'platform access key was rotated. Use its new secret',
    ],
  };

  test.each(Object.entries(REFUSALS))(
    '%s: gets what clients read first, so that they show why the request itself is refused',
    async (_, [spec, refuse, message]) => {
      aheadMs = 0;
      await using api = await startComposed({ clock });
      const { client } = await api.key('refused', spec);
      await refuse(api);
      for (const path of ['/apis', '/apis/management.platform.sh/v1', '/openapi/v2', '/openapi/v3'])
        expect([path, (await client.send({ method: 'GET', path })).status]).toEqual([path, 200]);
      expect((await client.send({ method: 'GET', path: '/api' })).status).toBe(
        (await api.administrator.send({ method: 'GET', path: '/api' })).status,
      );
      for (const method of ['GET', 'POST', 'DELETE'])
        expect((await client.send({ method, path: KEYS_PATH })).json).toMatchObject({ code: 401, message });
      expect((await api.as('pak_unknown').send({ method: 'GET', path: '/api' })).status).toBe(401);
    },
  );
});

test('/readyz is 503 while writes fail, and 200 again when they do not', async () => {
  const store = new FailingStore();
  const clock = new FakeClock();
  const version = { major: '1', minor: '32', gitVersion: 'v1.32.0' };
  const documents = publicDocuments(new Map(), new MetaHandler(new DefinitionTable([]), version), {
    store,
    clock,
  });
  const codeOf = async (path: string): Promise<number | undefined> => (await documents.get(path)?.())?.code;
  const atOnce = Array.from({ length: 800 }, () => codeOf('/readyz'));
  expect(new Set(await Promise.all(atOnce))).toEqual(new Set([200]));
  // One probe is in flight, and its answer is kept for a second.
  expect(store.probes).toBe(1);
  store.isFull = true;
  expect(await codeOf('/readyz')).toBe(200);
  clock.advance(1000);
  const codes = [await codeOf('/readyz'), await codeOf('/healthz'), await codeOf('/livez')];
  // A liveness probe restarts the process, which does not help.
  expect(codes).toEqual([503, 200, 200]);
  store.isFull = false;
  clock.advance(1000);
  expect(await codeOf('/readyz')).toBe(200);
});

class FailingStore extends MemoryStore {
  isFull = false;
  probes = 0;

  override async checkWritable(): Promise<void> {
    this.probes += 1;
    if (this.isFull) throw new StoreError('unavailable', 'no space is left');
    await super.checkWritable();
  }
}

test('requests in flight are completed, idle connections and watches are closed', async () => {
  const api = await startComposed();
  const body = { spec: { displayName: 'D', ttl: 0, type: 'User', user: 'u' } };
  const creates = Array.from({ length: 50 }, (_, index) =>
    api.administrator.send({
      method: 'POST',
      path: KEYS_PATH,
      body: { ...body, metadata: { name: `k${index}` } },
    }),
  );
  const { client } = await api.key('idle');
  await client.send({ method: 'GET', path: KEYS_PATH });
  await creates[0];
  // The limit after which the server closes every connection is not reached.
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  try {
    await api.api[Symbol.asyncDispose]();
  } finally {
    vi.useRealTimers();
  }
  const answers = await Promise.allSettled(creates);
  const codes = answers.map((answer) => (answer.status === 'fulfilled' ? answer.value.status : 0));
  // Requests that had not arrived when the server stopped are refused; requests that had arrived get a response.
  expect([...new Set(codes)].filter((code) => code !== 0)).toEqual([201]);
  await api[Symbol.asyncDispose]();
});
