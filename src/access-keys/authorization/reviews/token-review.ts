/** TokenReview: the user of a bearer token and its audiences. */

import { StatusError } from '../../../kube/status-error.ts';
import type { JsonObject } from '../../../base/json.ts';
import { badRequest } from '../../../apiserver/status.ts';
import type { UserInfo } from '../../../apiserver/request/user.ts';
import { listField, objectField, text } from '../../../apiserver/metadata.ts';
import { TOKEN_AUDIENCE } from '../../identity.ts';
import type { RequestTarget } from '../../types.ts';
import type { ManagementAuthorizer } from '../authorizer.ts';
import { targetOf } from '../target.ts';

/** Both return undefined for an unknown credential and reject with a `StatusError` 401 only for a proven secret. */
export interface TokenAuthenticators {
  /** An access key. */
  authenticateKey(token: string): UserInfo | undefined | Promise<UserInfo | undefined>;
  /** A token for direct cluster endpoints. */
  verifyToken(token: string): Promise<UserInfo | undefined>;
  /** A successful review counts as a use of the key. */
  recordUse(user: UserInfo): void;
}

/** `TokenReviewStatus`, with the user as `UserInfo`. */
export interface TokenVerdict {
  readonly authenticated: boolean;
  readonly user?: UserInfo;
  readonly audiences?: string[];
  readonly error?: string;
}

export interface TokenReviewOptions extends TokenAuthenticators {
  readonly authorizer: ManagementAuthorizer;
}

/** Without a reason: another authenticator may accept the token, and a guess must get no hint. */
const UNKNOWN: TokenVerdict = { authenticated: false };

/** The default audiences of a kube-apiserver, without `--api-audiences` and `--service-account-issuer`. */
const KUBERNETES_AUDIENCES = [
  'https://kubernetes.default.svc',
  'https://kubernetes.default.svc.cluster.local',
];

/** The status of a TokenReview that was sent below `prefix`. Throws 400 without a token. */
export async function reviewToken(
  options: TokenReviewOptions,
  review: JsonObject,
  prefix: string,
): Promise<TokenVerdict> {
  const spec = objectField(review, 'spec');
  const token = text(spec, 'token');
  if (token === '') throw badRequest('spec.token: Required value');
  const target = targetOf(prefix);
  if (!target) return UNKNOWN;
  try {
    const isSigned = token.split('.').length === 3;
    const user =
      (isSigned ? await options.verifyToken(token) : undefined) ?? (await options.authenticateKey(token));
    if (!user) return UNKNOWN;
    // A target outside the scope of a credential must not learn that it exists.
    if (target.kind !== 'Management' && !options.authorizer.reaches(user, target)) return UNKNOWN;
    const asked = listField(spec, 'audiences').filter((audience) => typeof audience === 'string');
    const audiences = commonAudiences(asked, target);
    if (asked.length > 0 && audiences.length === 0) return otherAudience(asked, target);
    options.recordUse(user);
    return { authenticated: true, user, ...(asked.length > 0 ? { audiences } : {}) };
  } catch (error) {
    if (error instanceof StatusError && error.code === 401) {
      return { authenticated: false, error: error.message };
    }
    throw error;
  }
}

function commonAudiences(asked: readonly string[], target: RequestTarget): string[] {
  const accepted = audiencesOf(target);
  return [...new Set(asked)].filter((audience) => accepted.includes(audience));
}

/** A credential whose scope contains a target is for the API server of that target. */
function audiencesOf({ kind }: RequestTarget): readonly string[] {
  return kind === 'Management' ? [TOKEN_AUDIENCE] : [TOKEN_AUDIENCE, ...KUBERNETES_AUDIENCES];
}

function otherAudience(asked: readonly string[], target: RequestTarget): TokenVerdict {
  const quoted = (audiences: readonly string[]): string =>
    audiences.map((audience) => JSON.stringify(audience)).join(', ');
  const error = `the credential is not for the audiences ${quoted(asked)}, but for ${quoted(audiencesOf(target))}`;
  return { authenticated: false, error };
}
