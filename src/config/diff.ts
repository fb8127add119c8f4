/** Compares two configurations: which changes a reload applies, and which need a restart. */

import { createHash } from 'node:crypto';
import {
  canonicalJson,
  type JsonObject,
  type JsonValue,
  isJsonObject,
  jsonEquals,
  ownValue,
  setOwn,
} from '../base/json.ts';
import { formatBytes, formatDuration } from './units.ts';
import { type ConfigPath, formatPath } from './finding.ts';
import type { Config, ManagementConfig } from './types.ts';

export interface ConfigDiff {
  /** Paths below `sync`, `experimental` and the {@link LIVE_SETTINGS}: applied without a restart. */
  readonly live: readonly string[];
  /** Any other path: the running daemon keeps the old value. */
  readonly restart: readonly string[];
}

/** The sections of vCluster's format that are reloaded. */
const LIVE_SECTIONS: ReadonlySet<string> = new Set(['sync', 'experimental']);
/** What is reloaded below `endpointSyncer`. */
const LIVE_SETTINGS = ['selector', 'namespaces', 'metadata'] as const;

/** The paths, as in the file, at which the two configurations differ; both empty when they are the same. */
export function diffConfig(old: Config, next: Config): ConfigDiff {
  const paths = differences(effective(old), effective(next), []);
  const isLive = ([section, setting]: ConfigPath): boolean =>
    LIVE_SECTIONS.has(String(section)) ||
    (section === 'endpointSyncer' && LIVE_SETTINGS.some((live) => live === setting));
  return {
    live: paths.filter(isLive).map(formatPath),
    restart: paths.filter((path) => !isLive(path)).map(formatPath),
  };
}

/** The old configuration with the live changes of `next`: the effective configuration after a reload. */
export function withLiveChanges(old: Config, next: Config): Config {
  const vclusterConfig: JsonObject = {};
  for (const key of new Set([...Object.keys(old.vclusterConfig), ...LIVE_SECTIONS])) {
    const value = ownValue((LIVE_SECTIONS.has(key) ? next : old).vclusterConfig, key);
    if (value !== undefined) setOwn(vclusterConfig, key, value);
  }
  const { sync, selector, namespaces, metadata } = next;
  return { ...old, sync, selector, namespaces, metadata, vclusterConfig };
}

/** Settings that do not decide what is written, or that differ between a Pod and the machine of a user. */
const LOCAL_SETTINGS = [
  'virtual',
  'host',
  'workers',
  'vclusterConfig',
  'besideVcluster',
  'sandbox',
  'leaderElection',
  'http',
  'log',
];

/** Equal for configurations with which a daemon writes the same. */
export function configurationHash(config: Config): string {
  const { endpointSyncer, managementApi: _api, ...vcluster } = effective(config);
  const syncer = Object.entries(isJsonObject(endpointSyncer) ? endpointSyncer : {});
  const shared = syncer.filter(([key]) => !LOCAL_SETTINGS.includes(key));
  const text = canonicalJson({
    ...vcluster,
    endpointSyncer: Object.fromEntries(shared),
    hostNamespace: config.host.namespace,
  });
  return createHash('sha256').update(text).digest('base64url').slice(0, HASH_LENGTH);
}

const HASH_LENGTH = 16;

/** The configuration as one file with every field written out. */
function effective(config: Config): JsonObject {
  const { sandbox, owner, leaderElection } = config;
  return {
    ...config.vclusterConfig,
    endpointSyncer: {
      name: config.name,
      virtual: { ...config.virtual },
      host: { ...config.host },
      owner: {
        apiVersion: owner?.apiVersion ?? '',
        kind: owner?.kind ?? '',
        name: owner === undefined || owner.isOptional ? '' : owner.name,
      },
      workers: config.workers,
      vclusterConfig: config.vclusterConfigFile,
      services: { mode: config.services.mode, allow: [...config.services.allow] },
      metadata: {
        excludeAnnotations: [...config.metadata.excludeAnnotations],
        excludeLabels: [...config.metadata.excludeLabels],
      },
      patches: { ...config.patches },
      requireService: config.requireService,
      selector: {
        matchLabels: { ...config.selector.matchLabels },
        matchExpressions: config.selector.matchExpressions.map((one) => ({
          ...one,
          values: [...one.values],
        })),
      },
      namespaces: { include: [...config.namespaces.include], exclude: [...config.namespaces.exclude] },
      onHostDelete: config.onHostDelete,
      createNamespaces: config.createNamespaces,
      references: { ...config.references, refuseSecrets: [...config.references.refuseSecrets] },
      sandbox: {
        expressionTimeout: formatDuration(sandbox.expressionTimeoutMs),
        batchTimeout: formatDuration(sandbox.batchTimeoutMs),
        memory: formatBytes(sandbox.memoryBytes),
        memoBytes: formatBytes(sandbox.memoBytes),
      },
      leaderElection: {
        enabled: leaderElection.enabled,
        leaseDuration: formatDuration(leaderElection.leaseDurationMs),
        renewDeadline: formatDuration(leaderElection.renewDeadlineMs),
        retryPeriod: formatDuration(leaderElection.retryPeriodMs),
      },
      http: { bindAddress: config.httpBindAddress },
      log: { ...config.log },
    },
    managementApi: effectiveManagement(config.management),
  };
}

function effectiveManagement({ host: _host, ...config }: ManagementConfig): JsonObject {
  return {
    enabled: config.enabled,
    bindAddress: config.bindAddress,
    tls: { ...config.tls },
    dataDir: config.dataDir,
    store: { driver: config.store.driver, namespace: config.store.namespace ?? '' },
    issuer: config.issuer,
    maxTtl: formatDuration(config.maxTtlMs),
    tokenTtl: {
      default: formatDuration(config.tokenTtl.defaultMs),
      max: formatDuration(config.tokenTtl.maxMs),
    },
    delegatedAuth: config.delegatedAuth,
    auditLog: { maxSize: formatBytes(config.auditLog.fileBytesMax), maxFiles: config.auditLog.filesKept },
    bootstrapKeyFile: config.bootstrapKeyFile,
  };
}

/** Mappings are compared key by key. A list differs as a whole, because an inserted entry shifts all indexes. */
function differences(a: JsonValue | undefined, b: JsonValue | undefined, path: ConfigPath): ConfigPath[] {
  if (jsonEquals(a, b)) return [];
  if (!isJsonObject(a) || !isJsonObject(b)) return [path];
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].flatMap((key) => differences(ownValue(a, key), ownValue(b, key), [...path, key]));
}
