/** A file of patches alone: a list, or a mapping with `patches`. The rules of a configuration file apply. */

import type { ConfigProblem } from '../../base/errors.ts';
import { type JsonObject, type JsonValue, ownValue } from '../../base/json.ts';
import { readDocument } from '../../config-file/document.ts';
import { errorAtKey, type ConfigPath, type Finding } from '../../config-file/finding.ts';
import { withoutEmptyKeys } from '../../config-file/merge.ts';
import { checkSections } from '../../config-file/schema-check.ts';
import { syntaxProblems } from '../../config-file/source-file.ts';
import { isOfKind, type KubeObject } from '../../kube/object.ts';
import { patchedKinds, SYNCED_KEYS, type SyncedKey } from '../kinds/synced-kinds.ts';
import type { PatchConfig } from '../patch/patch-schema.ts';
import type { Config } from './config.ts';
import { checkPatches, patchesIn } from './patch-rules.ts';
import { syncSections } from './schema.ts';

export interface PatchFileResult {
  /** Empty when any problem is an error. */
  readonly patches: readonly PatchConfig[];
  readonly problems: readonly ConfigProblem[];
}

/** The path of patches in a configuration file, as the schema describes it. */
const SCHEMA_PATH: ConfigPath = ['sync', 'toHost', 'endpoints', 'patches'];

/** Reads the patches of one file. `file` is its name in messages, `list` the key of `sync.toHost` that the patches are for; absent: any kind. */
export function parsePatchFile(
  source: { readonly text: string; readonly file: string },
  list?: string,
): PatchFileResult {
  const document = readDocument(source.file, source.text, { listKey: 'patches' });
  const syntax = syntaxProblems(document);
  if (!document.isReadable) return { patches: [], problems: syntax };
  const { value } = document;
  const patches = ownValue(value, 'patches');
  const findings =
    patches === undefined
      ? [missingPatches(value)]
      : [...schemaFindings(patches), ...checkPatches(patches, ['patches'], list), ...unknownKeys(value)];
  const problems = [...syntax, ...findings.map((finding) => document.problemOf(finding))].toSorted(
    (a, b) => a.line - b.line || a.column - b.column,
  );
  if (problems.some(({ severity }) => severity === 'error') || !Array.isArray(patches))
    return { patches: [], problems };
  return { patches: patchesIn(patches), problems };
}

export interface PatchFileConfig {
  /** With the patches of the file alone; undefined when any problem is an error. */
  readonly config: Config | undefined;
  /** Of `sync.toHost`, whose patches they are. */
  readonly key: SyncedKey;
  readonly problems: readonly ConfigProblem[];
}

/** The file in the place of all patches of `base`, for the kind of the first object that can be patched. */
export function withPatchFile(
  source: { readonly text: string; readonly file: string },
  objects: readonly KubeObject[],
  base: Config,
): PatchFileConfig {
  const patched = patchedKinds(base);
  const [first] = objects.flatMap((object) => patched.filter(({ resource }) => isOfKind(object, resource)));
  const key = first?.key ?? 'endpoints';
  const { patches, problems } = parsePatchFile(source, key);
  if (problems.some(({ severity }) => severity === 'error')) return { config: undefined, key, problems };
  const others = SYNCED_KEYS.map((one) => [one, { ...base.sync[one], patches: [] }] as const);
  const sync = { ...base.sync, ...Object.fromEntries(others), [key]: { enabled: true, patches } };
  return { config: { ...base, sync }, key, problems };
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
  const { findings } = checkSections(
    syncSections,
    withoutEmptyKeys({ sync: { toHost: { endpoints: { patches } } } }),
  );
  const depth = SCHEMA_PATH.length;
  return findings
    .filter(({ path }) => SCHEMA_PATH.every((step, at) => path[at] === step))
    .map((finding) => ({ ...finding, path: ['patches', ...finding.path.slice(depth)] }));
}
