/** Patches without the rest of a sync: those of a file of patches alone, and what patches make of any one object. */

import { systemClock } from '../../base/clock.ts';
import type { ConfigProblem } from '../../base/errors.ts';
import { type JsonObject, type JsonValue, ownValue, textAt } from '../../base/json.ts';
import { createLogger } from '../../base/logger.ts';
import { readDocument } from '../../config-file/document.ts';
import { errorAtKey, type ConfigPath, type Finding } from '../../config-file/finding.ts';
import { withoutEmptyKeys } from '../../config-file/merge.ts';
import { checkSections } from '../../config-file/schema-check.ts';
import { syntaxProblems } from '../../config-file/source-file.ts';
import { createSandbox } from '../../expressions/sandbox.ts';
import type { ObjectContext } from '../../expressions/types.ts';
import { asObject, isOfKind, type KubeObject } from '../../kube/object.ts';
import type { Config } from '../config/config.ts';
import { checkPatches, patchesIn } from '../config/patch-rules.ts';
import { syncSections } from '../config/schema.ts';
import { endpointsKind } from '../kinds/endpoints.ts';
import { patchedKinds, SYNCED_KEYS, validationOf, type SyncedKey } from '../kinds/synced-kinds.ts';
import { compilePatches } from '../patch/compile.ts';
import type { PatchConfig } from '../patch/patch-schema.ts';
import { createPatchPipeline } from '../patch/pipeline.ts';
import type { Direction, PatchedObject } from '../patch/types.ts';
import { byNewestVersion } from '../patch/validate-object.ts';
import { OBJECT_NAMESPACE } from '../translate/bookkeeping.ts';
import type { NameTranslator } from '../translate/types.ts';
import { pipelineOptions, sandboxSettings } from '../translation.ts';

// A file of patches: a list, or a mapping with `patches`. The rules of a configuration file apply.

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
  const sync = {
    ...base.sync,
    ...Object.fromEntries(others),
    [key]: { ...base.sync[key], enabled: true, patches },
  };
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

// On one object: without its other half, its Service and the merge.

interface PatchSettings {
  readonly config: Config;
  /** Undefined: those that the configuration has for the kind of the object, and for other kinds those of Endpoints. */
  readonly patches: readonly PatchConfig[] | undefined;
  readonly direction: Direction;
  readonly context: ObjectContext;
  /** The virtual namespace of an object without one. */
  readonly namespace: string | undefined;
}

/** The result is that of all patches: rejects with a `PatchError` of the first that fails. */
export async function patchObject(
  object: JsonObject,
  { config, patches: given, direction, context, namespace = 'default' }: PatchSettings,
): Promise<PatchedObject> {
  const kind = patchedKinds(config).find(({ resource }) => isOfKind(asObject(object), resource))?.key;
  const patches = given ?? config.sync[kind ?? 'endpoints'].patches;
  const compiled = compilePatches(patches, 0, config.patches.missingPaths);
  await using sandbox = await createSandbox({
    ...sandboxSettings(config),
    programs: compiled.programs,
    clock: systemClock,
    logger: await createLogger({ level: 'error', format: 'json' }),
  });
  const options = pipelineOptions(config, endpointsKind, {
    compiled,
    evaluator: sandbox,
    lookup: () => undefined,
  });
  const pipeline = createPatchPipeline({
    ...options,
    // Only the patches run, so Pod references have not been translated before.
    references: { ...options.references, skipPodTargetRefs: false },
    onError: 'object',
    validate: byNewestVersion(validationOf(object, config)),
  });
  const objectNamespace =
    (direction === 'toHost'
      ? namespaceOf(object)
      : virtualNamespace(object, context.virtualObject, options.references.names)) ?? namespace;
  // Awaited here, because the sandbox is closed on return.
  const patched = await pipeline.apply(direction, object, { ...context, objectNamespace });
  const [unresolved] = patched.unresolved;
  if (unresolved !== undefined) throw unresolved.error;
  return patched;
}

/** The virtual namespace of a host object, from its annotations, else from its host namespace. */
function virtualNamespace(
  object: JsonObject,
  virtualObject: JsonObject | null,
  names: NameTranslator,
): string | undefined {
  const recorded = textAt(object, 'metadata', 'annotations', OBJECT_NAMESPACE);
  const host = namespaceOf(object);
  return namespaceOf(virtualObject) ?? (recorded || (host && names.namespaceToVirtual(host)));
}

function namespaceOf(object: JsonObject | null): string | undefined {
  return textAt(object, 'metadata', 'namespace') || undefined;
}
