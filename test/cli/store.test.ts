/** `store backup`, `store verify` and `store compact` as commands. */

import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startEmbeddedCluster } from '../../src/embedded-cluster/embedded-cluster.ts';
import { plainAccess } from '../../src/kube/access.ts';
import { SECRETS } from '../../src/kube/object.ts';
import { SecretNames } from '../../src/apiserver/storage/secrets/secret-codec.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { databaseFile } from '../../src/apiserver/storage/sqlite/database-file.ts';
import { SqliteStore } from '../../src/apiserver/storage/sqlite/sqlite-store.ts';
import { clientOf, openReplica } from '../apiserver/storage/secrets/replicas.ts';
import { capturedRun, type CapturedRun } from './captured-run.ts';

let folder = '';
let config = '';
let database = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'store-'));
  config = join(folder, 'config.yaml');
  database = databaseFile(join(folder, 'data'));
  writeFileSync(config, `managementApi: {dataDir: ${JSON.stringify(join(folder, 'data'))}}\n`);
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = (...args: string[]): Promise<CapturedRun> => capturedRun(['store', ...args]);

test('backs up while the store is served, verifies, compacts when it is not', async () => {
  const copy = join(folder, 'copy.db');
  {
    await using store = await SqliteStore.open({ file: database });
    await store.create({ resource: 'things', namespace: '', name: 'a' }, {});
    const backup = await run('backup', copy, '--config', config);
    expect(backup).toMatchObject({ code: 0, err: '' });
    expect(backup.out).toMatch(/copy\.db: 1 objects, revision 2, \d+ bytes\n$/u);
    const busy = await run('compact', '--config', config);
    expect(busy).toMatchObject({ code: 1, out: '' });
    expect(busy.err).toMatch(/^error: .*is in use by another process/u);
  }
  expect(await run('verify', copy)).toEqual({ code: 0, out: 'ok: 1 objects, revision 2\n', err: '' });
  expect(await run('verify', '--config', config)).toMatchObject({ code: 0 });
  const compacted = await run('compact', '--config', config);
  expect(compacted.code).toBe(0);
  expect(compacted.out).toMatch(/forgot 0 old rows, history begins at revision 2, \d+ → \d+ bytes\n$/u);
  expect(await run('backup', '--output', copy, '--config', config)).toMatchObject({
    code: 1,
    err: `error: ${copy} exists: choose another name, or remove it\n`,
  });
});

test('each problem is a line on standard output, exit 1', async () => {
  {
    await using store = await SqliteStore.open({ file: database });
    await store.create({ resource: 'things', namespace: '', name: 'a' }, {});
    await store.create({ resource: 'things', namespace: '', name: 'b' }, {});
  }
  const damaged = new DatabaseSync(database);
  damaged.exec("UPDATE log SET checksum = 1 WHERE name = 'b'; DELETE FROM log WHERE name = 'a'");
  damaged.close();
  const { code, out } = await run('verify', '--config', config);
  expect(code).toBe(1);
  expect(out.split('\n')).toEqual([
    'revision 3, things /b: the checksum does not match',
    'things /a is at revision 2, which the log does not have',
    '2 objects are present, but the log replayed gives 1',
    '',
  ]);
});

test('verifies the Secrets of the kubernetes driver, damaged ones included', async () => {
  await using host = await startEmbeddedCluster({ name: 'host' });
  const kubeconfig = join(folder, 'host.kubeconfig');
  writeFileSync(kubeconfig, host.kubeconfig);
  const flags = [
    '--store-driver',
    'kubernetes',
    '--host-kubeconfig',
    kubeconfig,
    '--host-namespace',
    'default',
  ];
  const verify = (): Promise<CapturedRun> => run('verify', '--config', config, ...flags);
  const keyOf = (name: string) => ({ resource: 'things', namespace: '', name });
  await using client = clientOf(plainAccess(host.url));
  const change = async (name: string, body: JsonObject): Promise<unknown> =>
    client.patch(SECRETS, { namespace: 'default', name }, { type: 'merge', body });
  await using one = await openReplica(plainAccess(host.url), { name: 'management' });
  await using other = await openReplica(plainAccess(host.url), { name: 'other' });
  const names = new SecretNames('management');
  const [sound, cut, unlabelled, held] = ['sound', 'cut', 'unlabelled', 'held'].map(keyOf);
  if (!sound || !cut || !unlabelled || !held) throw new Error('expected four Secrets');
  for (const key of [sound, cut, unlabelled, held]) await one.store.create(key, {});
  await one.store.notes('seen').write(new Map([['a', 'b']]));
  await other.store.create(cut, {});
  expect(await verify()).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^ok: 4 objects, revision \d+\n$/u) as string,
  });

  await change(names.object(cut), { data: { object: 'e30=' } });
  await change(new SecretNames('other').object(cut), { data: { object: 'e30=' } });
  await change(names.object(unlabelled), { metadata: { labels: { 'endpoint-syncer/part': null } } });
  await change(names.object(held), { metadata: { finalizers: ['example.com/hold'] } });
  await client.delete(SECRETS, { namespace: 'default', name: names.object(held) }, {});
  const { code, out, err } = await verify();
  expect([code, err]).toEqual([1, '']);
  expect(out.split('\n').toSorted()).toEqual([
    '',
    `Secret ${names.object(cut)}: data.object has no resource, namespace or name`,
    `Secret ${names.object(held)}: it is being deleted but has a finalizer: remove the finalizer`,
    `Secret ${names.object(unlabelled)}: its labels are not those of things /unlabelled`,
  ]);
  const unknownContext = await run('verify', '--config', config, ...flags, '--host-context', 'nobody');
  expect([unknownContext.code, unknownContext.out]).toEqual([1, '']);
});

test('without a database every action is exit 1, and creates nothing', async () => {
  for (const action of [['backup', join(folder, 'copy.db')], ['verify'], ['compact']]) {
    const { code } = await run(...action, '--config', config);
    expect([action, code]).toEqual([action, 1]);
  }
  expect(existsSync(join(folder, 'data'))).toBe(false);
});

test('a usage error is exit 2 with the correct usage', async () => {
  const errorOf = async (...args: string[]): Promise<[number, string]> => {
    const { code, err } = await run(...args, '--config', config);
    return [code, err];
  };
  expect(await errorOf('backup')).toEqual([2, 'error: backup needs the file to write: store backup FILE\n']);
  expect((await errorOf('backup', 'a', '--output', 'b'))[0]).toBe(2);
  expect((await errorOf('verify', '--output', 'b'))[0]).toBe(2);
  expect((await errorOf('compact', 'a'))[0]).toBe(2);
  expect((await errorOf('restore'))[0]).toBe(2);
  for (const [action, driver] of [
    ['verify', 'memory'],
    ['compact', 'kubernetes'],
  ] as const) {
    const [code, err] = await errorOf(action, '--store-driver', driver);
    expect(code).toBe(2);
    expect(err).toContain(`error: managementApi.store.driver is ${driver}: `);
  }
});
