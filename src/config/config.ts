/** The types of a valid configuration, which follow from its schema. */

import type { JsonObject } from '../base/json.ts';
import type { ParsedConfig } from './schema/schema.ts';
import type { PatchConfig } from './types.ts';

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
type SyncerConfig = Readonly<ParsedConfig['endpointSyncer']>;

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
