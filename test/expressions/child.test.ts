/** What the process may reach, and that it ends with its sandbox. */

import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { expect, test } from 'vitest';
import { isAlive } from './is-alive.ts';
import { outcomeOf, TestSandbox } from './test-sandbox.ts';

test.runIf(process.platform === 'linux')('has no environment and no file but its pipes', async () => {
  await using sandbox = await TestSandbox.open();
  await sandbox.run('value + 1', 1);
  const [pid] = sandbox.pids;
  expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).toBe('');
  const files = readdirSync(`/proc/${pid}/fd`).map((fd) => linkAt(`/proc/${pid}/fd/${fd}`));
  const others = files.filter((name) => !/^(socket|pipe|anon_inode):/.test(name) && name !== '/dev/null');
  expect(others).toEqual([]);
});

test.runIf(process.platform === 'linux')('may read nothing but the addon', async () => {
  await using sandbox = await TestSandbox.open();
  await sandbox.run('value + 1', 1);
  const [pid] = sandbox.pids;
  const flags = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  expect(flags).toContain('--permission');
  const allowed = flags.filter((flag) => flag.startsWith('--allow-')).join(' ');
  expect(allowed).toMatch(/^--allow-addons --allow-fs-read=[^ ]*isolated-vm[^ ]*\.node$/);
});

test('exits when the sandbox is closed, also while it hangs', async () => {
  await using sandbox = await TestSandbox.open();
  const program = sandbox.define('[].indexOf.call({ length: 2 ** 53 - 1 }, value)');
  await sandbox.run('value', 1);
  const asked = sandbox.ask(program, [1]);
  const { pids } = sandbox;
  await sandbox[Symbol.asyncDispose]();
  expect(outcomeOf(await asked, 0)).toMatchObject({ error: 'killed' });
  await expect.poll(() => pids.filter(isAlive)).toEqual([]);
  expect(outcomeOf(await sandbox.ask(program, [1]), 0)).toMatchObject({ error: 'killed' });
});

function linkAt(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '/dev/null';
  }
}
