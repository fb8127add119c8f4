/** The contract of this folder: names, labels and metadata between the two clusters, all pure. */

import type { KubeObject, NamespacedName } from '../kube/object.ts';
import type { JsonObject } from '../lib/json.ts';

/** Names of one virtual cluster on its host, both ways. */
export interface NameTranslator {
  readonly vcluster: string;
  /** The namespace of the virtual cluster on the host. */
  readonly hostNamespace: string;
  /** True when names are kept and only namespaces change for this virtual namespace. */
  keepsName(virtualNamespace: string): boolean;
  /** Where objects of this virtual namespace live on the host; undefined: not mapped. */
  namespaceToHost(virtualNamespace: string): string | undefined;
  /** The virtual namespace of a host namespace that is a multi-namespace target of this virtual cluster, where the rule can tell. */
  namespaceToVirtual(hostNamespace: string): string | undefined;
  /** Could an object in this host namespace be ours at all? */
  isTargetNamespace(hostNamespace: string): boolean;
  /** Endpoints, Services and Pods. Empty name gives an empty name and namespace; undefined: namespace not mapped. */
  toHost(virtual: NamespacedName): NamespacedName | undefined;
  /** What a `reference` patch writes: short (or long, by configuration) name. */
  referenceToHost(virtual: NamespacedName): NamespacedName | undefined;
  /** The name that starts with `v`; where names are kept, the name itself. Undefined: namespace not mapped. */
  shortToHost(virtual: NamespacedName): NamespacedName | undefined;
  /** A cluster-scoped object's host name. */
  clusterScopedToHost(name: string): string;
  /** The virtual name behind a cluster-scoped object's host name; undefined: not ours, or cut. */
  clusterScopedToVirtual(hostName: string): string | undefined;
  /**
   * Every virtual name that the rule could have translated to this host name, checked by translating forward again. Long names that
   * were cut cannot be found, neither can namespaces of the hashed multi-namespace mode.
   */
  toVirtualCandidates(host: NamespacedName): readonly NamespacedName[];
}

/** Label keys of one virtual cluster on its host, both ways. Only a handful of keys change at all. */
export interface LabelTranslator {
  readonly vcluster: string;
  /** A rewritten key stays as it is: each key is translated once. */
  keyToHost(virtualKey: string): string;
  /** A key that was not rewritten stays as it is. */
  keyToVirtual(hostKey: string): string;
  /** A virtual key that is rewritten on the host; found raw on the host, somebody else put it there. */
  isReserved(key: string): boolean;
  /** A key that {@link keyToHost} makes; found on a virtual object, it does not cross. */
  isRewritten(key: string): boolean;
}

/** Which way one member of an object flows; `none`: each side keeps its own. */
export type Flow = 'both' | 'toHost' | 'toVirtual' | 'none';

/** A concrete path in an object: own keys and array indices. */
export type ConcretePath = readonly (string | number)[];

/** What the configured patches say about flow; a patch pipeline is one. */
export interface FlowRules {
  /** How the member at these segments of the host object flows, e.g. `['metadata','annotations','example.com/key']`. */
  flowOf(segments: ConcretePath): Flow;
  /** Concrete paths at or below `subsets` of this host object that flow both ways. */
  twoWayPaths(object: JsonObject): readonly ConcretePath[];
  /** Concrete paths in this object where the host keeps its own value. */
  hostOwnedPaths(object: JsonObject): readonly ConcretePath[];
}

/** A host object as far as ownership is concerned. */
export type Ownership =
  /**
   * Its bookkeeping names this virtual object, this kind and this host object; the marker label is ours or absent. `uid` is the
   * virtual object's as recorded, undefined when somebody removed it.
   */
  | { readonly kind: 'ours'; readonly virtual: NamespacedName; readonly uid: string | undefined }
  /** It has an `object-name` annotation, but not one that makes it ours: a copy of a copy, another virtual cluster's, another kind's. */
  | { readonly kind: 'foreign'; readonly object: KubeObject }
  /** No `object-name` annotation at all. */
  | { readonly kind: 'unmarked'; readonly object: KubeObject };
