/** The configuration as the rest of the program uses it: validated, merged with the defaults, durations in ms, sizes in bytes. */

import type { JsonObject } from '../base/json.ts';

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

export interface ClusterAccess {
  /** Path of a kubeconfig file; '' means in-cluster, then the usual rules. */
  readonly kubeconfig: string;
  readonly context: string;
}

export interface SyncedKindConfig {
  readonly enabled: boolean;
  readonly patches: readonly PatchConfig[];
}

/** The part that a reload applies: everything below `sync` and `experimental`. */
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

export interface SandboxLimits {
  readonly expressionTimeoutMs: number;
  readonly batchTimeoutMs: number;
  /** Resident memory that the child process may use above its baseline. */
  readonly memoryBytes: number;
  /** Size of the cache of expression results; 0 disables it. */
  readonly memoBytes: number;
}

/** Storage of the key and token API. */
export type StoreDriver = 'sqlite' | 'memory' | 'kubernetes';

/** The key and token API. */
export interface ManagementConfig {
  /** Whether `run` serves it; the command `api` always does. */
  readonly enabled: boolean;
  /** `host:port`; port 0 selects a free port. */
  readonly bindAddress: string;
  /** Paths of PEM files, both or none; '' for a self-signed certificate. */
  readonly tls: { readonly certFile: string; readonly keyFile: string };
  readonly dataDir: string;
  /** `namespace`: of the Secrets of the `kubernetes` driver; '' or absent is the host namespace. */
  readonly store: { readonly driver: StoreDriver; readonly namespace?: string };
  /** `https://…`, as tokens name it. */
  readonly issuer: string;
  /** Maximum lifetime of a key; 0: no maximum. */
  readonly maxTtlMs: number;
  readonly tokenTtl: { readonly defaultMs: number; readonly maxMs: number };
  readonly delegatedAuth: boolean;
  /** Size of a file of the audit log, and number of rotated files to keep. */
  readonly auditLog: { readonly fileBytesMax: number; readonly filesKept: number };
  /** '' for none. */
  readonly bootstrapKeyFile: string;
  /** The host cluster: for the store `kubernetes`, and for callers with its tokens. */
  readonly host: ClusterAccess & { readonly namespace: string };
}

export interface ReferencesConfig {
  /** Format of the names that `reference` patches write. */
  readonly naming: 'short' | 'long';
  /** Patterns (`*` matches any text) of names, types and data keys of host Secrets that are not imported, in addition to the built-in ones. */
  readonly refuseSecrets: readonly string[];
  /** Label (`KEY` or `KEY=VALUE`) that a host object needs to be imported; '' for none. */
  readonly onlyLabelled: string;
}

export interface PatchesConfig {
  /** What an expression does for a last key that an existing map does not have: nothing, or create it. */
  readonly missingPaths: 'skip' | 'create';
  /** What a failing patch stops: its object, or its path, where both sides keep what they have. */
  readonly onError: 'object' | 'path';
}

/** Kubernetes' LabelSelector. */
export interface LabelSelectorConfig {
  readonly matchLabels: Readonly<Record<string, string>>;
  readonly matchExpressions: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values: readonly string[];
  }[];
}

/** Names of virtual namespaces, or patterns (`*` matches any text). */
export interface NamespacesConfig {
  /** Empty: all. */
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

/** Keys, or patterns `PREFIX/*` of keys, that are never copied in either direction. */
export interface MetadataConfig {
  readonly excludeAnnotations: readonly string[];
  readonly excludeLabels: readonly string[];
}

export interface OwnerConfig {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  /** True for the default, vCluster's Service: copies have no owner if it does not exist. */
  readonly isOptional: boolean;
}

export interface LeaderElectionConfig {
  readonly enabled: boolean;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
}

/** Fields of a Service with addresses that its author chooses. */
export type AddressField = 'externalIPs' | 'loadBalancerIP';

export interface ServicesConfig {
  /** Which program copies Services to the host. */
  readonly mode: 'vcluster' | 'sync';
  /** The fields that are copied although they take traffic of the host (CVE-2020-8554). */
  readonly allow: readonly AddressField[];
}

export interface Config {
  readonly sync: SyncConfig;
  /** '' only for commands that do not need it. */
  readonly name: string;
  /** `server` replaces the URL of the API server in the kubeconfig; '' keeps it. `adopt`: see `syncer/virtual-identity.ts`. */
  readonly virtual: ClusterAccess & {
    readonly secret: string;
    readonly server: string;
    readonly adopt: boolean;
  };
  readonly host: ClusterAccess & { readonly namespace: string };
  /** Undefined: copies have no owner. */
  readonly owner: OwnerConfig | undefined;
  readonly workers: number;
  /** vCluster's own values file, which this configuration overlays; '' for none. */
  readonly vclusterConfigFile: string;
  readonly services: ServicesConfig;
  readonly metadata: MetadataConfig;
  readonly patches: PatchesConfig;
  readonly requireService: boolean;
  /** Labels of the virtual objects that are synced. */
  readonly selector: LabelSelectorConfig;
  readonly namespaces: NamespacesConfig;
  readonly onHostDelete: 'recreate' | 'deleteVirtual';
  readonly createNamespaces: boolean;
  readonly references: ReferencesConfig;
  readonly sandbox: SandboxLimits;
  readonly leaderElection: LeaderElectionConfig;
  readonly httpBindAddress: string;
  readonly log: {
    readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
    readonly format: 'json' | 'pretty' | 'auto';
  };
  readonly management: ManagementConfig;
  /** vCluster's file merged with its defaults, our own sections removed: `context.vcluster.config`. */
  readonly vclusterConfig: JsonObject;
}

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
