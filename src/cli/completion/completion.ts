/** `completion`: scripts that complete commands, options and their values in bash, zsh and fish. */

import { Argument, type Command } from 'commander';
import type { CommandModule } from '../command.ts';
import { type CompletionCommand, describeCommand } from './completion-model.ts';
import { bashCompletion } from './bash.ts';
import { fishCompletion } from './fish.ts';
import { zshCompletion } from './zsh.ts';

const SCRIPTS: Readonly<Record<string, (commands: readonly CompletionCommand[]) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

/** `loadCommands` returns every command with its options; only `completion` loads all of them. */
export function completionCommand(loadCommands: () => Promise<readonly Command[]>): CommandModule {
  return {
    define(command) {
      const shell = new Argument('<shell>', 'shell that the script is for').choices(Object.keys(SCRIPTS));
      command.addArgument(shell).action(async (name: string) => {
        const commands = (await loadCommands()).map(describeCommand);
        process.stdout.write(SCRIPTS[name]?.(commands) ?? '');
      });
    },
  };
}
