/** Converts the parsed file to the types that the rest of the program uses. */

import { type JsonObject, isJsonObject, ownValue } from '../base/json.ts';
import { OWNER_API_VERSIONS } from './schema/owner-kinds.ts';
import type { ParsedConfig } from './schema/schema.ts';
import type { Config, ManagementConfig, NamespaceMode, PatchConfig, SyncConfig } from './types.ts';

/** The patches of each synced kind, as validated. */
export interface PatchesByKind {
  readonly endpoints: readonly PatchConfig[];
  readonly endpointSlices: readonly PatchConfig[];
}

/** `vclusterConfig` is the file merged with vCluster's defaults. */
export function toConfig(parsed: ParsedConfig, patches: PatchesByKind, vclusterConfig: JsonObject): Config {
  const { endpointSyncer: own } = parsed;
  const { kind, name } = own.owner;
  const apiVersion = own.owner.apiVersion === '' ? OWNER_API_VERSIONS.get(kind) : own.owner.apiVersion;
  return {
    sync: syncConfig(parsed, patches, vclusterConfig),
    name: own.name,
    virtual: own.virtual,
    host: own.host,
    owner: kind === '' ? undefined : { apiVersion: apiVersion ?? '', kind, name },
    workers: own.workers,
    vclusterConfigFile: own.vclusterConfig,
    services: own.services,
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
): SyncConfig {
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
