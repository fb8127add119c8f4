/** Types that the modules of the key and token API share. */

import type { UserInfo } from '../apiserver/user.ts';

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

/** The API that a request is for, by the prefix of its URL. */
export type RequestTarget =
  | { readonly kind: 'Management' }
  | { readonly kind: 'Cluster'; readonly cluster: string }
  | { readonly kind: 'ProjectSpace'; readonly project: string; readonly space: string }
  | { readonly kind: 'ProjectVirtualCluster'; readonly project: string; readonly virtualCluster: string };

/** An OwnedAccessKey as authentication and tokens need it. Immutable: each change of the object creates a new record. */
export interface KeyRecord {
  readonly name: string;
  readonly uid: string;
  /** The user that the key authenticates, its scope among the extras. */
  readonly user: UserInfo;
  readonly scope: Scope | undefined;
  readonly isDisabled: boolean;
  /** It is being deleted without a grace period and has finalizers: requests that use it fail. */
  readonly isDeleted: boolean;
  /** See `holdsOidcData` of a stored key; absent: no. */
  readonly holdsOidcData?: boolean;
  /** Incremented when the rights of the key change; tokens of earlier generations are invalid. */
  readonly tokenGeneration: number;
  /** `untilMs`: the end of the overlap of a rotation, in epoch milliseconds; undefined: the current secret. */
  readonly credentials?: readonly { readonly id: string; readonly untilMs: number | undefined }[];
}

/** All keys, as the store has committed them. */
export interface KeyIndex {
  byUid(uid: string): KeyRecord | undefined;
  /** When the key expires, in epoch milliseconds; undefined: never. */
  expiresAtMs(record: KeyRecord): number | undefined;
  /** Before a key is accepted: rejects with `StoreError` while another replica may have revoked any key unnoticed, see `Projected.confirmed`. */
  confirmed(): Promise<void> | undefined;
  /** Waits until the index contains every write before this call. */
  catchUp(): Promise<void>;
}
