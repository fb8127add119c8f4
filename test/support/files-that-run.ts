/** Which files run for one thing that a program does, for the tables of routes in ARCHITECTURE.md: found by V8's coverage, not by reading imports. */

import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

/** More rounds than the first: what runs in the background may run in one of them, but not in each. */
const ROUNDS = 5;

/** Files of which a function runs in every round, as paths below `src` without `.ts`. The first call of `work` is not counted: it does what is done once. */
export async function filesThatRun(work: () => Promise<void>): Promise<ReadonlySet<string>> {
  await work();
  let passed = new Set(await filesOf(work));
  for (let more = 1; more < ROUNDS; more++) passed = passed.intersection(new Set(await filesOf(work)));
  return passed;
}

async function filesOf(work: () => Promise<void>): Promise<string[]> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true });
    await session.post('Profiler.takePreciseCoverage');
    await work();
    const { result } = await session.post('Profiler.takePreciseCoverage');
    await session.post('Profiler.stopPreciseCoverage');
    return result
      .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
      .flatMap(({ url }) => /\/src\/(.*)\.ts/.exec(url)?.[1] ?? []);
  } finally {
    session.disconnect();
  }
}

/**
 * The files in the first table of ARCHITECTURE.md below `sentence`, as {@link filesThatRun} names them. One without a folder is in that of the file
 * before it; `prefixes` are folders by their letter.
 */
export function documentedFiles(
  sentence: string,
  prefixes: Readonly<Record<string, string>> = {},
): ReadonlySet<string> {
  const [, below = ''] = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8').split(sentence);
  const [table = ''] = below.slice(below.indexOf('| step |')).split('\n\n');
  let folder = '';
  const files = [...table.matchAll(/`([^`]+)`/gu)].map(([, path = '']) => {
    const [letter = '', ...rest] = path.split('/');
    if (rest.length === 0) return `${folder}/${path}`;
    const file = `${prefixes[letter] ?? letter}/${rest.join('/')}`;
    folder = file.slice(0, file.lastIndexOf('/'));
    return file;
  });
  return new Set(files);
}
