/** `--set KEY=VALUE`: any field of the configuration file, from the command line. */

import { ConfigError } from '../base/errors.ts';
import type { JsonValue } from '../base/json.ts';
import { readDocument } from './document.ts';
import { overridesOf, type Override } from './flags.ts';
import { OWN_SECTIONS, vclusterDefaults } from './schema/defaults.ts';
import { didYouMean } from './schema/suggest.ts';
import { problemOf } from './source-file.ts';
import type { ConfigFlags } from './types.ts';

export interface CommandLine {
  readonly env: NodeJS.ProcessEnv;
  readonly flags: ConfigFlags;
  /** As typed: `endpointSyncer.workers=4`. */
  readonly sets?: readonly string[];
}

/** Weakest first: environment, flags, `--set` in its order. Throws a `ConfigError` for text that is no KEY=VALUE. */
export function overridesOfCommandLine({ env, flags, sets = [] }: CommandLine): Override[] {
  return [...overridesOf(env, flags), ...sets.map(overrideOfSet)];
}

/** `name`, `["gadgets.example.com"]` */
const STEP = /(?:^|\.)([\w$-]+)|\["([^"\]]+)"\]/guy;

function overrideOfSet(text: string): Override {
  const [, key = '', value = ''] = /^([^=]*)=(.*)$/su.exec(text) ?? [];
  const path = stepsOf(key);
  if (path === undefined)
    throw rejected(text, 'write KEY=VALUE with a key as in the file, such as endpointSyncer.workers=4');
  const [section = ''] = path;
  const sections = [...OWN_SECTIONS, ...Object.keys(vclusterDefaults())];
  if (!sections.includes(section)) {
    const hint = didYouMean(section, sections) || '; a key begins with its section, such as endpointSyncer';
    throw rejected(text, `the configuration has no section "${section}"${hint}`);
  }
  return { path, value: valueOf(text, value), origin: `--set ${key}` };
}

/** Undefined: it is no path. */
function stepsOf(key: string): string[] | undefined {
  const steps = [...key.matchAll(STEP)];
  const isWhole = steps.reduce((length, [step]) => length + step.length, 0) === key.length;
  return isWhole && key !== '' ? steps.map(([, plain, quoted]) => plain ?? quoted ?? '') : undefined;
}

/** As in the file: YAML on one line, such as `4`, `[a, b]` or `{kind: Secret}`. */
function valueOf(text: string, yaml: string): JsonValue {
  const { value, isReadable, problems } = readDocument('', `value: ${yaml}`);
  const [problem] = problems;
  if (!isReadable || problem !== undefined || Object.keys(value).length !== 1)
    throw rejected(text, `the value is no YAML on one line: ${problem?.message ?? 'it has several keys'}`);
  return value['value'] ?? null;
}

function rejected(text: string, message: string): ConfigError {
  return new ConfigError([problemOf(`--set ${text}`, message)]);
}
