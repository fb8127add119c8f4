/** Power failures: the write-ahead log is truncated, ends in garbage, or is missing. The store shows a complete earlier state, or an error. */

import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { TerminalError } from '../../../../src/base/errors.ts';
import { backupDatabase, verifyDatabase } from '../../../../src/apiserver/storage/sqlite/maintenance.ts';
import { SqliteStore } from '../../../../src/apiserver/storage/sqlite/sqlite-store.ts';
import type { StoreKey } from '../../../../src/apiserver/storage/store.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { anySeed, seededRandom } from '../../../support/random.ts';

const seed = anySeed();

test(`a torn write-ahead log gives the state of an earlier commit (STORE_SEED=${seed})`, async () => {
  using folder = temporaryFolder();
  const random = seededRandom(seed);
  const file = join(folder.path, 'management.db');
  await using store = await SqliteStore.open({ file });
  /** Objects by the revision at the end of each commit. */
  const commits = new Map([[1, 0]]);
  for (let i = 0; i < 25; i++) {
    const writes = Array.from({ length: 1 + Math.floor(random() * 4) }, (_, n) =>
      store.create(
        { resource: 'things', namespace: '', name: `n${i}-${n}` },
        { text: 'x'.repeat(random() * 6000) },
      ),
    );
    await Promise.all(writes);
    const { entries, revision } = await store.list({ resource: 'things' });
    commits.set(revision, entries.length);
  }
  const copy = join(folder.path, 'copy.db');
  const log = readFileSync(`${file}-wal`);
  const seen = new Set<number>();
  for (let i = 0; i < 40; i++) {
    copyFileSync(file, copy);
    const end = Math.floor(random() * log.length);
    const torn = Buffer.from(i % 2 === 0 ? log.subarray(0, end) : log);
    if (i % 2 === 1) torn.fill(0xa5, end, Math.min(torn.length, end + 700));
    writeFileSync(`${copy}-wal`, torn);
    writeFileSync(`${copy}-shm`, '');
    const { problems, objects, revision } = verifyDatabase(copy);
    // The first commits create the tables: before them there is no store.
    const isEmpty = problems.length === 1 && problems[0]?.includes('is empty: nothing has been stored');
    expect(isEmpty ? 0 : [problems, commits.get(revision)]).toEqual(isEmpty ? 0 : [[], objects]);
    seen.add(revision);
  }
  expect(seen.size).toBeGreaterThan(5);
});

describe('a missing write-ahead log', () => {
  const thing = (name: string): StoreKey => ({ resource: 'things', namespace: '', name });

  /** What a crash leaves behind: the files of a store that is open, copied. */
  async function crashed(folder: string, suffixes: readonly string[]): Promise<string> {
    const file = join(folder, 'management.db');
    const copy = join(folder, 'copy', 'management.db');
    mkdirSync(dirname(copy));
    await using store = await SqliteStore.open({ file });
    await store.create(thing('acknowledged'), {});
    for (const suffix of suffixes) copyFileSync(file + suffix, copy + suffix);
    return copy;
  }

  test('is an error: acknowledged writes are never lost silently', async () => {
    using folder = temporaryFolder();
    const file = await crashed(folder.path, ['', '.open']);
    const opening = SqliteStore.open({ file });
    await expect(opening).rejects.toThrow(TerminalError);
    await expect(opening).rejects.toThrow(`${file}-wal with its last writes is missing`);
    rmSync(`${file}.open`);
    await using store = await SqliteStore.open({ file });
    expect(await store.get(thing('acknowledged'))).toBeUndefined();
  });

  test('is no error after an orderly end and for a restored backup', async () => {
    using folder = temporaryFolder();
    const file = await crashed(folder.path, ['', '.open', '-wal']);
    {
      await using store = await SqliteStore.open({ file });
      expect(await store.get(thing('acknowledged'))).toBeDefined();
    }
    expect([existsSync(`${file}-wal`), existsSync(`${file}.open`)]).toEqual([false, false]);
    const backup = join(folder.path, 'backup.db');
    backupDatabase(file, backup);
    writeFileSync(`${file}.open`, '');
    copyFileSync(backup, file);
    await using store = await SqliteStore.open({ file });
    expect(await store.get(thing('acknowledged'))).toBeDefined();
  });
});
