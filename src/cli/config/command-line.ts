/** The settings of the command line and the environment: they override the file. */

import { InvariantError } from '../../base/errors.ts';
import type { JsonValue } from '../../base/json.ts';
import { overrideOfSet, type Override } from '../../config-file/overrides.ts';
import { OWN_SECTIONS } from '../../shared-config/shared.ts';
import { vclusterDefaults } from '../../shared-config/vcluster-values.ts';
import { FLAGS, type FlagDefinition } from './flags.ts';

/**
 * Settings from the command line: dotted path below its section (`name`, `host.namespace`, `workers`, `dataDir`) → the text as typed.
 * They win over the environment and the file.
 */
export type ConfigFlags = Readonly<Record<string, string>>;

export interface CommandLine {
  readonly env: NodeJS.ProcessEnv;
  readonly flags: ConfigFlags;
  /** As typed: `endpointSyncer.workers=4`. */
  readonly sets?: readonly string[];
}

/** Weakest first: environment, flags, `--set` in its order. Throws a `ConfigError` for text that is no KEY=VALUE. */
export function overridesOfCommandLine({ env, flags, sets = [] }: CommandLine): Override[] {
  return [...overridesOf(env, flags), ...sets.map((text) => overrideOfSet(text, sectionsOfFile()))];
}

/** Of vCluster's own, any of its file. */
function sectionsOfFile(): readonly string[] {
  return [...OWN_SECTIONS, ...Object.keys(vclusterDefaults())];
}

function overridesOf(env: NodeJS.ProcessEnv, flags: ConfigFlags): Override[] {
  const overrides: Override[] = [];
  const name = env['VCLUSTER_NAME'] ?? '';
  if (name !== '') overrides.push({ path: ['endpointSyncer', 'name'], value: name, origin: 'VCLUSTER_NAME' });
  for (const field of Object.keys(flags)) {
    const definition = FLAGS.find((flag) => flag.field === field);
    if (definition === undefined) throw new InvariantError(`no flag sets the field ${field}`);
    overrides.push(...overridesOfFlag(definition, flags));
  }
  return overrides;
}

function overridesOfFlag(definition: FlagDefinition, flags: ConfigFlags): Override[] {
  const origin = `--${definition.flag}`;
  const { section } = definition;
  const path = [section, ...definition.field.split('.')];
  const replaced = (definition.replaces ?? []).filter((field) => !Object.hasOwn(flags, field));
  return [
    ...replaced.map((field) => ({ path: [section, ...field.split('.')], value: undefined, origin })),
    { path, value: typedValue(definition, flags[definition.field] ?? ''), origin },
  ];
}

/** Text that is not of the flag's type stays text, and the schema rejects it. */
function typedValue(definition: FlagDefinition, text: string): JsonValue {
  if (definition.type === 'number' && /^-?\d{1,15}$/u.test(text)) return Number(text);
  if (definition.type === 'switch' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}
