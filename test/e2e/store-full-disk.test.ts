/** A full disk: the write fails with a message and has no effect, and later writes succeed when there is space again. */

import { execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { verifyDatabase } from '../../src/apiserver/storage/sqlite/maintenance/verify-database.ts';
import { temporaryFolder } from '../apiserver/storage/temporary-folder.ts';

const CHILD = join(import.meta.dirname, 'store-without-space.ts');

test('a write on a full disk fails, and later ones succeed when there is space', async () => {
  using folder = temporaryFolder();
  const file = join(folder.path, 'management.db');
  // A limit on the size of files, which may be lifted later, does what a full disk does.
  const command = `ulimit -S -f 300; exec "$0" "$@"`;
  const child = spawn('sh', ['-c', command, process.execPath, CHILD, file], { stdio: 'pipe' });
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
