/** A valid configuration: its types, which follow from the schema, the checks that it has to pass, what a reload applies of another one, and its hash. */

import { createHash } from 'node:crypto';
import type * as z from 'zod';
import {
  canonicalJson,
  type JsonObject,
  type JsonValue,
  isJsonObject,
  jsonEquals,
  ownValue,
} from '../base/json.ts';
import { type ConfigPath, formatPath } from './finding.ts';
import type { ParsedConfig } from './schema/schema.ts';
import type { NamespaceChecks } from './rules.ts';
import type { patchSchema } from './schema/schema-sync.ts';

/** One entry of `patches`: exactly one mode is set. */
export type PatchConfig = z.output<typeof patchSchema>;

export type ReferenceConfig = NonNullable<PatchConfig['reference']>;

/** A problem of one patch, found by parsing its path or its expressions. */
export interface PatchFieldProblem {
  /** Member of the entry: `path`, `expression`, `reverseExpression`, `reference`, `reference.namePath`, … */
  readonly field: string;
  readonly message: string;
  /** Characters (UTF-16 units) from the start of that member's text, for the caret. */
  readonly offset?: number;
  /** Absent: an error. */
  readonly severity?: 'warning';
}

/** One step of a parsed patch path; `null` is a wildcard, an object a filter. */
export type PathSegment = string | number | null | { readonly filter: string };

/** Checks by modules that the configuration may not import. All are pure and never throw. */
export interface ConfigChecks extends NamespaceChecks {
  /**
   * Path syntax, expression syntax and forbidden words of one entry whose members have the right types. `list`: the key of `sync.toHost`
   * that has the patch, such as `endpoints`; absent for a file of patches alone, which may be for any kind.
   */
  checkPatch(patch: PatchConfig, list?: string): readonly PatchFieldProblem[];
  /** The segments of a path; undefined when it does not parse (`checkPatch` says why). */
  pathSegments(path: string): readonly PathSegment[] | undefined;
  /** Whether this path is the identity of an object, or bookkeeping of the translation: no patch may target it. */
  isProtected(path: readonly string[]): boolean;
}

/**
 * Settings from the command line: dotted path below its section (`name`, `host.namespace`, `workers`, `dataDir`) → the text as typed.
 * They win over the environment and the file.
 */
export type ConfigFlags = Readonly<Record<string, string>>;

/** How virtual namespaces map to host namespaces. */
export type NamespaceMode =
  | { readonly kind: 'single' }
  /** vCluster 0.25 and older: every virtual namespace has its own host namespace. */
  | { readonly kind: 'legacy-multi' }
  | {
      readonly kind: 'mappings';
      readonly byName: Readonly<Record<string, string>>;
      readonly mappingsOnly: boolean;
    };

export interface SyncedKindConfig {
  readonly enabled: boolean;
  readonly patches: readonly PatchConfig[];
}

/** What the engine needs of vCluster's own format, `sync` and `experimental`. */
export interface SyncConfig {
  readonly endpoints: SyncedKindConfig;
  readonly endpointSlices: SyncedKindConfig;
  /** Without patches where vCluster syncs Services: they are vCluster's. */
  readonly services: SyncedKindConfig;
  /** The keys of the kinds that both can sync and that vCluster's own values enable; undefined without these values. */
  readonly syncedByVcluster: readonly string[] | undefined;
  readonly namespaces: NamespaceMode;
  /** Keys of `sync.toHost` whose `enabled` is true, vCluster's names: `secrets`, `configMaps`, … */
  readonly enabledResources: ReadonlySet<string>;
  /** `<plural>.<group>` of enabled custom resources. */
  readonly enabledCustomResources: ReadonlySet<string>;
}

/** `endpointSyncer`, named as in the file. */
type SyncerConfig = Readonly<Omit<ParsedConfig['endpointSyncer'], 'defaults'>> & {
  /** As written, because what it does not set may be set elsewhere. */
  readonly defaults: JsonObject;
};

export type FleetConfig = SyncerConfig['fleet'];

export type LabelSelectorConfig = SyncerConfig['selector'];
export type MetadataConfig = SyncerConfig['metadata'];
/** Fields of a Service with addresses that its author chooses. */
export type AddressField = SyncerConfig['services']['allow'][number];

/** `managementApi`, named as in the file: the key and token API. */
export type ManagementConfig = Readonly<ParsedConfig['managementApi']> & {
  /** The host cluster: for the store `kubernetes`, and for callers with its tokens. */
  readonly host: SyncerConfig['host'];
};

/**
 * The configuration as the rest of the program uses it. Durations are in milliseconds, sizes in bytes. `name` is '' only for commands that do not need
 * it.
 */
export type Config = SyncerConfig & {
  readonly sync: SyncConfig;
  readonly management: ManagementConfig;
  /** vCluster's file merged with its defaults, our own sections removed: `context.vcluster.config`. */
  readonly vclusterValues: JsonObject;
};

// Two configurations.

export interface ConfigDiff {
  /** Paths of vCluster's values and of the {@link LIVE_SETTINGS}: applied without a restart. */
  readonly live: readonly string[];
  /** Any other path: the running daemon keeps the old value. */
  readonly restart: readonly string[];
}

/** What is reloaded below `endpointSyncer`. */
const LIVE_SETTINGS = ['selector', 'namespaces', 'metadata'] as const;

/** The paths, as in the file, at which the two configurations differ; both empty when they are the same. */
export function diffConfig(old: Config, next: Config): ConfigDiff {
  const paths = differences(documentOf(old), documentOf(next), []);
  const isLive = ([section, setting]: ConfigPath): boolean =>
    section === 'endpointSyncer'
      ? LIVE_SETTINGS.some((live) => live === setting)
      : section !== 'managementApi';
  return {
    live: paths.filter(isLive).map(formatPath),
    restart: paths.filter((path) => !isLive(path)).map(formatPath),
  };
}

/** The old configuration with the live changes of `next`: the effective configuration after a reload. */
export function withLiveChanges(old: Config, next: Config): Config {
  const { sync, selector, namespaces, metadata, vclusterValues } = next;
  return { ...old, sync, selector, namespaces, metadata, vclusterValues };
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
  'fleet',
  'defaults',
];

/** Equal for configurations with which a daemon writes the same. */
export function configurationHash(config: Config): string {
  const { endpointSyncer, managementApi: _api, ...vcluster } = documentOf(config);
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

/** The configuration as one file with every field written out, in the units of the program. */
function documentOf({ sync: _sync, management, vclusterValues, ...endpointSyncer }: Config): JsonObject {
  const { host: _host, ...managementApi } = management;
  return { ...vclusterValues, endpointSyncer, managementApi };
}

/** Mappings are compared key by key. A list differs as a whole, because an inserted entry shifts all indexes. */
function differences(a: JsonValue | undefined, b: JsonValue | undefined, path: ConfigPath): ConfigPath[] {
  if (jsonEquals(a, b)) return [];
  if (!isJsonObject(a) || !isJsonObject(b)) return [path];
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].flatMap((key) => differences(ownValue(a, key), ownValue(b, key), [...path, key]));
}
