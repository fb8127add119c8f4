/** `npm run sim -- --mutants [TEXT]`: how many seeds each mutant needs until a history is violated. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { MUTANTS, type Mutant } from './mutants.ts';

export interface HuntOptions {
  readonly seeds: number;
  readonly steps: number;
  readonly jobs: number;
  /** Only mutants whose name holds this text. */
  readonly filter: string;
}

interface Catch {
  /** Undefined: no seed found it. */
  readonly seeds: number | undefined;
  readonly violation: string;
}

const LOADER = join(import.meta.dirname, 'load-mutant.ts');
const RUNNER = join(import.meta.dirname, 'run-mutant.ts');
/** A mutant whose history never ends is found, too. */
const HISTORY_MS = 60_000;

/** Prints a line for each mutant. Resolves true when all of them are found. */
export async function huntMutants(options: HuntOptions): Promise<boolean> {
  const mutants = MUTANTS.filter(({ name }) => name.includes(options.filter));
  const width = Math.max(...mutants.map(({ name }) => name.length));
  const waiting = [...mutants];
  let missed = 0;
  const work = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const { seeds, violation } = await hunt(mutant, options);
      if (seeds === undefined) missed += 1;
      const found = seeds === undefined ? 'MISSED' : String(seeds);
      console.log(`${mutant.name.padEnd(width)}  ${found.padStart(6)}  ${violation.slice(0, 120)}`);
    }
  };
  await Promise.all(Array.from({ length: options.jobs }, work));
  console.log(`${mutants.length - missed} of ${mutants.length} mutants found within ${options.seeds} seeds`);
  return missed === 0;
}

async function hunt(mutant: Mutant, options: HuntOptions): Promise<Catch> {
  const { name, steps = options.steps, isOfFleet = false } = mutant;
  const histories = [String(options.seeds), String(steps), ...(isOfFleet ? ['fleet'] : [])];
  const args = [...process.execArgv, '--import', LOADER, RUNNER, ...histories];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, SIM_MUTANT: name },
  });
  const kill = (): void => void child.kill();
  let watchdog = setTimeout(kill, HISTORY_MS);
  let last = '';
  child.stdout.setEncoding('utf8').on('data', (lines: string) => {
    last = lines.trimEnd().split('\n').at(-1) ?? '';
    clearTimeout(watchdog);
    watchdog = setTimeout(kill, HISTORY_MS);
  });
  const [errors] = await Promise.all([text(child.stderr), once(child, 'close')]);
  clearTimeout(watchdog);
  const [seed = '', ...violation] = last.split(' ');
  if (child.exitCode === 0) return { seeds: undefined, violation: '' };
  if (child.exitCode === 3) return { seeds: Number(seed), violation: violation.join(' ') };
  if (child.signalCode !== null) return { seeds: Number(seed) + 1, violation: 'it does not end' };
  const why = /^\w*Error: .*$/m.exec(errors)?.[0] ?? errors.slice(0, 200);
  if (why.includes('snippet')) throw new Error(why);
  return { seeds: Number(seed) + 1, violation: why };
}
