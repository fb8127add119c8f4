/** The interface of a command's module. */

import type { Command } from 'commander';

export interface CommandModule {
  /** Adds arguments, options and the action; the action reports its exit code through `exit` (0 when it never does). */
  define(command: Command, exit: (code: number) => void): void;
}
