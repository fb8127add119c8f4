/** Runs the commands of a page one after another in one shell, so that variables and background jobs persist between commands. */

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { eventually } from '../support/eventually.ts';
import { isAsDocumented } from './output.ts';
import { readPage, type DocumentedCommand } from './page.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const TIMEOUT_MS = 60_000;
/** What pages call the folder in which the reader works. */
const DOCUMENTED_FOLDER = '/home/you/endpoint-syncer';

export interface PlayedCommand extends DocumentedCommand {
  readonly printed: string;
  /** Of a command that is left running, 0. */
  readonly exitCode: number;
  /** Elapsed time. */
  readonly milliseconds: number;
}

export interface SessionOptions {
  /** Relative to the root of the repository; the commands of each continue in the shell and the folder of the one before. */
  readonly pages: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Texts of the page that are others in the test: an address that may be taken. */
  readonly replace?: Readonly<Record<string, string>>;
  /** Files that the reader of the page has already: name → contents. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Plays every command in an empty folder that has the files of the pages. */
export async function playPages({
  pages,
  env,
  replace,
  files = {},
}: SessionOptions): Promise<PlayedCommand[]> {
  const read = pages.map((page) => readPage(page, replace));
  const written = read.flatMap((page) => [...page.files]);
  const commands = read.flatMap((page) => page.commands);
  const folder = await mkdtemp(join(tmpdir(), 'endpoint-syncer-docs-'));
  try {
    for (const [name, text] of [...Object.entries(files), ...written]) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
    // Pages that run `npm` do so in a checkout; what their commands write is not in it.
    for (const name of ['package.json', 'node_modules', 'src', 'charts', 'deploy', 'config']) {
      if (existsSync(join(ROOT, name))) await symlink(join(ROOT, name), join(folder, name));
    }
    await using shell = new Shell(folder, env);
    const played: PlayedCommand[] = [];
    for (const command of commands) {
      const start = performance.now();
      const { printed, exitCode } = await shell.run(command);
      played.push({ ...command, exitCode, printed, milliseconds: performance.now() - start });
    }
    return played;
  } finally {
    // A process that the page left running may still write while it ends.
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

class Shell implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #folder: string;
  #count = 0;

  constructor(cwd: string, env: NodeJS.ProcessEnv) {
    this.#folder = join(cwd, '.session');
    // Job control: a background job is a process group of its own, which `^C` can interrupt.
    const setUp = `mkdir -p "$SESSION" && set -m`;
    this.#process = spawn('bash', ['--norc', '-s'], {
      cwd,
      env: { ...env, SESSION: this.#folder },
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.#type(setUp);
  }

  /** A command that keeps running has printed enough when it has printed what is documented. */
  async run({ command, kind, output }: DocumentedCommand): Promise<{ printed: string; exitCode: number }> {
    const [out, status] = [this.#file('out'), this.#file('status')];
    const printed = (): string => this.#printed(out, output);
    this.#count++;
    if (kind === 'foreground') {
      this.#type(`{ ${command}\n} > ${out} 2>&1 < /dev/null; echo $? > ${status}`);
    } else {
      this.#type(`{ ${command.trimEnd().replace(/&$/u, '')}\n} > ${out} 2>&1 < /dev/null &`);
      await this.#until(
        () => isAsDocumented(printed(), output),
        () => `${command}\nprinted:\n${printed()}\nand not:\n${output}`,
      );
      this.#type(
        kind === 'background' ? `echo 0 > ${status}` : `kill -INT -$!; wait $!; echo $? > ${status}`,
      );
    }
    await this.#until(
      () => contents(status).endsWith('\n'),
      () => `the end of ${command}`,
    );
    return { printed: printed(), exitCode: Number(contents(status)) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#process, 'close');
    this.#type('for job in $(jobs -p); do kill -- "-$job"; done; wait; exit');
    await ended;
  }

  #printed(file: string, documented: string): string {
    const text = contents(file).replaceAll(dirname(this.#folder), DOCUMENTED_FOLDER);
    // Pages leave log lines out, unless they are about them.
    return documented.includes('{"level"') ? text : text.replaceAll(/^\{"level".*\n/gmu, '');
  }

  #file(kind: string): string {
    return join(this.#folder, `${this.#count}.${kind}`);
  }

  #type(line: string): void {
    this.#process.stdin?.write(`${line}\n`);
  }

  async #until(condition: () => boolean, what: () => string): Promise<void> {
    try {
      await eventually(condition, (holds) => holds, { timeoutMs: TIMEOUT_MS });
    } catch (cause) {
      throw new Error(`not seen within ${TIMEOUT_MS / 1000} s: ${what()}`, { cause });
    }
  }
}

function contents(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}
