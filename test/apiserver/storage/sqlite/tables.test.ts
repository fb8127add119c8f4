/** The problems that `verify` finds. A damaged store does not open. */

import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { SqliteStore } from '../../../../src/apiserver/storage/sqlite/sqlite-store.ts';
import { verifyDatabase } from '../../../../src/apiserver/storage/sqlite/maintenance.ts';
import { temporaryFolder, type TemporaryFolder } from '../temporary-folder.ts';

let folder: TemporaryFolder;
let sound = '';
let file = '';

/** Objects a (compacted history), b (updated), c (deleted) and enough others for several pages. */
beforeAll(async () => {
  folder = temporaryFolder();
  sound = join(folder.path, 'sound.db');
  file = join(folder.path, 'management.db');
  await using store = await SqliteStore.open({ file: sound });
  const key = (name: string) => ({ resource: 'things', namespace: '', name });
  const a = await store.create(key('a'), {});
  await store.update(key('a'), { text: 'needle', x: 2 }, a.revision);
  await store.compact(await store.revision());
  const b = await store.create(key('b'), {});
  await store.update(key('b'), { x: 1 }, b.revision);
  const c = await store.create(key('c'), {});
  await store.delete(key('c'), c.revision);
  await Promise.all(
    Array.from({ length: 50 }, (_, i) => store.create(key(`n${i}`), { text: 'x'.repeat(500) })),
  );
});
beforeEach(() => copyFileSync(sound, file));
afterAll(() => folder[Symbol.dispose]());

function change(sql: string): void {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}

async function refusal(): Promise<string> {
  try {
    await using store = await SqliteStore.open({ file });
    return `opened at revision ${await store.revision()}`;
  } catch (error) {
    return String(error);
  }
}

describe('verify', () => {
  test('reports the contents of an intact database', () => {
    expect(verifyDatabase(file)).toEqual({ problems: [], objects: 52, revision: 57 });
  });

  const DAMAGE: readonly (readonly [what: string, sql: string, problem: RegExp])[] = [
    [
      'a changed value',
      "UPDATE log SET value = '{}' WHERE revision = 10",
      /^revision 10, things \/n\d+: the checksum/u,
    ],
    [
      'a changed name',
      "UPDATE log SET name = 'z' WHERE revision = 3",
      /^revision 3, things \/z: the checksum/u,
    ],
    [
      'a lost newest row',
      'DELETE FROM log WHERE revision = 57',
      /is at revision 57, which the log does not have/u,
    ],
    ['a lost state', 'DELETE FROM log WHERE revision = 3', /things \/a is at revision 3, which the log/u],
    [
      'a lost event',
      'DELETE FROM log WHERE revision = 4',
      /revision 5, things \/b: follows revision 4, but there is n/u,
    ],
    [
      'a lost deletion',
      'DELETE FROM log WHERE revision = 7',
      /^52 objects are present, but the log replayed gives 53$/u,
    ],
    [
      'an object that is not there',
      "DELETE FROM present WHERE name = 'b'",
      /^51 objects are present, but .* gives 52$/u,
    ],
    [
      'another state',
      "UPDATE present SET revision = 4 WHERE name = 'b'",
      /b is at revision 4, but the log says 5/u,
    ],
    [
      'a counter that fell back',
      'UPDATE sqlite_sequence SET seq = 20',
      /revision 57 is newer than the counter, which is 20/u,
    ],
    [
      'a history that has not begun',
      'UPDATE history SET compacted = 99',
      /history is compacted up to 99, but the counter/u,
    ],
    ['a history that is too short', 'UPDATE history SET compacted = 7', /should have been compacted/u],
  ];

  test.each(DAMAGE)('finds %s', (_what, sql, problem) => {
    change(sql);
    const { problems } = verifyDatabase(file);
    expect(problems.filter((text) => problem.test(text))).not.toEqual([]);
  });

  test('runs when a store opens', async () => {
    change("DELETE FROM present WHERE name = 'b'");
    expect(await refusal()).toMatch(/^TerminalError: .* is damaged: 51 .*store verify.*restore a backup/u);
    // The file is not locked after that.
    change("INSERT INTO present VALUES ('things', '', 'b', 5)");
    expect(await refusal()).toBe('opened at revision 57');
  });

  test('finds a flipped bit that SQLite does not find', () => {
    const bytes = readFileSync(file);
    // SQLite may have moved the row about and left copies.
    for (let at = bytes.indexOf('needle'); at >= 0; at = bytes.indexOf('needle', at)) bytes[at] = 0x4e;
    writeFileSync(file, bytes);
    expect(verifyDatabase(file).problems).toEqual(['revision 3, things /a: the checksum does not match']);
  });

  test.each([
    ['a cut file', (bytes: Buffer) => bytes.subarray(0, 4096 * 3 + 100)],
    ['a page of zeros', (bytes: Buffer) => Buffer.from(bytes).fill(0, 4096, 8192)],
    ['a broken header', (bytes: Buffer) => Buffer.from(bytes).fill(0xff, 0, 100)],
    ['a page of garbage', (bytes: Buffer) => Buffer.from(bytes).fill(0xa5, 4096 * 7, 4096 * 8)],
  ])('finds %s, and the store does not open', async (_what, damage) => {
    writeFileSync(file, damage(readFileSync(file)));
    expect(verifyDatabase(file).problems).not.toEqual([]);
    expect(await refusal()).toContain(`TerminalError: ${file} `);
  });
});
