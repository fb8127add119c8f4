/** `demo --once`: the samples synced between two clusters in this process, and the files that it leaves. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { capturedRun } from '../cli/captured-run.ts';
import { testFolder } from '../support/test-folder.ts';

const { folder: FOLDER, write } = testFolder();

test('every sample is listed with its copy or the reason for none, and only the configuration is left', async () => {
  const folder = join(FOLDER, 'new', 'folder');
  const run = await capturedRun(['demo', '--once', '--dir', folder, '-o', 'json']);
  expect(run.code).toBe(0);
  expect(JSON.parse(run.out)).toMatchObject([
    {
      virtual: { namespace: 'shop', name: 'db' },
      host: { namespace: 'team-demo', name: 'db-x-shop-x-demo' },
      state: 'synced',
      addresses: ['10.20.0.11', '10.20.0.12'],
      latencyMs: expect.any(Number) as number,
    },
    { virtual: { name: 'legacy-mainframe' }, state: 'synced', addresses: ['192.0.2.7'] },
    { virtual: { name: 'web' }, host: { name: '' }, state: 'skipped', latencyMs: null },
  ]);
  expect(readdirSync(folder)).toEqual(['config.yaml']);
});

test('a folder that cannot be written is an error with the next step', async () => {
  const file = write('file', '');
  for (const folder of [file, '/proc/nowhere']) {
    const run = await capturedRun(['demo', '--once', '--dir', folder]);
    expect([run.code, run.out]).toEqual([1, '']);
    expect(run.err).toMatch(/^error: cannot write the kubeconfigs to \S+ \(.+\): choose another --dir\n$/u);
    expect(run.err).toContain(` ${folder} `);
  }
});
