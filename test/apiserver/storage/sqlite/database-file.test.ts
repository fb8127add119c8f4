/** Restarts of a SQLite store, and the permissions of its files. */

import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { TerminalError } from '../../../../src/base/errors.ts';
import { openForWriting } from '../../../../src/apiserver/storage/sqlite/database-file.ts';
import { SqliteStore } from '../../../../src/apiserver/storage/sqlite/sqlite-store.ts';
import type { StoreEvent, StoreKey } from '../../../../src/apiserver/storage/store.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { temporaryFolder, type TemporaryFolder } from '../temporary-folder.ts';

let folder: TemporaryFolder;
let file = '';
beforeEach(() => {
  folder = temporaryFolder();
  file = join(folder.path, 'data', 'management.db');
});
afterEach(() => folder[Symbol.dispose]());

function key(name: string): StoreKey {
  return { resource: 'things', namespace: '', name };
}

function open(options: { historyLimit?: number } = {}): Promise<SqliteStore> {
  return SqliteStore.open({ file, ...options });
}

async function messageOf(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => 'no error',
    (thrown: unknown) => thrown,
  );
  return error instanceof TerminalError ? error.message : `not a TerminalError: ${String(error)}`;
}

async function replayed(store: SqliteStore, after: number): Promise<StoreEvent[]> {
  const seen: StoreEvent[] = [];
  const watch = await store.watch({ resource: 'things' }, after, {
    event: (event) => seen.push(event),
    end: () => undefined,
  });
  watch.close();
  return seen;
}

describe('after a restart', () => {
  test('objects, revisions and history are unchanged', async () => {
    const value = { metadata: { labels: { ['__proto__']: 'x' } }, text: 'ä\u0000\ud800', n: 1.5, none: null };
    const raw = JSON.parse('{"__proto__": {"a": 1}, "constructor": 2}') as JsonObject; // keys that an object literal cannot have
    let before: { list: unknown; events: StoreEvent[]; first: number };
    {
      await using store = await open();
      const first = await store.create(key('a'), value);
      await store.create(key('b'), raw);
      const updated = await store.update(key('a'), { n: 2 }, first.revision);
      await store.delete(key('a'), updated.revision);
      before = {
        list: await store.list({ resource: 'things' }, { atRevision: first.revision }),
        events: await replayed(store, first.revision),
        first: first.revision,
      };
    }
    await using store = await open();
    expect(await store.revision()).toBe(before.first + 3);
    expect(await store.get(key('a'))).toBeUndefined();
    expect(await replayed(store, before.first)).toEqual(before.events);
    const past = await store.list({ resource: 'things' }, { atRevision: before.first });
    expect(JSON.stringify(past)).toBe(JSON.stringify(before.list));
    expect(JSON.stringify((await store.get(key('b')))?.value)).toBe('{"__proto__":{"a":1},"constructor":2}');
  });

  test('a revision is never assigned twice, even when everything is deleted and compacted', async () => {
    let newest: number;
    {
      await using store = await open();
      const { revision } = await store.create(key('a'), {});
      newest = (await store.delete(key('a'), revision)).revision;
      await store.compact(newest);
    }
    await using store = await open();
    expect(await store.revision()).toBe(newest);
    await expect(replayed(store, newest - 1)).rejects.toMatchObject({ code: 'compacted' });
    expect((await store.create(key('a'), {})).revision).toBe(newest + 1);
  });

  test('history is limited, and the file stays small despite many writes', async () => {
    {
      await using store = await open({ historyLimit: 300 });
      let { revision } = await store.create(key('busy'), {});
      for (let i = 0; i < 30; i++) {
        // Fills the queue with other writes, so that many of them share a commit.
        const others = Array.from({ length: 100 }, (_, n) => store.create(key(`n${i}-${n}`), { i }));
        revision = (await store.update(key('busy'), { text: 'x'.repeat(2000) }, revision)).revision;
        const created = await Promise.all(others);
        await Promise.all(created.map((other) => store.delete(other.key, other.revision)));
      }
    }
    const database = new DatabaseSync(file, { readOnly: true });
    const rows = Number(database.prepare('SELECT count(*) AS n FROM log').get()?.['n']);
    database.close();
    expect(rows).toBeLessThan(1200);
    await using store = await open({ historyLimit: 300 });
    expect((await store.list({ resource: 'things' })).entries.map((entry) => entry.key.name)).toEqual([
      'busy',
    ]);
  });

  test('notes are stored, except those of the last second', async () => {
    const clock = new FakeClock();
    {
      await using store = await SqliteStore.open({ file, clock });
      const notes = store.notes('seen');
      await notes.write(new Map([['a', '1']]));
      expect(clock.nextDelayMs).toBe(1000);
      await notes.write(new Map([['b', '2']]));
      clock.advance(1000);
      // The thread handles requests in order: after this write the notes are stored too.
      await store.create(key('x'), {});
      const database = new DatabaseSync(file, { readOnly: true });
      expect(database.prepare('SELECT key, value FROM notes').all()).toMatchObject([
        { key: 'a', value: '1' },
        { key: 'b', value: '2' },
      ]);
      database.close();
      await notes.write(new Map<string, string | undefined>([['a', undefined]]));
    }
    await using store = await open();
    expect(await store.notes('seen').read()).toEqual(new Map([['b', '2']]));
    expect(await store.revision()).toBe(2);
  });

  test('writes before the end are completed', async () => {
    const store = await open();
    const writes = Array.from({ length: 20 }, (_, i) => store.create(key(`n${i}`), {}));
    await store[Symbol.asyncDispose]();
    await Promise.all(writes);
    await using again = await open();
    expect((await again.list({ resource: 'things' })).entries).toHaveLength(20);
  });
});

