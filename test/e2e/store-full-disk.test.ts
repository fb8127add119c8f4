/** A full disk: the write fails with a message and has no effect, and later writes succeed when there is space again. */

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { verifyDatabase } from '../../src/apiserver/storage/sqlite/maintenance.ts';
import { openLocalAdministrator } from '../../src/access-keys/credentials/master-key.ts';
import { systemClock } from '../../src/base/clock.ts';
import { KEYS_PATH } from '../access-keys/composed-api.ts';
import { temporaryFolder } from '../apiserver/storage/temporary-folder.ts';
import { RawClient } from '../contract/raw-client.ts';

const CHILD = join(import.meta.dirname, 'store-without-space.ts');
const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.ts');
/** A limit on the size of files, which may be lifted later, does what a full disk does. */
const WITH_LITTLE_SPACE = `ulimit -S -f 300; exec "$0" "$@"`;

test('a write on a full disk fails, and later ones succeed when there is space', async () => {
  using folder = temporaryFolder();
  const file = join(folder.path, 'management.db');
  const child = spawn('sh', ['-c', WITH_LITTLE_SPACE, process.execPath, CHILD, file], { stdio: 'pipe' });
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async (line: string): Promise<unknown> => {
    child.stdin.write(`${line}\n`);
    const { value } = await lines.next();
    return JSON.parse(value ?? '{}');
  };
  const refused = { code: 'unavailable', isSeen: false, isAdvanced: false };
  const first = await ask('fill');
  expect(first).toMatchObject(refused);
  expect(String((first as { message: string }).message)).toMatch(/management\.db cannot (be read|grow)/u);
  expect(await ask('fill')).toMatchObject(refused);
  expect(await ask('check')).toEqual({ isWritable: false });
  const { problems, objects } = verifyDatabase(file);
  expect({ problems, written: objects }).toEqual({
    problems: [],
    written: (first as { written: number }).written,
  });

  execFileSync('prlimit', ['--pid', String(child.pid), '--fsize=unlimited']);
  expect(await ask('check')).toEqual({ isWritable: true });
  const { written, revision } = (await ask('one')) as { written: number; revision: number };
  expect([written, revision]).toEqual([objects + 1, objects + 2]);
  child.stdin.end();
  child.kill('SIGKILL');
  await exit;
  expect(verifyDatabase(file)).toEqual({ problems: [], objects: written, revision });
});

test('the API on a full disk is not ready, but healthy: a restart frees no space', async () => {
  using folder = temporaryFolder();
  const dataDir = join(folder.path, 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  const config = join(folder.path, 'config.yaml');
  const bindAddress = '127.0.0.1:0';
  writeFileSync(
    config,
    JSON.stringify({ endpointSyncer: { http: { bindAddress } }, managementApi: { bindAddress, dataDir } }),
  );
  const command = [process.execPath, '--no-node-snapshot', MAIN, 'api', '--config', config];
  const child = spawn('sh', ['-c', WITH_LITTLE_SPACE, ...command], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve));
  await using clients = new AsyncDisposableStack();
  clients.defer(async () => {
    child.kill('SIGKILL');
    await exit;
  });
  const { value } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
  const url = /^server: (.*)$/u.exec(value ?? '')?.[1] ?? '';
  const local = await openLocalAdministrator(dataDir, systemClock);
  const ca = readFileSync(join(dataDir, 'ca.crt'), 'utf8');
  const client = clients.use(new RawClient({ url, ca, token: local?.credential() ?? '' }));
  const codes = (): Promise<number[]> =>
    Promise.all(
      ['/healthz', '/livez', '/readyz'].map(
        async (path) => (await client.send({ method: 'GET', path })).status,
      ),
    );
  const create = async (): Promise<number> => {
    const metadata = { generateName: 'fill-', annotations: { fill: 'x'.repeat(5000) } };
    const spec = { displayName: 'fill', ttl: 0, type: 'User', user: 'ann' };
    return (await client.send({ method: 'POST', path: KEYS_PATH, body: { metadata, spec } })).status;
  };
  expect(await codes()).toEqual([200, 200, 200]);
  let code = 201;
  for (let count = 0; code === 201 && count < 1000; count++) code = await create();
  expect(code).toBe(503);
  // Probes of one second share an answer.
  await expect.poll(codes).toEqual([200, 200, 503]);

  execFileSync('prlimit', ['--pid', String(child.pid), '--fsize=unlimited']);
  await expect.poll(codes).toEqual([200, 200, 200]);
  expect(await create()).toBe(201);
});
