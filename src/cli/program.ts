/** The command table: each command is loaded only when it is asked for, so `run` does not pay for the others. */

import { Command, CommanderError } from 'commander';
import type { CommandModule } from './command.ts';

interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  load(): Promise<CommandModule>;
}

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'run',
    summary: 'sync until interrupted',
    load: () => import('./run.ts'),
  },
  {
    name: 'demo',
    summary: 'run between two clusters inside this process, with samples that change',
    load: () => import('./demo.ts'),
  },
  {
    name: 'render',
    summary: 'show offline what a sync would write',
    load: () => import('./render.ts'),
  },
  {
    name: 'patch',
    summary: 'run only the patches, on one object of any kind',
    load: () => import('./patch.ts'),
  },
  {
    name: 'eval',
    summary: 'evaluate expressions in the sandbox',
    load: () => import('./eval.ts'),
  },
  {
    name: 'validate',
    summary: 'check configuration files, every error at once',
    load: () => import('./validate.ts'),
  },
  {
    name: 'names',
    summary: 'translate names between the virtual cluster and the host',
    load: () => import('./names.ts'),
  },
  {
    name: 'api',
    summary: 'serve the key and token API alone',
    load: () => import('./api.ts'),
  },
  {
    name: 'keys',
    summary: 'the first administrator key; create, list and revoke keys',
    load: () => import('./keys.ts'),
  },
  {
    name: 'store',
    summary: 'back up, check or compact the store of the key and token API',
    load: () => import('./store.ts'),
  },
  {
    name: 'schema',
    summary: 'print the JSON Schema of the configuration file',
    load: () => import('./schema.ts'),
  },
  {
    name: 'completion',
    summary: 'print a script that completes command lines in bash, zsh or fish',
    load: async () => (await import('./completion.ts')).completionCommand(allCommands),
  },
  {
    name: 'version',
    summary: 'print the version of this program and of what it runs on',
    load: () => import('./version.ts'),
  },
];

/** Runs one command line and returns the process's exit code: 0 ok, 1 failure or differences, 2 usage or configuration. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  let exitCode = 0;
  const program = rootCommand();
  const asked = argv.find((word) => !word.startsWith('-')) ?? '';
  const wanted = asked === 'help' ? (argv[argv.indexOf('help') + 1] ?? '') : asked;
  for (const entry of COMMANDS) {
    const command = await commandFor(entry, entry.name === wanted, (code) => (exitCode = code));
    program.addCommand(command);
  }
  try {
    await program.parseAsync([...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
  return exitCode;
}

/** Every command with its options, as `completion` needs them. */
async function allCommands(): Promise<Command[]> {
  return Promise.all(COMMANDS.map((entry) => commandFor(entry, true, () => undefined)));
}

function rootCommand(): Command {
  return new Command('endpoint-syncer')
    .description('Syncs Endpoints between a virtual Kubernetes cluster and its host.')
    .showHelpAfterError('(run with --help for the options)')
    .showSuggestionAfterError(true)
    .exitOverride();
}

async function commandFor(
  entry: CommandEntry,
  isWanted: boolean,
  onExit: (code: number) => void,
): Promise<Command> {
  if (!isWanted) return new Command(entry.name).description(entry.summary).exitOverride();
  const module = await entry.load();
  const command = new Command(entry.name).description(entry.summary).exitOverride();
  module.define(command, onExit);
  return command;
}