describe('the files', () => {
  test('are readable by this user only', async () => {
    await using store = await open();
    await store.create(key('a'), {});
    expect(statSync(join(folder.path, 'data')).mode & 0o777).toBe(0o700);
    const names = readdirSync(join(folder.path, 'data'));
    expect(names).toContain('management.db-wal');
    for (const name of names) {
      expect([name, statSync(join(folder.path, 'data', name)).mode & 0o777]).toEqual([name, 0o600]);
    }
  });

  test('are opened by one process only', async () => {
    await using store = await open();
    expect(await messageOf(open())).toBe(
      `${file} is in use by another process: stop that process, or set another dataDir for this one`,
    );
    const script = `const { SqliteStore } = await import(${JSON.stringify(import.meta.resolve('../../../../src/apiserver/storage/sqlite/sqlite-store.ts'))});
      await SqliteStore.open({ file: ${JSON.stringify(file)} }).catch((error) => process.stdout.write(error.message));`;
    const other = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    expect(other.stdout).toContain('is in use by another process');
    // The failed attempt has not released the lock.
    expect(await messageOf(open())).toContain('is in use by another process');
    await store.create(key('a'), {});
  });

  test('without write permission fail at the start, not at the first write', async () => {
    await (await open())[Symbol.asyncDispose]();
    chmodSync(folder.path, 0o755);
    chmodSync(join(folder.path, 'data'), 0o777);
    chmodSync(file, 0o444);
    rmSync(`${file}.lock`); // this user's own
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534); // root may write everything
    try {
      expect(() => openForWriting(file)).toThrow(
        `${file} cannot be written: grant this user write permission on the file and its folder`,
      );
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  });

  test('of another program or a newer version, and other files, fail with the next step', async () => {
    mkdirSync(join(folder.path, 'data'));
    const other = new DatabaseSync(file);
    other.exec('CREATE TABLE t (a)');
    other.close();
    expect(await messageOf(open())).toMatch(/is a database of another program: set another dataDir/u);

    file = join(folder.path, 'newer', 'management.db');
    await (await open())[Symbol.asyncDispose]();
    const newer = new DatabaseSync(file);
    newer.exec('PRAGMA user_version = 99');
    newer.close();
    expect(await messageOf(open())).toMatch(
      /was written by a newer version of this program \(format 99, this one knows up to 1\): run that version/u,
    );

    file = join(folder.path, 'text.db');
    writeFileSync(file, 'this is certainly no database, however long one looks at it'.repeat(20));
    expect(await messageOf(open())).toMatch(/text\.db is not a database, or its header is damaged: restore/u);

    file = join(folder.path, 'newer');
    expect(await messageOf(open())).toMatch(/newer is a folder: choose another path/u);

    file = join(folder.path, 'text.db', 'below', 'management.db');
    expect(await messageOf(open())).toMatch(/has a parent that is not a folder: choose another path/u);
  });
});
