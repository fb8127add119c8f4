/** `--config` and one flag per field, for every command that needs a configuration. */

import { type Command, Option } from 'commander';
import { SHARED_FIELDS } from '../shared-config/shared.ts';
import { FLAGS, flagFields, type FlagDefinition } from './config/flags.ts';
import type { LoadOptions } from './config/load.ts';
import type { Config } from '../syncer/config/config.ts';

export const HELP_GROUP = 'Configuration (flags win over the environment, which wins over the file):';
const API_HELP_GROUP = 'Key and token API:';
const HELP_GROUPS: readonly (string | undefined)[] = [HELP_GROUP, API_HELP_GROUP];

export const ALL_FIELDS: readonly string[] = FLAGS.map(({ field }) => field);

export const API_FIELDS: readonly string[] = [
  ...flagFields('managementApi'),
  ...flagFields('endpointSyncer').filter((field) => Object.hasOwn(SHARED_FIELDS, field.split('.')[0] ?? '')),
];

/** Adds `--config`, `--set` and the flags of `fields` (`name`, `host.namespace`). Default: every field of `endpointSyncer`. */
export function addConfigOptions(
  command: Command,
  fields: readonly string[] = flagFields('endpointSyncer'),
  isDaemon = false,
): void {
  const help = 'configuration file, or - for standard input; default: $ENDPOINT_SYNCER_CONFIG';
  command.addOption(new Option('-c, --config <file>', help).helpGroup(HELP_GROUP));
  for (const definition of FLAGS) {
    if (!fields.includes(definition.field)) continue;
    const { shownBy } = definition;
    addFlag(command, definition, shownBy === 'none' || (shownBy === 'daemons' && !isDaemon));
  }
  const set = 'any field of the file, such as endpointSyncer.workers=4; repeatable';
  const appended = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];
  command.addOption(new Option('--set <key=value>', set).argParser(appended).helpGroup(HELP_GROUP));
}

function addFlag(
  command: Command,
  { section, flag, type, value, help, words }: FlagDefinition,
  isHidden: boolean,
): void {
  const group = section === 'managementApi' ? API_HELP_GROUP : HELP_GROUP;
  if (type === 'switch') {
    command.addOption(new Option(`--${flag}`, help).hideHelp(isHidden).helpGroup(group));
    command.addOption(new Option(`--no-${flag}`, `do not ${help}`).hideHelp());
  } else {
    const option = new Option(`--${flag} <${words === undefined ? value : 'word'}>`, help).hideHelp(isHidden);
    command.addOption((words === undefined ? option : option.choices(words)).helpGroup(group));
  }
}

export function loaderInput(command: Command): LoadOptions {
  const flags: Record<string, string> = {};
  for (const { field, flag } of FLAGS) {
    const option = command.options.find(({ long }) => long === `--${flag}`);
    // An option of the command itself may have the same name, such as `keys create --name`.
    if (option === undefined || !HELP_GROUPS.includes(option.helpGroupHeading)) continue;
    const given: unknown = command.getOptionValue(option.attributeName());
    if (typeof given === 'string' || typeof given === 'boolean') flags[field] = String(given);
  }
  const { config: file, set: sets } = command.opts<{ config?: string; set?: readonly string[] }>();
  return {
    ...(sets && { sets }),
    ...(file !== undefined && { file }),
    env: process.env,
    flags,
  };
}

/** Offline there is no kubeconfig context, so the default is the namespace that vCluster's command line creates. */
export function withHostNamespace(config: Config): Config {
  if (config.host.namespace !== '') return config;
  return { ...config, host: { ...config.host, namespace: `vcluster-${config.name}` } };
}
