/** No client sees a write that a crash could undo. */

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { SqliteStore } from '../../../../src/apiserver/storage/sqlite/sqlite-store.ts';
import type { StoreKey } from '../../../../src/apiserver/storage/store.ts';
import { temporaryFolder } from '../temporary-folder.ts';

test('readers, watchers and writers see a write after it is in the file', async () => {
  using folder = temporaryFolder();
  const file = join(folder.path, 'management.db');
  await using store = await SqliteStore.open({ file });
  using database = new DatabaseSync(file, { readOnly: true });
  const count = database.prepare('SELECT count(*) AS n FROM log WHERE revision = ?');
  const tooEarly: string[] = [];
  const check = (who: string, revision: number): void => {
    if (count.get(revision)?.['n'] !== 1) tooEarly.push(`${who} at ${revision}`);
  };
  let events = 0;
  await store.watch({ resource: 'things' }, await store.revision(), {
    event: ({ revision }) => {
      events++;
      check('watcher', revision);
    },
    end: () => undefined,
  });
  const key = (name: string): StoreKey => ({ resource: 'things', namespace: '', name });
  let acknowledged = 0;
  for (let i = 0; i < 200; i++) {
    void store.create(key(`n${i}`), { text: 'x'.repeat(2000) }).then(({ revision }) => {
      acknowledged++;
      check('writer', revision);
    });
    if (i % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
    const { entries, revision } = await store.list({ resource: 'things' });
    if (revision > 1) check('list', revision);
    const newest = entries.reduce((max, entry) => Math.max(max, entry.revision), 1);
    expect(newest).toBe(revision);
  }
  while (acknowledged < 200) await new Promise((resolve) => setImmediate(resolve));
  expect(tooEarly).toEqual([]);
  expect(events).toBe(200);
});
