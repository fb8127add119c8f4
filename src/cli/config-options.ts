/** `--config` and one flag per field of `endpointSyncer`, for every command that needs a configuration. */

import { type Command, Option } from 'commander';
import { FLAGS, type FlagDefinition } from '../config/flags.ts';
import type { LoadOptions } from '../config/load.ts';
import type { ConfigFlags } from '../config/types.ts';
import { CONFIG_CHECKS } from './config-checks.ts';

const HELP_GROUP = 'Configuration (flags win over the environment, which wins over the file):';

/** Adds `--config` and the flags; with `fields`, only the flags of these (`name`, `host.namespace`). */
export function addConfigOptions(command: Command, fields?: readonly string[]): void {
  const help = 'configuration file, - is standard input (else ENDPOINT_SYNCER_CONFIG)';
  command.addOption(new Option('-c, --config <file>', help).helpGroup(HELP_GROUP));
  for (const definition of FLAGS) {
    if (fields === undefined || fields.includes(definition.field)) addFlag(command, definition);
  }
}

function addFlag(command: Command, { flag, type, value, help, words }: FlagDefinition): void {
  if (type === 'switch') {
    command.addOption(new Option(`--${flag}`, help).helpGroup(HELP_GROUP));
    command.addOption(new Option(`--no-${flag}`, `not: ${help}`).hideHelp());
  } else {
    const option = new Option(`--${flag} <${words === undefined ? value : 'word'}>`, help);
    command.addOption((words === undefined ? option : option.choices(words)).helpGroup(HELP_GROUP));
  }
}

/** What the loader takes, from the options that were given to this command. */
export function loaderInput(command: Command, env: NodeJS.ProcessEnv = process.env): LoadOptions {
  const options: Record<string, unknown> = command.opts();
  const flags: Record<string, string> = {};
  for (const { field, flag } of FLAGS) {
    const given = options[optionKey(flag)];
    if (typeof given === 'string' || typeof given === 'boolean') flags[field] = String(given);
  }
  const file = options['config'];
  return {
    ...(typeof file === 'string' ? { file } : {}),
    env,
    flags: flags satisfies ConfigFlags,
    checks: CONFIG_CHECKS,
  };
}

/** The name under which commander keeps an option: `host-namespace` → `hostNamespace`. */
function optionKey(flag: string): string {
  return flag.replaceAll(/-([a-z])/gu, (_, letter: string) => letter.toUpperCase());
}
