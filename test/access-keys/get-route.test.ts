/** The files that a GET of a key passes: those in ARCHITECTURE.md, found by what runs. */

import { expect, test } from 'vitest';
import { FakeClock } from '../support/fake-clock.ts';
import { documentedFiles, filesThatRun } from '../support/files-that-run.ts';
import { KEYS_PATH, startComposed } from './composed-api.ts';

const FILES_MAX = 20;
/** Has no code but constants, which the loader of the tests reads by functions. */
const CONSTANTS = 'apiserver/limits';

test('are the documented ones, twenty at most', async () => {
  // Nothing runs in the background while this clock stands.
  await using api = await startComposed({ clock: new FakeClock(Date.now()) });
  const { client } = await api.key('k');
  const run = await filesThatRun(async () => {
    expect((await client.send({ method: 'GET', path: `${KEYS_PATH}/k` })).status).toBe(200);
  });
  const passed = [...run].filter((file) => /^(?:apiserver|access-keys)\//u.test(file) && file !== CONSTANTS);
  const documented = documentedFiles('The files that a GET of a key passes', {
    A: 'apiserver',
    K: 'access-keys',
  });
  expect(new Set(passed)).toEqual(documented);
  expect(passed.length).toBeLessThanOrEqual(FILES_MAX);
});
