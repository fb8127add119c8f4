/** Parses the text and the overrides into a configuration or the list of all problems. Pure. */

import { resolve } from 'node:path';
import type { ConfigProblem } from '../base/errors.ts';
import {
  withoutConsequences,
  type Finding,
  Fields,
  patchedKinds,
  pathOf,
  syncsServices,
  type ConfigPath,
  errorAtKey,
} from './finding.ts';
import { readLayers, type ConfigText, type VclusterText } from './layers.ts';
import { applyOverrides, overridesOfCommandLine, type CommandLine, type Override } from './overrides.ts';
import { isFleet, refusedFleet } from './fleet-rules.ts';
import { checkPatches, patchesIn } from './patch-rules.ts';
import { checkRules } from './rules.ts';
import { configWarnings, unsyncedServices, syncedByVcluster, vclusterFindings } from './warnings.ts';
import { isOtherFile, vclusterConfigOf, vclusterDefaults, withoutEmptyKeys } from './vcluster-values.ts';
import type { ParsedConfig } from './schema/schema.ts';
import { checkSchema } from './schema/schema-check.ts';
import type { Config, NamespaceMode, SyncConfig, ConfigChecks, PatchConfig } from './config.ts';
import { type JsonObject, type JsonValue, ownValue, valueAt } from '../base/json.ts';
import { readDocument } from './document.ts';
import { syntaxProblems } from './source-file.ts';

export interface ParseOptions extends CommandLine {
  readonly checks: ConfigChecks;
  /** For commands that need no virtual cluster. */
  readonly isNameOptional?: boolean;
  /** The daemon starts with it, so what vCluster syncs too is an error; else a warning. */
  readonly isStart?: boolean;
  /** Weaker than the command line, stronger than the file. */
  readonly overrides?: readonly Override[];
  /** For commands that know fleets; to the others, a configuration is that of one virtual cluster. */
  readonly acceptsFleet?: boolean;
  /** Absent: whether the files that the configuration names exist is not checked. */
  readonly fileExists?: (path: string) => boolean;
}

export interface ParseResult {
  readonly config?: Config;
  /** In the order of the file; problems without a position come first. */
  readonly problems: readonly ConfigProblem[];
  /** The position of a finding by a later check. */
  readonly locate: (finding: Finding) => ConfigProblem;
}

/** Reads one configuration file, on top of vCluster's own values file if there is one. */
export function parseConfig(
  source: ConfigText,
  options: ParseOptions,
  vclusterText?: VclusterText,
): ParseResult {
  const layers = readLayers(
    source,
    [...(options.overrides ?? []), ...overridesOfCommandLine(options)],
    vclusterText,
  );
  if (!layers.isReadable) return { problems: layers.problems, locate: layers.locate };
  const { own, merged, written, vcluster } = layers;
  const defaults = vclusterDefaults();
  const fields = new Fields(merged);
  const ours = syncsServices(fields) ? merged : withoutServicePatches(merged);
  const { config: parsed, findings } = checkSchema(ours, options.isNameOptional === true || isFleet(fields));
  const all = withoutConsequences([
    ...findings,
    ...patchedKinds(fields)
      .map((key) => `sync.toHost.${key}.patches`)
      .flatMap((list) => checkPatches(new Fields(written).value(list), pathOf(list), options.checks)),
    ...checkRules(merged, options.checks),
    ...(options.acceptsFleet === true ? [] : refusedFleet(fields)),
    ...configWarnings({ merged, own }, defaults, options.fileExists),
    ...(vcluster === undefined
      ? unsyncedServices(own)
      : isOtherFile(vcluster, defaults)
        ? []
        : vclusterFindings(merged, vcluster, options.isStart ?? false)),
  ]);
  const problems = inFileOrder(
    [...layers.problems, ...all.map((finding) => layers.locate(finding))],
    source.file,
  );
  if (parsed === undefined || problems.some((problem) => problem.severity === 'error'))
    return { problems, locate: layers.locate };
  const { endpointSyncer, managementApi } = parsed;
  const isDataDirSet = fields.text('managementApi.dataDir') !== '';
  const vclusterValues = vclusterConfigOf(merged, defaults);
  const config: Config = {
    ...endpointSyncer,
    defaults: fields.object('endpointSyncer.defaults'),
    management: {
      ...managementApi,
      // The default is a path of the file, as if the file contained it.
      ...(!isDataDirSet &&
        source.folder !== undefined && { dataDir: resolve(source.folder, managementApi.dataDir) }),
      host: endpointSyncer.host,
    },
    sync: {
      ...syncConfig(parsed, vclusterValues),
      syncedByVcluster: vcluster && syncedByVcluster(vcluster),
    },
    vclusterValues,
  };
  return { config, problems, locate: layers.locate };
}

/** Patches of Services are vCluster's, in whatever form, where it syncs them. */
function withoutServicePatches(merged: JsonObject): JsonObject {
  const path = ['sync', 'toHost', 'services', 'patches'];
  return valueAt(merged, path) === undefined
    ? merged
    : applyOverrides(merged, [{ path, value: undefined, origin: '' }]);
}

/** Problems without a position first, then the configuration file, then vCluster's. */
export function inFileOrder(problems: readonly ConfigProblem[], ownFile: string): ConfigProblem[] {
  const rank = ({ file, line }: ConfigProblem): number => (line === 0 ? 0 : file === ownFile ? 1 : 2);
  return problems.toSorted((a, b) => rank(a) - rank(b) || a.line - b.line || a.column - b.column);
}

function syncConfig(
  { sync, experimental }: ParsedConfig,
  vclusterValues: JsonObject,
): Omit<SyncConfig, 'syncedByVcluster'> {
  const { endpoints, endpointSlices, services, namespaces } = sync.toHost;
  const values = new Fields(vclusterValues);
  return {
    endpoints,
    endpointSlices,
    services: { enabled: services.enabled, patches: services.patches },
    namespaces: namespaceMode(namespaces, experimental.multiNamespaceMode.enabled),
    enabledResources: enabledKeys(values.object('sync.toHost')),
    enabledCustomResources: enabledKeys(values.object('sync.toHost.customResources')),
  };
}

function namespaceMode(
  namespaces: ParsedConfig['sync']['toHost']['namespaces'],
  isLegacyMulti: boolean,
): NamespaceMode {
  if (isLegacyMulti) return { kind: 'legacy-multi' };
  if (!namespaces.enabled) return { kind: 'single' };
  return { kind: 'mappings', byName: namespaces.mappings.byName, mappingsOnly: namespaces.mappingsOnly };
}

function enabledKeys(section: JsonObject): ReadonlySet<string> {
  return new Set(Object.keys(section).filter((key) => valueAt(section, [key, 'enabled']) === true));
}

// A file of patches alone: a list, or a mapping with `patches`. The rules of a configuration file apply.

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
  const document = readDocument(source.file, source.text, { listKey: 'patches' });
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
