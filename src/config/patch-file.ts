/** Parses a file of patches alone: a list, or a mapping with `patches`. The rules of a configuration file apply. */

import type { ConfigProblem } from '../base/errors.ts';
import { ownValue, type JsonObject, type JsonValue } from '../base/json.ts';
import { withoutEmptyKeys } from './schema/defaults.ts';
import { readDocument } from './document.ts';
import { errorAtKey, type Finding, type ConfigPath } from './finding.ts';
import { checkPatches, patchesIn } from './patch-rules.ts';
import { syntaxProblems } from './source-file.ts';
import { checkSchema } from './schema/schema-check.ts';
import type { ConfigChecks, PatchConfig } from './types.ts';

export interface PatchFileResult {
  /** Empty when any problem is an error. */
  readonly patches: readonly PatchConfig[];
  readonly problems: readonly ConfigProblem[];
}

/** The path of patches in a configuration file, as the schema describes it. */
const SCHEMA_PATH: ConfigPath = ['sync', 'toHost', 'endpoints', 'patches'];

/** Reads the patches of one file. `file` is its name in messages. */
export function parsePatchFile(
  source: { readonly text: string; readonly file: string },
  checks: ConfigChecks,
): PatchFileResult {
  const document = readDocument(source.file, source.text, 'patches');
  const syntax = syntaxProblems(document);
  if (!document.isReadable) return { patches: [], problems: syntax };
  const { value } = document;
  const patches = ownValue(value, 'patches');
  const findings =
    patches === undefined
      ? [missingPatches(value)]
      : [...schemaFindings(patches), ...checkPatches(patches, ['patches'], checks), ...unknownKeys(value)];
  const problems = [...syntax, ...findings.map((finding) => document.problemOf(finding))].toSorted(
    (a, b) => a.line - b.line || a.column - b.column,
  );
  if (problems.some(({ severity }) => severity === 'error') || !Array.isArray(patches))
    return { patches: [], problems };
  return { patches: patchesIn(patches), problems };
}

function missingPatches(value: JsonObject): Finding {
  const hint = Object.hasOwn(value, 'sync') ? '; this is a configuration, which belongs to --config' : '';
  return errorAtKey(
    [],
    `contains no patches: write a list of patches, or a mapping with the key patches${hint}`,
  );
}

function unknownKeys(value: JsonObject): Finding[] {
  const unknown = Object.keys(value).filter((key) => key !== 'patches');
  return unknown.map((key) => errorAtKey([key], `unknown key ${JSON.stringify(key)}; known here: patches`));
}

function schemaFindings(patches: JsonValue): Finding[] {
  const { findings } = checkSchema(withoutEmptyKeys({ sync: { toHost: { endpoints: { patches } } } }));
  const depth = SCHEMA_PATH.length;
  return findings
    .filter(({ path }) => SCHEMA_PATH.every((step, at) => path[at] === step))
    .map((finding) => ({ ...finding, path: ['patches', ...finding.path.slice(depth)] }));
}
