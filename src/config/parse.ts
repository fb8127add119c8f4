/** Parses the text and the overrides into a configuration or the list of all problems. Pure. */

import { resolve } from 'node:path';
import type { ConfigProblem } from '../base/errors.ts';
import { withoutConsequences, type Finding } from './finding.ts';
import { PATCHED_KEYS, readLayers, type ConfigText, type VclusterText } from './layers.ts';
import { applyOverrides } from './flags.ts';
import { overridesOfCommandLine, type CommandLine } from './set.ts';
import { checkPatches, patchesIn } from './patch-rules.ts';
import { checkRules } from './rules.ts';
import { configWarnings, unsyncedServices, syncedByVcluster, vclusterFindings } from './warnings.ts';
import { vclusterConfigOf, vclusterDefaults } from './schema/defaults.ts';
import { Fields, pathOf, syncsServices } from './schema/fields.ts';
import type { ParsedConfig } from './schema/schema.ts';
import { checkSchema } from './schema/schema-check.ts';
import type {
  Config,
  ConfigChecks,
  SyncedKindConfig,
  ManagementConfig,
  NamespaceMode,
  OwnerConfig,
  SyncConfig,
} from './types.ts';
import { type JsonObject, valueAt } from '../base/json.ts';
import { OWNER_API_VERSIONS } from './schema/editor-rules.ts';

interface ParseOptions extends CommandLine {
  readonly checks: ConfigChecks;
  /** For commands that need no virtual cluster. */
  readonly isNameOptional?: boolean;
  /** The daemon starts with it, so what vCluster syncs too is an error; else a warning. */
  readonly isStart?: boolean;
  /** Absent: whether the files that the configuration names exist is not checked. */
  readonly fileExists?: (path: string) => boolean;
}

export interface ParseResult {
  /** Undefined when any problem is an error. */
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
  const layers = readLayers(source, overridesOfCommandLine(options), vclusterText);
  if (!layers.isReadable) return { problems: layers.problems, locate: layers.locate };
  const { own, merged, written, vcluster } = layers;
  const defaults = vclusterDefaults();
  const fields = new Fields(merged);
  const isSyncingServices = syncsServices(fields);
  const patchedKeys = [...PATCHED_KEYS, ...(isSyncingServices ? ['services'] : [])];
  const ours = isSyncingServices ? merged : withoutServicePatches(merged);
  const { config: parsed, findings } = checkSchema(ours, options.isNameOptional);
  const all = withoutConsequences([
    ...findings,
    ...patchedKeys
      .map((key) => `sync.toHost.${key}.patches`)
      .flatMap((list) => checkPatches(new Fields(written).value(list), pathOf(list), options.checks)),
    ...checkRules(merged, options.checks),
    ...configWarnings({ merged, own }, defaults, options.fileExists),
    ...(vcluster === undefined
      ? unsyncedServices(own)
      : vclusterFindings(merged, vcluster, options.isStart ?? false)),
  ]);
  const problems = inFileOrder(
    [...layers.problems, ...all.map((finding) => layers.locate(finding))],
    source.file,
  );
  if (parsed === undefined || problems.some((problem) => problem.severity === 'error'))
    return { problems, locate: layers.locate };
  const isDataDirSet = fields.text('managementApi.dataDir') !== '';
  const resolved = isDataDirSet ? parsed : withDataDirBeside(parsed, source.folder);
  return {
    config: toConfig(
      resolved,
      fields,
      vclusterConfigOf(merged, defaults),
      vcluster && syncedByVcluster(vcluster),
    ),
    problems,
    locate: layers.locate,
  };
}

/** Patches of Services are vCluster's, in whatever form, where it syncs them. */
function withoutServicePatches(merged: JsonObject): JsonObject {
  const path = ['sync', 'toHost', 'services', 'patches'];
  return valueAt(merged, path) === undefined
    ? merged
    : applyOverrides(merged, [{ path, value: undefined, origin: '' }]);
}

/** The default is a path of the file, as if the file contained it. */
function withDataDirBeside(parsed: ParsedConfig, folder: string | undefined): ParsedConfig {
  if (folder === undefined) return parsed;
  const { managementApi } = parsed;
  return { ...parsed, managementApi: { ...managementApi, dataDir: resolve(folder, managementApi.dataDir) } };
}

