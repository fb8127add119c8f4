/** A command of the program that serves a page, as a child process. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
const PAGE_URL = /http:\/\/127\.0\.0\.1:\d+\//u;

export interface RunningCommand extends AsyncDisposable {
  /** `http://127.0.0.1:40123/` */
  readonly url: string;
}

/** Resolves when the command has printed the address of its page. */
export async function startCommand(...args: readonly string[]): Promise<RunningCommand> {
  const child = spawn(process.execPath, ['--no-node-snapshot', MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const url = await new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString();
      const found = PAGE_URL.exec(output)?.[0];
      if (found !== undefined) resolve(found);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('exit', (code) => reject(new Error(`${args.join(' ')} ended with ${code}: ${output}`)));
  });
  return {
    url,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}
