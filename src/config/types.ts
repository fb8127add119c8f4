/** The configuration as the rest of the program sees it: validated, merged with the defaults, durations in ms, sizes in bytes. */

import type { JsonObject } from '../lib/json.ts';

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

/** Which naming rule is in force. */
export type NamespaceMode =
  | { readonly kind: 'single' }
  /** vCluster 0.25 and older: every virtual namespace has a host namespace of its own. */
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

/** What may be reloaded while the daemon runs: everything below `sync` and `experimental`. */
export interface SyncConfig {
  readonly endpoints: { readonly enabled: boolean; readonly patches: readonly PatchConfig[] };
  readonly servicesEnabled: boolean;
  readonly namespaces: NamespaceMode;
  /** Keys of `sync.toHost` whose `enabled` is true, vCluster's names: `secrets`, `configMaps`, … */
  readonly enabledResources: ReadonlySet<string>;
  /** `<plural>.<group>` of enabled custom resources. */
  readonly enabledCustomResources: ReadonlySet<string>;
}

export interface SandboxLimits {
  readonly expressionTimeoutMs: number;
  readonly batchTimeoutMs: number;
  /** Resident memory the child may take above its own baseline. */
  readonly memoryBytes: number;
  /** Budget of remembered results; 0 switches remembering off. */
  readonly memoBytes: number;
}

/** Where the key and token API keeps its objects. */
export type StoreDriver = 'sqlite' | 'memory' | 'kubernetes';

/** The key and token API. */
export interface ManagementConfig {
  /** Served by the daemon beside the sync; the `api` command serves it whatever this says. */
  readonly enabled: boolean;
  /** `host:port`; port 0 takes a free one. */
  readonly bindAddress: string;
  /** Paths of PEM files, both or none; '' for a certificate of its own making. */
  readonly tls: { readonly certFile: string; readonly keyFile: string };
  readonly dataDir: string;
  readonly store: { readonly driver: StoreDriver };
  /** `https://…`, as tokens name it. */
  readonly issuer: string;
  /** Longest life of a key; 0: no maximum. */
  readonly maxTtlMs: number;
  readonly tokenTtl: { readonly defaultMs: number; readonly maxMs: number };
  readonly delegatedAuth: boolean;
  /** '' for none. */
  readonly bootstrapKeyFile: string;
  /** The host cluster: for the store `kubernetes`, and for callers with its tokens. */
  readonly host: ClusterAccess & { readonly namespace: string };
}

export interface Config {
  readonly sync: SyncConfig;
  /** '' only where the loader was told that nobody needs it. */
  readonly name: string;
  readonly virtual: ClusterAccess & { readonly secret: string };
  readonly host: ClusterAccess & { readonly namespace: string };
  /** Undefined: nothing owns what is made. */
  readonly owner: { readonly apiVersion: string; readonly kind: string; readonly name: string } | undefined;
  readonly workers: number;
  readonly requireService: boolean;
  readonly onHostDelete: 'recreate' | 'deleteVirtual';
  readonly createNamespaces: boolean;
  readonly referenceNaming: 'short' | 'long';
  readonly sandbox: SandboxLimits;
  readonly httpBindAddress: string;
  readonly log: {
    readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
    readonly format: 'json' | 'pretty' | 'auto';
  };
  readonly management: ManagementConfig;
  /** vCluster's file merged with its defaults, our own sections removed: `context.vcluster.config`. */
  readonly vclusterConfig: JsonObject;
}

/** One thing wrong with one patch, found by reading its path or its expressions. */
export interface PatchFieldProblem {
  /** Member of the entry: `path`, `expression`, `reverseExpression`, `reference`, `reference.namePath`, … */
  readonly field: string;
  readonly message: string;
  /** Characters (UTF-16 units) from the start of that member's text, for the caret. */
  readonly offset?: number;
}

/** One step of a parsed patch path; `null` is a wildcard. */
export type PathSegment = string | number | null;

/** What the configuration asks of rooms that it may not import. All are pure and never throw. */
export interface ConfigChecks {
  /** Path syntax, expression syntax and forbidden words of one entry whose members have the right types. */
  checkPatch(patch: PatchConfig): readonly PatchFieldProblem[];
  /** The segments of a path; undefined when it does not parse (`checkPatch` says why). */
  pathSegments(path: string): readonly PathSegment[] | undefined;
  /** Is this annotation or label on a host copy kept by the translation itself, so that no patch may aim at it? */
  isBookkeepingKey(map: 'annotations' | 'labels', key: string): boolean;
  /** Each problem names the mapping by its key. An empty host namespace is not known yet. */
  checkNamespaceMappings(
    byName: Readonly<Record<string, string>>,
    vcluster: string,
    hostNamespace: string,
  ): readonly { readonly key: string; readonly message: string }[];
}

/**
 * Settings from the command line: dotted path below its section (`name`, `host.namespace`, `workers`, `dataDir`) → the text as typed.
 * They win over the environment and the file.
 */
export type ConfigFlags = Readonly<Record<string, string>>;
