/** What the rooms of the key and token API know of each other. */

import type { UserInfo } from '../apiserver/request/user.ts';

/** `spec.scope` of a key or a token, as clients write it. Absent: no restriction; present: the union of its entries; `{}`: nothing. */
export interface Scope {
  readonly roles?: readonly ScopeRole[];
  readonly projects?: readonly { readonly project?: string }[];
  readonly spaces?: readonly { readonly project?: string; readonly space?: string }[];
  readonly virtualClusters?: readonly { readonly project?: string; readonly virtualCluster?: string }[];
  readonly clusters?: readonly { readonly cluster?: string }[];
  /** Deprecated, see {@link ScopeRule}. */
  readonly rules?: readonly ScopeRule[];
  /** Deprecated: the role `platformCLI`. */
  readonly allowPlatformCli?: boolean;
}

export interface ScopeRole {
  readonly role?: string;
  readonly projects?: readonly string[];
  readonly virtualClusters?: readonly string[];
}

/** Matches as a rule of a Kubernetes audit policy does; an absent list matches everything. */
export interface ScopeRule {
  readonly verbs?: readonly string[];
  readonly resources?: readonly {
    readonly group?: string;
    readonly resources?: readonly string[];
    readonly resourceNames?: readonly string[];
  }[];
  readonly resourceNames?: readonly string[];
  readonly namespaces?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
  readonly requestTargets?: readonly string[];
  readonly cluster?: string;
  readonly virtualClusters?: readonly { readonly name?: string; readonly namespace?: string }[];
}

/** Whose API a request means, by the prefix of its URL. */
export type RequestTarget =
  | { readonly kind: 'Management' }
  | { readonly kind: 'Cluster'; readonly cluster: string }
  | { readonly kind: 'ProjectSpace'; readonly project: string; readonly space: string }
  | { readonly kind: 'ProjectVirtualCluster'; readonly project: string; readonly virtualCluster: string };

/** An OwnedAccessKey as authentication and tokens need it. Immutable: a change of the object makes another record. */
export interface KeyRecord {
  readonly name: string;
  readonly uid: string;
  /** Who a caller with this key is, its scope among the extras. */
  readonly user: UserInfo;
  readonly scope: Scope | undefined;
  readonly isDisabled: boolean;
  /** It is being deleted without a grace period, and waits for finalizers: requests that use it are refused. */
  readonly isDeleted: boolean;
  /** See `holdsOidcData` of a stored key; absent: no. */
  readonly holdsOidcData?: boolean;
  /** Rises when what the key may do changes; tokens made before are no longer good. */
  readonly tokenGeneration: number;
}

/** Every key, kept current by a watch of the store. */
export interface KeyIndex {
  byUid(uid: string): KeyRecord | undefined;
  /** When the key ends, in epoch milliseconds, by what is known now; undefined: never. */
  expiresAtMs(record: KeyRecord): number | undefined;
  /** Waits until everything that was written before this call is known. */
  catchUp(): Promise<void>;
}

/** Encrypts what must be stored and read again. Texts are AES-256-GCM under a key from a file. */
export interface Seal {
  /** `purpose` is authenticated with the text: a text opens only for the purpose that it was sealed for. */
  seal(plain: string, purpose: string): string;
  /** Throws when the text was changed, or sealed under another key. */
  open(sealed: string, purpose: string): string;
}
