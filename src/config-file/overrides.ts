/** Settings that override the file. `--set KEY=VALUE` sets any field of it. */

import { ConfigError } from '../base/errors.ts';
import { type JsonObject, type JsonValue, isJsonObject, ownValue, setOwn } from '../base/json.ts';
import { readDocument } from './document.ts';
import type { ConfigPath } from './finding.ts';
import { didYouMean } from '../base/suggest.ts';
import { problemOf } from './source-file.ts';

export interface Override {
  readonly path: ConfigPath;
  /** Undefined removes the field. */
  readonly value: JsonValue | undefined;
  /** Where it was set, for messages: `--workers`, `VCLUSTER_NAME`. */
  readonly origin: string;
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

// `--set KEY=VALUE`.

/** `name`, `["gadgets.example.com"]` */
const STEP = /(?:^|\.)([\w$-]+)|\["([^"\]]+)"\]/guy;

/** `sections`: those that the file may have. Throws a `ConfigError` for text that is no KEY=VALUE. */
export function overrideOfSet(text: string, sections: readonly string[]): Override {
  const [, key = '', value = ''] = /^([^=]*)=(.*)$/su.exec(text) ?? [];
  const path = stepsOf(key);
  if (path === undefined)
    throw rejected(text, 'write KEY=VALUE with a key as in the file, such as endpointSyncer.workers=4');
  const [section = ''] = path;
  if (!sections.includes(section)) {
    const hint = didYouMean(section, sections) || '; a key begins with its section, such as endpointSyncer';
    throw rejected(text, `the configuration has no section "${section}"${hint}`);
  }
  return { path, value: valueOf(text, value), origin: `--set ${key}` };
}

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