/** Problems without a position first, then the configuration file, then vCluster's. */
export function inFileOrder(problems: readonly ConfigProblem[], ownFile: string): ConfigProblem[] {
  const rank = ({ file, line }: ConfigProblem): number => (line === 0 ? 0 : file === ownFile ? 1 : 2);
  return problems.toSorted((a, b) => rank(a) - rank(b) || a.line - b.line || a.column - b.column);
}

// Converts the parsed file to the types that the rest of the program uses.

/** `fields` has the patches as written; `vclusterConfig` is the file merged with vCluster's defaults. */
function toConfig(
  parsed: ParsedConfig,
  fields: Fields,
  vclusterConfig: JsonObject,
  syncedByVcluster: SyncConfig['syncedByVcluster'],
): Config {
  const { endpointSyncer: own } = parsed;
  return {
    sync: { ...syncConfig(parsed, fields, vclusterConfig), syncedByVcluster },
    name: own.name,
    virtual: own.virtual,
    host: own.host,
    owner: ownerConfig(parsed),
    workers: own.workers,
    vclusterConfigFile: own.vclusterConfig,
    services: own.services,
    metadata: own.metadata,
    requireService: own.requireService,
    selector: own.selector,
    namespaces: own.namespaces,
    onHostDelete: own.onHostDelete,
    patches: own.patches,
    createNamespaces: own.createNamespaces,
    references: own.references,
    sandbox: {
      expressionTimeoutMs: own.sandbox.expressionTimeout,
      batchTimeoutMs: own.sandbox.batchTimeout,
      memoryBytes: own.sandbox.memory,
      memoBytes: own.sandbox.memoBytes,
    },
    leaderElection: {
      enabled: own.leaderElection.enabled,
      leaseDurationMs: own.leaderElection.leaseDuration,
      renewDeadlineMs: own.leaderElection.renewDeadline,
      retryPeriodMs: own.leaderElection.retryPeriod,
    },
    httpBindAddress: own.http.bindAddress,
    log: own.log,
    management: managementConfig(parsed),
    vclusterConfig,
  };
}

/** By default vCluster's Service, which is the owner of vCluster's own copies. */
function ownerConfig({ endpointSyncer }: ParsedConfig): OwnerConfig | undefined {
  const { apiVersion, kind, name } = endpointSyncer.owner;
  const isOptional = name === '';
  if (kind === '') return undefined;
  return {
    apiVersion: apiVersion === '' ? (OWNER_API_VERSIONS.get(kind) ?? '') : apiVersion,
    kind,
    name: isOptional ? endpointSyncer.name : name,
    isOptional,
  };
}

function managementConfig({ managementApi: api, endpointSyncer }: ParsedConfig): ManagementConfig {
  return {
    enabled: api.enabled,
    bindAddress: api.bindAddress,
    tls: api.tls,
    dataDir: api.dataDir,
    store: api.store,
    issuer: api.issuer === '' ? `https://${api.bindAddress}` : api.issuer,
    maxTtlMs: api.maxTtl,
    tokenTtl: { defaultMs: api.tokenTtl.default, maxMs: api.tokenTtl.max },
    delegatedAuth: api.delegatedAuth,
    auditLog: { fileBytesMax: api.auditLog.maxSize, filesKept: api.auditLog.maxFiles },
    bootstrapKeyFile: api.bootstrapKeyFile,
    host: endpointSyncer.host,
  };
}

function syncConfig(
  { sync, experimental, endpointSyncer }: ParsedConfig,
  fields: Fields,
  vclusterConfig: JsonObject,
): Omit<SyncConfig, 'syncedByVcluster'> {
  const patchesAt = (key: string) => patchesIn(fields.value(`sync.toHost.${key}.patches`));
  const patched = (key: (typeof PATCHED_KEYS)[number]): SyncedKindConfig => ({
    enabled: sync.toHost[key].enabled,
    patches: patchesAt(key),
  });
  const merged = new Fields(vclusterConfig);
  return {
    endpoints: patched('endpoints'),
    endpointSlices: patched('endpointSlices'),
    services: {
      enabled: sync.toHost.services.enabled,
      patches: endpointSyncer.services.mode === 'sync' ? patchesAt('services') : [],
    },
    namespaces: namespaceMode(sync.toHost.namespaces, experimental.multiNamespaceMode.enabled),
    enabledResources: enabledKeys(merged.object('sync.toHost')),
    enabledCustomResources: enabledKeys(merged.object('sync.toHost.customResources')),
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
