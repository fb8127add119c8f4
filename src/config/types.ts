/** Patches, and the checks that a configuration has to pass. */

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
