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
  const words = asCommand(argv);
  const wanted = words.find((word) => !word.startsWith('-'));
  for (const entry of COMMANDS) {
    const command = await commandFor(program, entry, entry.name === wanted && ((code) => (exitCode = code)));
    program.addCommand(command);
  }
  try {
    await program.parseAsync([...words], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
  return exitCode;
}

/** `--version` and `help COMMAND…` in the words of the commands that they stand for, so that these are loaded, or found not to be. */
function asCommand(argv: readonly string[]): readonly string[] {
  const [first, name, ...rest] = argv;
  if (first === '--version') return ['version', ...argv.slice(1)];
  if (first !== 'help' || name === undefined) return argv;
  return COMMANDS.some((entry) => entry.name === name) ? [name, ...rest, '--help'] : [name];
}

/** Every command with its options, as `completion` needs them. */
async function allCommands(): Promise<Command[]> {
  const program = rootCommand();
  return Promise.all(COMMANDS.map((entry) => commandFor(program, entry, () => undefined)));
}

function rootCommand(): Command {
  return new Command('endpoint-syncer')
    .description('Syncs Endpoints between a virtual Kubernetes cluster and its host.')
    .option('--version', 'print the version')
    .showHelpAfterError('(run with --help for the options)')
    .showSuggestionAfterError(true)
    .exitOverride();
}

/** `onExit` false: only its name and summary are needed. */
async function commandFor(
  program: Command,
  entry: CommandEntry,
  onExit: ((code: number) => void) | false,
): Promise<Command> {
  const command = program.createCommand(entry.name).description(entry.summary).copyInheritedSettings(program);
  if (onExit !== false) (await entry.load()).define(command, onExit);
  return command;
}
