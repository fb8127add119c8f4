/** Composes authorization: the authorizer, the rules for writes of keys, the reviews, and delegated authentication. */

import type { AdmissionRequest } from '../../apiserver/objects/admission.ts';
import type { ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/notation.ts';
import type { UserInfo } from '../../apiserver/request/user.ts';
import type { ClusterClient } from '../../kube/types.ts';
import type { Clock } from '../../base/clock.ts';
import type { KeyIndex } from '../types.ts';
import { ManagementAuthorizer } from './authorizer.ts';
import { DelegatedAuth } from './delegated/delegated-auth.ts';
import { hostReviews } from './delegated/host-reviews.ts';
import { reviewKinds } from './reviews/reviews.ts';
import type { TokenAuthenticators } from './reviews/token-review.ts';
import { WriteAuthorizer } from './writes/write-authorizer.ts';
import { Writers } from './writes/writers.ts';

export interface AccessOptions extends TokenAuthenticators {
  /** Holds `META_TYPES` and `REVIEW_TYPES`. */
  readonly types: TypeTable;
  readonly index: KeyIndex;
  readonly clock: Clock;
  /** The host cluster; undefined: its tokens are not accepted. */
  readonly host: Pick<ClusterClient, 'request'> | undefined;
}

export interface Access {
  readonly authorizer: ManagementAuthorizer;
  /** The review kinds that are served besides keys and tokens. */
  readonly kinds: readonly ResourceDefinition[];
  /** Throws 403 for a write to an access key that the user may not make. */
  authorizeWrite(write: AdmissionRequest): Promise<void>;
  /** Authenticates tokens of the host cluster; undefined: they are not accepted. */
  readonly hostUsers:
    | { authenticate(token: string, address?: string): Promise<UserInfo | undefined> }
    | undefined;
}

export function createAccess(options: AccessOptions): Access {
  const { index, clock } = options;
  const host = options.host && new DelegatedAuth({ host: hostReviews(options.host), clock });
  const authorizer = new ManagementAuthorizer({ index, clock, host });
  const writes = new WriteAuthorizer({ writers: new Writers(host), index, clock });
  return {
    authorizer,
    kinds: reviewKinds({ ...options, authorizer }),
    authorizeWrite: (write) => writes.authorize(write),
    hostUsers: host,
  };
}
