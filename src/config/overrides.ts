/** Settings from the command line and the environment, which override the file. */

import { InvariantError } from '../base/errors.ts';
import { type JsonObject, type JsonValue, isJsonObject, ownValue, setOwn } from '../base/json.ts';
import { FLAGS, type FlagDefinition } from './flags.ts';
import type { ConfigPath } from './source/path.ts';
import type { ConfigFlags } from './types.ts';

export interface Override {
  readonly path: ConfigPath;
  /** Undefined removes the field. */
  readonly value: JsonValue | undefined;
  /** Where it was set, for messages: `--workers`, `VCLUSTER_NAME`. */
  readonly origin: string;
}

/** Weakest first: environment, then flags. */
export function overridesOf(env: NodeJS.ProcessEnv, flags: ConfigFlags): Override[] {
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

/** A copy of `value` with the overrides. An override is skipped if a parent of its path is not a mapping. */
export function applyOverrides(value: JsonObject, overrides: readonly Override[]): JsonObject {
  return overrides.reduce((result, override) => withValue(result, override.path, override.value), value);
}

function withValue(object: JsonObject, path: ConfigPath, value: JsonValue | undefined): JsonObject {
  const [step, ...rest] = path;
  if (step === undefined) return object;
  const copy: JsonObject = {};
  for (const key of Object.keys(object)) setOwn(copy, key, object[key] ?? null);
  const key = String(step);
  const below = ownValue(copy, key) ?? null;
  if (rest.length === 0) {
    if (value === undefined) delete copy[key];
    else setOwn(copy, key, value);
  } else if (isJsonObject(below) || below === null) {
    setOwn(copy, key, withValue(isJsonObject(below) ? below : {}, rest, value));
  }
  return copy;
}

/** The flag or variable that set the value at a path; undefined if the file did. */
export function originOf(path: ConfigPath, overrides: readonly Override[]): string | undefined {
  const isAt = (override: Override): boolean =>
    override.value !== undefined && override.path.every((step, index) => path[index] === step);
  return overrides.findLast(isAt)?.origin;
}
