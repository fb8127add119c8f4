/** Backups are complete, private, consistent and restorable. */

import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  backupDatabase,
  compactDatabase,
  verifyDatabase,
} from '../../../../src/apiserver/storage/sqlite/maintenance.ts';
import { SqliteStore } from '../../../../src/apiserver/storage/sqlite/sqlite-store.ts';
import type { StoreKey } from '../../../../src/apiserver/storage/store.ts';
import { temporaryFolder, type TemporaryFolder } from '../temporary-folder.ts';

let folder: TemporaryFolder;
let file = '';
let target = '';
beforeEach(() => {
  folder = temporaryFolder();
  file = join(folder.path, 'management.db');
  target = join(folder.path, 'backups', 'one.db');
  mkdirSync(join(folder.path, 'backups'));
});
afterEach(() => folder[Symbol.dispose]());

function key(name: string): StoreKey {
  return { resource: 'things', namespace: '', name };
}

describe('a backup', () => {
  test('during writes shows one revision, and can be restored', async () => {
    let isDone = false;
    const revisions: number[] = [];
    {
      await using store = await SqliteStore.open({ file });
      const writers = Array.from({ length: 4 }, async (_, writer) => {
        for (let i = 0; !isDone || i === 0; i++) {
          revisions.push((await store.create(key(`w${writer}-${i}`), { i })).revision);
        }
      });
      for (let i = 0; i < 5; i++) {
        while (revisions.length < (i + 1) * 20) await new Promise((resolve) => setImmediate(resolve));
        const acknowledged = Math.max(...revisions);
        const result = backupDatabase(file, join(folder.path, 'backups', `${i}.db`));
        expect(result.revision).toBeGreaterThanOrEqual(acknowledged);
        // Each revision adds one object: any other number would mix revisions.
        expect(result.objects).toBe(result.revision - 1);
      }
      isDone = true;
      await Promise.all(writers);
    }
    const last = join(folder.path, 'backups', '4.db');
    const { revision, objects } = verifyDatabase(last);
    copyFileSync(last, file);
    await using restored = await SqliteStore.open({ file });
    expect(await restored.revision()).toBe(revision);
    expect((await restored.list({ resource: 'things' })).entries).toHaveLength(objects);
    expect((await restored.create(key('new'), {})).revision).toBe(revision + 1);
  });

  test('is private, and leaves no other file', async () => {
    await (await SqliteStore.open({ file }))[Symbol.asyncDispose]();
    backupDatabase(file, target);
    expect(statSync(target).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(folder.path, 'backups'))).toEqual(['one.db']);
  });

  test('never replaces a file, and leaves none when it fails', async () => {
    await (await SqliteStore.open({ file }))[Symbol.asyncDispose]();
    writeFileSync(target, 'mine');
    expect(() => backupDatabase(file, target)).toThrow(`${target} exists: choose another name, or remove it`);
    const other = join(folder.path, 'backups', 'other.db');
    expect(() => backupDatabase(join(folder.path, 'none.db'), other)).toThrow(/none\.db does not exist/u);
    writeFileSync(file, 'no database at all');
    expect(() => backupDatabase(file, other)).toThrow(/management\.db is not a database/u);
    expect(() => backupDatabase(file, join(folder.path, 'nowhere', 'x.db'))).toThrow(
      /nowhere does not exist/u,
    );
    expect(readdirSync(join(folder.path, 'backups'))).toEqual(['one.db']);
    writeFileSync(`${other}.part`, '');
    expect(() => backupDatabase(file, other)).toThrow(/another backup is running, or one was interrupted/u);
  });

  test('restored next to the log of a crash fails, and the error names the files to remove', async () => {
    const log = join(folder.path, 'log');
    {
      await using store = await SqliteStore.open({ file });
      await store.create(key('a'), {});
      backupDatabase(file, target);
      await store.create(key('b'), {});
      copyFileSync(`${file}-wal`, log);
    }
    copyFileSync(target, file);
    copyFileSync(log, `${file}-wal`);
    await expect(SqliteStore.open({ file })).rejects.toThrow(
      `${file} was restored, but ${file}-wal belongs to the previous database: remove ${file}-wal and ${file}-shm`,
    );
  });
});

describe('compaction', () => {
  test('removes history and returns space', async () => {
    let revision = 0;
    {
      await using store = await SqliteStore.open({ file });
      const names = Array.from({ length: 100 }, (_, i) => `n${i}`);
      const created = await Promise.all(
        names.map((name) => store.create(key(name), { text: 'x'.repeat(5000) })),
      );
      await Promise.all(created.map((entry) => store.delete(entry.key, entry.revision)));
      await store.create(key('left'), {});
      revision = await store.revision();
      // Not while a process serves the store.
      expect(() => compactDatabase(file)).toThrow(/is in use by another process: stop that process/u);
    }
    const result = compactDatabase(file);
    expect(result).toMatchObject({ rows: 200, revision });
    expect(result.bytesAfter).toBeLessThan(result.bytesBefore / 5);
    expect(verifyDatabase(file)).toEqual({ problems: [], objects: 1, revision });
  });

  test('does not create a database', () => {
    expect(() => compactDatabase(file)).toThrow(/does not exist: nothing has been stored there yet/u);
    expect(existsSync(file)).toBe(false);
  });
});
