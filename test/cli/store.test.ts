/** `store backup`, `store verify` and `store compact` as commands. */

import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { databaseFile } from '../../src/store/sqlite/database-file.ts';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
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

test('where nothing is stored yet, nothing is made', async () => {
  for (const action of [['backup', join(folder, 'copy.db')], ['verify'], ['compact']]) {
    const { code } = await run(...action, '--config', config);
    expect([action, code]).toEqual([action, 1]);
  }
  expect(existsSync(join(folder, 'data'))).toBe(false);
});

test('wrong usage is exit 2, with what is right', async () => {
  const errorOf = async (...args: string[]): Promise<[number, string]> => {
    const { code, err } = await run(...args, '--config', config);
    return [code, err];
  };
  expect(await errorOf('backup')).toEqual([2, 'error: backup needs the file to write: store backup FILE\n']);
  expect((await errorOf('backup', 'a', '--output', 'b'))[0]).toBe(2);
  expect((await errorOf('verify', '--output', 'b'))[0]).toBe(2);
  expect((await errorOf('compact', 'a'))[0]).toBe(2);
  expect((await errorOf('restore'))[0]).toBe(2);
  for (const driver of ['memory', 'kubernetes']) {
    const [code, err] = await errorOf('verify', '--store-driver', driver);
    expect(code).toBe(2);
    expect(err).toContain(`error: managementApi.store.driver is ${driver}: `);
  }
});
