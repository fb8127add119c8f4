/** Whose token is this? */

import { StatusError } from '../../kube/status-error.ts';
import type { JsonObject } from '../../lib/json.ts';
import { badRequest } from '../../api/status.ts';
import type { UserInfo } from '../../api/user.ts';
import { listField, objectField, text } from '../../api/validation/metadata.ts';
import { TOKEN_AUDIENCE } from '../identity.ts';
import type { ManagementAuthorizer } from './authorizer.ts';
import { targetOf } from './target.ts';

/** Both answer undefined for what they do not know, and reject with a `StatusError` 401 only for a secret that is proven. */
export interface TokenAuthenticators {
  /** An access key. */
  authenticateKey(token: string): Promise<UserInfo | undefined>;
  /** A token for direct cluster endpoints. */
  verifyToken(token: string): Promise<UserInfo | undefined>;
  /** A key or a token was found good: that is a use of the key. */
  used(user: UserInfo): void;
}

/** `TokenReviewStatus`, the user as it is known here. */
export interface TokenVerdict {
  readonly authenticated: boolean;
  readonly user?: UserInfo;
  readonly audiences?: [string];
  readonly error?: string;
}

export interface TokenReviewOptions extends TokenAuthenticators {
  readonly authorizer: ManagementAuthorizer;
}

/** No reason: a token that is not ours is somebody else's to accept, and ours tell nothing to who guesses. */
const UNKNOWN: TokenVerdict = { authenticated: false };

/** The status of a TokenReview that was sent below `prefix`. Throws 400 where there is no token. */
export async function reviewToken(
  options: TokenReviewOptions,
  review: JsonObject,
  prefix: string,
): Promise<TokenVerdict> {
  const spec = objectField(review, 'spec');
  const token = text(spec, 'token');
  if (token === '') throw badRequest('spec.token: Required value: a TokenReview is about a token');
  const target = targetOf(prefix);
  if (!target) return UNKNOWN;
  try {
    const isSigned = token.split('.').length === 3;
    const bearer = isSigned ? await options.verifyToken(token) : undefined;
    const user = bearer ?? (await options.authenticateKey(token));
    if (!user) return UNKNOWN;
    // To a target outside its scope a credential does not exist.
    if (target.kind !== 'Management' && !options.authorizer.reaches(user, target)) return UNKNOWN;
    const audiences = listField(spec, 'audiences');
    const isDirect = audiences.includes(TOKEN_AUDIENCE);
    // Here a token is for nobody; to an asker elsewhere it is good as what that server itself accepts.
    if (bearer && target.kind === 'Management' && audiences.length > 0 && !isDirect) return UNKNOWN;
    options.used(user);
    return { authenticated: true, user, ...(isDirect ? { audiences: [TOKEN_AUDIENCE] } : {}) };
  } catch (error) {
    if (error instanceof StatusError && error.code === 401) {
      return { authenticated: false, error: error.message };
    }
    throw error;
  }
}
