/** A valid configuration of the sync: its types, which follow from the schema, what a reload applies of another one, and its hash. */

import { createHash } from 'node:crypto';
import type * as z from 'zod';
import {
  canonicalJson,
  type JsonObject,
  type JsonValue,
  isJsonObject,
  jsonEquals,
  ownValue,
} from '../../base/json.ts';
import { type ConfigPath, formatPath } from '../../config-file/finding.ts';
import type { KindSettings } from '../kinds/kind.ts';
import type { SyncedKey } from '../kinds/synced-kinds.ts';
import type { NamespaceMode } from '../translate/types.ts';
import type { syncerSchema } from './schema-syncer.ts';

/** What the engine needs of vCluster's own format, `sync` and `experimental`. */
export interface SyncConfig extends Readonly<Record<SyncedKey, KindSettings>> {
  /** The keys of the kinds that both can sync, and that vCluster's own values enable; undefined without these values. */
  readonly syncedByVcluster: readonly string[] | undefined;
  readonly namespaces: NamespaceMode;
  /** Keys of `sync.toHost` whose `enabled` is true, vCluster's names: `secrets`, `configMaps`, … */
  readonly enabledResources: ReadonlySet<string>;
  /** `<plural>.<group>` of enabled custom resources. */
  readonly enabledCustomResources: ReadonlySet<string>;
}

/** `endpointSyncer`, named as in the file. */
type SyncerConfig = Readonly<Omit<z.output<typeof syncerSchema>, 'defaults'>> & {
  /** As written, because what it does not set may be set elsewhere. */
  readonly defaults: JsonObject;
};

export type FleetConfig = SyncerConfig['fleet'];

/** What the process serves beside the sync, as far as the sync has to know it: the file is one, and the process as well. */
export interface CompanionConfig {
  readonly isServed: boolean;
  /** On the host, checked at the start. Without a namespace: in the host namespace; '' stands for all. */
  readonly rights: readonly {
    readonly group: string;
    readonly resource: string;
    readonly verb: string;
    readonly namespace?: string;
  }[];
  /** Its sections of the file: a change of them needs a restart. */
  readonly sections: JsonObject;
}

export const NO_COMPANION: CompanionConfig = { isServed: false, rights: [], sections: {} };

/**
 * The configuration as the rest of the program uses it. Durations are in milliseconds, sizes in bytes. `name` is '' only for commands that do not need
 * it.
 */
export type Config = SyncerConfig & {
  readonly sync: SyncConfig;
  readonly companion: CompanionConfig;
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
  const isLive = ([section = '', setting]: ConfigPath): boolean =>
    section === 'endpointSyncer'
      ? LIVE_SETTINGS.some((live) => live === setting)
      : !Object.hasOwn(next.companion.sections, section);
  return {
    live: paths.filter(isLive).map(formatPath),
    restart: paths.filter((path) => !isLive(path)).map(formatPath),
  };
}

/** The old configuration with the live changes of `next`: the effective configuration after a reload. */
export function withLiveChanges(old: Config, next: Config): Config {
  const settings = Object.fromEntries(LIVE_SETTINGS.map((setting) => [setting, next[setting]]));
  const { sync, vclusterValues } = next;
  return { ...old, ...settings, sync, vclusterValues };
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
  const { endpointSyncer, ...vcluster } = documentOf({ ...config, companion: NO_COMPANION });
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
function documentOf({ sync: _sync, companion, vclusterValues, ...endpointSyncer }: Config): JsonObject {
  return { ...vclusterValues, endpointSyncer, ...companion.sections };
}

/** Mappings are compared key by key. A list differs as a whole, because an inserted entry shifts all indexes. */
function differences(a: JsonValue | undefined, b: JsonValue | undefined, path: ConfigPath): ConfigPath[] {
  if (jsonEquals(a, b)) return [];
  if (!isJsonObject(a) || !isJsonObject(b)) return [path];
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].flatMap((key) => differences(ownValue(a, key), ownValue(b, key), [...path, key]));
}
