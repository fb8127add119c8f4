/** Plays a page of the documentation: writes its files, runs its commands one after another in one shell, keeps what each printed. */

import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

export interface PlayedCommand {
  readonly command: string;
  readonly documented: string;
  readonly printed: string;
}

interface Block {
  readonly info: string;
  readonly text: string;
}

export interface SessionOptions {
  /** Below `docs/`. */
  readonly page: string;
  readonly env: NodeJS.ProcessEnv;
  /** Texts of the page that are others in the test: an address that may be taken. */
  readonly replace: Readonly<Record<string, string>>;
}

/** Blocks are fenced: `yaml NAME` is a file, `console` a session where `$ ` begins a command and what follows is its output. */
export async function playPage({ page, env, replace }: SessionOptions): Promise<PlayedCommand[]> {
  const text = Object.entries(replace).reduce(
    (page_, [from, to]) => page_.replaceAll(from, to),
    await readFile(join(ROOT, 'docs', page), 'utf8'),
  );
  const blocks = [...text.matchAll(/^```(\w+ ?[^\n]*)\n([^]*?)^```$/gmu)].map(
    ([, info = '', body = '']): Block => ({ info, text: body }),
  );
  const folder = await mkdtemp(join(tmpdir(), 'endpoint-syncer-docs-'));
  try {
    // Commands are those of a checkout, what they write is not.
    for (const name of ['package.json', 'node_modules', 'src'])
      await symlink(join(ROOT, name), join(folder, name));
    for (const { info, text: body } of blocks) {
      const name = /^yaml (\S+)$/u.exec(info)?.[1];
      if (name !== undefined) await writeFile(join(folder, name), body);
    }
    const commands = blocks
      .filter(({ info }) => info === 'console')
      .flatMap((block) => commandsIn(block.text));
    const printed = await runAll(commands, folder, env);
    return commands.map((command, index) => ({ ...command, printed: printed[index] ?? '' }));
  } finally {
    await rm(folder, { recursive: true });
  }
}

function commandsIn(session: string): { command: string; documented: string }[] {
  return session
    .split(/^\$ /mu)
    .slice(1)
    .map((part) => {
      const lines = part.split('\n');
      const end = lines.findIndex((line) => !line.endsWith('\\'));
      return { command: lines.slice(0, end + 1).join('\n'), documented: lines.slice(end + 1).join('\n') };
    });
}

const MARK = '-----next command-----';

/** One shell for all, so that variables and background jobs are where a reader has them. */
async function runAll(
  commands: readonly { readonly command: string }[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<string[]> {
  const steps = commands.map(({ command }) => {
    const isInBackground = command.trimEnd().endsWith('&');
    // Whoever reads waits until it says where it listens.
    const wait = isInBackground ? 'until grep -q certificate-authority out; do sleep 0.05; done; ' : '';
    return `: > out\n${isInBackground ? `${command.trimEnd().slice(0, -1)} >> out 2>> log &` : `{ ${command}\n} >> out 2>&1`}\n${wait}cat out\necho '${MARK}'`;
  });
  const script = `${steps.join('\n')}\nkill $(jobs -p)\nwait\n`;
  const shell = spawn('bash', ['-c', script], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  shell.stdout.on('data', (chunk: Buffer) => (out += String(chunk)));
  shell.stderr.on('data', (chunk: Buffer) => (out += String(chunk)));
  await new Promise((resolve) => shell.once('close', resolve));
  return out.split(`${MARK}\n`).slice(0, commands.length);
}
