/** The files that a GET of a key passes: those in ARCHITECTURE.md, found by what runs. */

import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FakeClock } from '../support/fake-clock.ts';
import { KEYS_PATH, startComposed } from './composed-api.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const FILES_MAX = 20;
/** Has no code but constants, which the loader of the tests reads by functions. */
const CONSTANTS = 'apiserver/limits';

/** In the table of the route, `apiserver/http/http-server`. */
function documented(): string[] {
  const text = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8');
  const [, route = ''] = text.split('The files that a GET of a key passes');
  const [table = ''] = route.slice(route.indexOf('| step |')).split('\n\n');
  return [...table.matchAll(/`([AK])\/([^`]+)`/g)].map(
    ([, product, file]) => `${product === 'A' ? 'apiserver' : 'access-keys'}/${file}`,
  );
}

/** The files of both products of which a function runs meanwhile. */
async function filesThatRun(work: () => Promise<void>): Promise<string[]> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true });
  await session.post('Profiler.takePreciseCoverage');
  await work();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  await session.post('Profiler.stopPreciseCoverage');
  session.disconnect();
  return result
    .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
    .flatMap(({ url }) => /\/src\/((?:apiserver|access-keys)\/.*)\.ts/.exec(url)?.[1] ?? []);
}

test('are the documented ones, twenty at most', async () => {
  // Nothing runs in the background while this clock stands.
  await using api = await startComposed({ clock: new FakeClock(Date.now()) });
  const { client } = await api.key('k');
  const get = async (): Promise<void> => {
    expect((await client.send({ method: 'GET', path: `${KEYS_PATH}/k` })).status).toBe(200);
  };
  // What runs once for a key, such as the parsing of its scope.
  await get();
  let passed = new Set(await filesThatRun(get));
  // What another test has left behind may run once, but not during each of these.
  for (let more = 0; more < 4; more++) passed = passed.intersection(new Set(await filesThatRun(get)));
  passed.delete(CONSTANTS);
  expect(passed).toEqual(new Set(documented()));
  expect(passed.size).toBeLessThanOrEqual(FILES_MAX);
});
