/** The types of a valid configuration, which follow from its schema, and of the checks that it has to pass. */

import type { JsonObject } from '../base/json.ts';
import type { ParsedConfig } from './schema/schema.ts';

/** One entry of `patches` as validated by the configuration: exactly one mode is set. */
export interface PatchConfig {
  readonly path: string;
  readonly expression?: string;
  readonly reverseExpression?: string;
  readonly reference?: ReferenceConfig;
  readonly labels?: Readonly<Record<string, never>>;
}

export interface ReferenceConfig {
  readonly apiVersion: string;
  readonly kind: string;
  readonly apiVersionPath?: string;
  readonly kindPath?: string;
  readonly namePath?: string;
  readonly namespacePath?: string;
}

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
export interface ConfigChecks {
  /**
   * Path syntax, expression syntax and forbidden words of one entry whose members have the right types. `list`: the key of `sync.toHost`
   * that has the patch, such as `endpoints`; absent for a file of patches alone, which may be for any kind.
   */
  checkPatch(patch: PatchConfig, list?: string): readonly PatchFieldProblem[];
  /** The segments of a path; undefined when it does not parse (`checkPatch` says why). */
  pathSegments(path: string): readonly PathSegment[] | undefined;
  /** Whether this path is the identity of an object, or bookkeeping of the translation: no patch may target it. */
  isProtected(path: readonly string[]): boolean;
  /** Each problem names the mapping by its key. An empty host namespace means that it is not known yet. */
  checkNamespaceMappings(
    byName: Readonly<Record<string, string>>,
    vcluster: string,
    hostNamespace: string,
    /** Namespace of the Secrets of the key and token API; '' for the host namespace. */
    storeNamespace: string,
  ): readonly { readonly key: string; readonly message: string }[];
}

/**
 * Settings from the command line: dotted path below its section (`name`, `host.namespace`, `workers`, `dataDir`) → the text as typed.
 * They win over the environment and the file.
 */
export type ConfigFlags = Readonly<Record<string, string>>;
