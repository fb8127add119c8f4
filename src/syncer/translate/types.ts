/** The contract of this folder: names, labels and metadata between the two clusters, all pure. */

import type { GroupVersionKind, KubeObject, NamespacedName } from '../../kube/object.ts';
import type { JsonObject } from '../../base/json.ts';

export type ReferenceKind = Pick<GroupVersionKind, 'group' | 'kind'>;

export interface NameTranslator {
  readonly vcluster: string;
  readonly hostNamespace: string;
  /** True when names are kept and only namespaces change for this virtual namespace. */
  keepsName(virtualNamespace: string): boolean;
  /** Where objects of this virtual namespace live on the host; undefined: not mapped. */
  namespaceToHost(virtualNamespace: string): string | undefined;
  /** The virtual namespace of a host namespace that is a multi-namespace target of this virtual cluster, where the rule can tell. */
  namespaceToVirtual(hostNamespace: string): string | undefined;
  isTargetNamespace(hostNamespace: string): boolean;
  /** Endpoints, Services and Pods. Empty name gives an empty name and namespace; undefined: namespace not mapped. */
  toHost(virtual: NamespacedName): NamespacedName | undefined;
  /** The copy of a Pod; undefined: it has none, because its namespace is not mapped or no syncer copies Pods. */
  podToHost(virtual: NamespacedName): NamespacedName | undefined;
  /** What a `reference` patch writes; always the long name of kinds that another syncer copies. `default/kubernetes` is vCluster's own Service. */
  referenceToHost(virtual: NamespacedName, kind: ReferenceKind): NamespacedName | undefined;
  /** The name that starts with `v`; where names are kept, the name itself. Undefined: namespace not mapped. */
  shortToHost(virtual: NamespacedName): NamespacedName | undefined;
  clusterScopedToHost(name: string): string;
  /** The virtual name behind a cluster-scoped object's host name; undefined: not ours, or cut. */
  clusterScopedToVirtual(hostName: string): string | undefined;
  /** Every virtual name that translates to this host name, but for long names that were cut, and namespaces of the hashed multi-namespace mode. */
  toVirtualCandidates(host: NamespacedName): readonly NamespacedName[];
}

export interface LabelTranslator {
  readonly vcluster: string;
  /** A rewritten key stays as it is: each key is translated once. */
  readonly keyToHost: (virtualKey: string) => string;
  /** A key that was not rewritten stays as it is. */
  readonly keyToVirtual: (hostKey: string) => string;
  /** A virtual key that never reaches the host as it is: it is rewritten, or a label of this program. Raw on the host it is another client's. */
  isReserved(key: string): boolean;
  /** This key of the virtual object is never copied in either direction, by configuration. */
  isExcluded(member: 'annotations' | 'labels', virtualKey: string): boolean;
  /** A key that {@link keyToHost} makes; found on a virtual object, it does not cross. */
  isRewritten(key: string): boolean;
}

/** Which way one member of an object flows; `none`: each side keeps its own. */
export type Flow = 'both' | 'toHost' | 'toVirtual' | 'none';

/** Of a label or annotation that does not cross like any other. `never`: each side keeps its own, and what an earlier version copied to the host is
 * removed there; a patch may still set it on the host. `toHost`: it follows the virtual side and never flows back. */
export type Crossing = 'never' | 'toHost';

/** A concrete path in an object: own keys and array indices. */
export type ConcretePath = readonly (string | number)[];

/** What the configured patches say about flow; a patch pipeline is one. */
export interface FlowRules {
  /** How the member at these segments of the host object flows, e.g. `['metadata','annotations','example.com/key']`. */
  flowOf(segments: ConcretePath): Flow;
  /** The version of the patches that reach this member on its way to the host; undefined: none does. What is made with `UNPROVABLE` also
   * depends on what no record holds. */
  rulesOf(segments: ConcretePath): string | undefined;
  /** Concrete paths at or below the members of the kind's content in this host object that flow both ways. */
  twoWayPaths(object: JsonObject): readonly ConcretePath[];
  /** Concrete paths in this object where the host keeps its own value. */
  hostOwnedPaths(object: JsonObject): readonly ConcretePath[];
}

/** Where a patch has failed: both sides keep what they have. */
export interface KeptPaths {
  /** The member at this path of the host object, or one above it. */
  covers(path: ConcretePath): boolean;
  locate(object: JsonObject): readonly ConcretePath[];
}

/** How the members besides metadata of one kind cross, and how they are compared. */
export interface ContentRules {
  /** Where two-way paths may lie, and what flows back. All other members follow the virtual object. */
  readonly members: readonly string[];
  /** Members that each API server keeps for itself, such as `status`: they do not cross. */
  readonly ownMembers: readonly string[];
  /** Members of the host copy that differ from those of the virtual object. `host`: the copy as it is. */
  toHost(virtual: KubeObject, place: HostPlace): JsonObject;
  /** Members of the copy that a patch has made inconsistent, such as fields that do not go with a new type. `host`: the copy as it is. */
  readonly afterPatches?: (copy: KubeObject, virtual: KubeObject, host: KubeObject | undefined) => JsonObject;
  toVirtual(host: KubeObject, place: VirtualPlace): JsonObject;
  /** Labels of the host copy that only the translation sets; they never flow back, and drift is corrected. */
  ownLabels(virtual: KubeObject, names: NameTranslator): Readonly<Record<string, string>>;
  isOwnLabel(key: string): boolean;
  /** What labels of the host copy that only the translation sets were on a virtual object of this namespace, as far as the names tell. */
  ownLabelsToVirtual(
    host: KubeObject,
    namespace: string,
    names: NameTranslator,
  ): Readonly<Record<string, string>>;
  /** Absent: all other labels and annotations cross alike. */
  readonly crossingOf?: (member: 'annotations' | 'labels', key: string) => Crossing | undefined;
  /** Paths in this copy that a program of the host may fill, too: a value there goes with that of the virtual side only if the record says that this
   * program wrote it. Absent: none. */
  readonly claimedPaths?: (copy: JsonObject) => readonly ConcretePath[];
  stored(object: JsonObject): JsonObject;
  /** Lists of the same length, so that a path leads to the same element in both. */
  haveSameShape(a: JsonObject, b: JsonObject): boolean;
  /** Where the path leads into an element of a list that may move; undefined: it does not. */
  elementAt(path: ConcretePath): ListElement | undefined;
}

export interface HostPlace {
  readonly names: NameTranslator;
  readonly host: KubeObject | undefined;
}

export interface VirtualPlace {
  readonly names: NameTranslator;
  readonly namespace: string;
  readonly original: KubeObject | undefined;
}

export interface ListElement {
  /** Index of the path's segment that is the place in the list. */
  readonly at: number;
  /** The member of the element that tells it from others. */
  readonly idMember: string;
}

export type Ownership =
  /** Its bookkeeping names this virtual object, this kind and this host object; the marker label is ours or absent. `uid`: as recorded, if it is. */
  | { readonly kind: 'ours'; readonly virtual: NamespacedName; readonly uid: string | undefined }
  /** It has an `object-name` annotation, but not one that makes it ours: a copy of a copy, another virtual cluster's, another kind's. */
  | { readonly kind: 'foreign'; readonly object: KubeObject }
  | { readonly kind: 'unmarked'; readonly object: KubeObject };

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
