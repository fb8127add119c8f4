/** Loss of power: the write-ahead log ends anywhere, or in garbage. What is left is some earlier state, whole. */

import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { verifyDatabase } from '../../../src/store/sqlite/verify.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { anySeed, seededRandom } from './random.ts';

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
    // The very first commits make the tables: before them there is no store yet.
    const isEmpty = problems.length === 1 && problems[0]?.includes('is empty: nothing has been stored');
    expect(isEmpty ? 0 : [problems, commits.get(revision)]).toEqual(isEmpty ? 0 : [[], objects]);
    seen.add(revision);
  }
  expect(seen.size).toBeGreaterThan(5);
});
