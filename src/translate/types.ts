/** The contract of this folder: names, labels and metadata between the two clusters, all pure. */

import type { KubeObject, NamespacedName } from '../kube/object.ts';

/** A virtual namespace that no mapping covers while `mappingsOnly` is set. */
export interface NotMapped {
  readonly notMapped: string;
}

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
  /** A cluster-scoped object's host name. */
  clusterScopedToHost(name: string): string;
  /** Every virtual name that the rule could have translated to this host name, checked by translating forward again. Long names that were cut cannot be found. */
  toVirtualCandidates(host: NamespacedName): readonly NamespacedName[];
}

/** A host object as far as ownership is concerned. */
export type Ownership =
  /** Its bookkeeping names this virtual object, this kind and this host object; the marker label is ours or absent. */
  | { readonly kind: 'ours'; readonly virtual: NamespacedName; readonly uid: string }
  /** Bookkeeping of this virtual cluster's, but it does not name this host object: a copy made by somebody, never touched. */
  | { readonly kind: 'foreign'; readonly object: KubeObject }
  /** No `object-name` annotation at all. */
  | { readonly kind: 'unmarked'; readonly object: KubeObject };
