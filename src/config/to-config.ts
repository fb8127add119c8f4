/** Converts the parsed file to the types that the rest of the program uses. */

import { type JsonObject, isJsonObject, ownValue } from '../base/json.ts';
import { OWNER_API_VERSIONS } from './schema/editor-rules.ts';
import type { ParsedConfig } from './schema/schema.ts';
import type {
  Config,
  ManagementConfig,
  NamespaceMode,
  OwnerConfig,
  PatchConfig,
  SyncConfig,
} from './types.ts';

/** The patches of each synced kind, as validated. */
export interface PatchesByKind {
  readonly endpoints: readonly PatchConfig[];
  readonly endpointSlices: readonly PatchConfig[];
}

/** `vclusterConfig` is the file merged with vCluster's defaults. */
export function toConfig(
  parsed: ParsedConfig,
  patches: PatchesByKind,
  vclusterConfig: JsonObject,
  syncedByVcluster: SyncConfig['syncedByVcluster'],
): Config {
  const { endpointSyncer: own } = parsed;
  return {
    sync: { ...syncConfig(parsed, patches, vclusterConfig), syncedByVcluster },
    name: own.name,
    virtual: own.virtual,
    host: own.host,
    owner: ownerConfig(parsed),
    workers: own.workers,
    vclusterConfigFile: own.vclusterConfig,
    services: own.services,
    metadata: own.metadata,
    requireService: own.requireService,
    onHostDelete: own.onHostDelete,
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
    bootstrapKeyFile: api.bootstrapKeyFile,
    host: endpointSyncer.host,
  };
}

function syncConfig(
  { sync, experimental }: ParsedConfig,
  patches: PatchesByKind,
  vclusterConfig: JsonObject,
): Omit<SyncConfig, 'syncedByVcluster'> {
  const merged = memberOf(memberOf(vclusterConfig, 'sync'), 'toHost');
  return {
    endpoints: { enabled: sync.toHost.endpoints.enabled, patches: patches.endpoints },
    endpointSlices: { enabled: sync.toHost.endpointSlices.enabled, patches: patches.endpointSlices },
    servicesEnabled: sync.toHost.services.enabled,
    namespaces: namespaceMode(sync.toHost.namespaces, experimental.multiNamespaceMode.enabled),
    enabledResources: enabledKeys(merged),
    enabledCustomResources: enabledKeys(memberOf(merged, 'customResources')),
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
  return new Set(Object.keys(section).filter((key) => ownValue(memberOf(section, key), 'enabled') === true));
}

function memberOf(object: JsonObject, key: string): JsonObject {
  const value = ownValue(object, key);
  return isJsonObject(value) ? value : {};
}
