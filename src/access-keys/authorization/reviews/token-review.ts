/** TokenReview: the user of a bearer token, and the audiences that it is for. */

import { StatusError } from '../../../kube/status-error.ts';
import type { JsonObject } from '../../../base/json.ts';
import { badRequest } from '../../../apiserver/status.ts';
import type { UserInfo } from '../../../apiserver/request/user.ts';
import { listField, objectField, text } from '../../../apiserver/validation/metadata.ts';
import { TOKEN_AUDIENCE } from '../../identity.ts';
import type { RequestTarget } from '../../types.ts';
import type { ManagementAuthorizer } from '../authorizer.ts';
import { targetOf } from '../target.ts';

/** Both answer undefined for what they do not know, and reject with a `StatusError` 401 only for a secret that is proven. */
export interface TokenAuthenticators {
  /** An access key. */
  authenticateKey(token: string): Promise<UserInfo | undefined>;
  /** A token for direct cluster endpoints. */
  verifyToken(token: string): Promise<UserInfo | undefined>;
  /** A key or a token was found good: that is a use of the key. */
  used(user: UserInfo): void;
}

/** `TokenReviewStatus`, with the user as this API represents it. */
export interface TokenVerdict {
  readonly authenticated: boolean;
  readonly user?: UserInfo;
  readonly audiences?: string[];
  readonly error?: string;
}

export interface TokenReviewOptions extends TokenAuthenticators {
  readonly authorizer: ManagementAuthorizer;
}

/** Without a reason: another authenticator may accept the token, and a guess must not be answered with a hint. */
const UNKNOWN: TokenVerdict = { authenticated: false };

/** What a kube-apiserver asks for unless it has another `--api-audiences` or `--service-account-issuer`. */
const KUBERNETES_AUDIENCES = [
  'https://kubernetes.default.svc',
  'https://kubernetes.default.svc.cluster.local',
];

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
    const user =
      (isSigned ? await options.verifyToken(token) : undefined) ?? (await options.authenticateKey(token));
    if (!user) return UNKNOWN;
    // To a target outside its scope a credential does not exist.
    if (target.kind !== 'Management' && !options.authorizer.reaches(user, target)) return UNKNOWN;
    const asked = listField(spec, 'audiences').filter((audience) => typeof audience === 'string');
    const audiences = commonAudiences(asked, target);
    if (asked.length > 0 && audiences.length === 0) return otherAudience(asked, target);
    options.used(user);
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

/** A credential that reaches a target is for the API server of that target. */
function audiencesOf({ kind }: RequestTarget): readonly string[] {
  return kind === 'Management' ? [TOKEN_AUDIENCE] : [TOKEN_AUDIENCE, ...KUBERNETES_AUDIENCES];
}

function otherAudience(asked: readonly string[], target: RequestTarget): TokenVerdict {
  const quoted = (audiences: readonly string[]): string =>
    audiences.map((audience) => JSON.stringify(audience)).join(', ');
  const error = `the credential is not for the audiences ${quoted(asked)}, but for ${quoted(audiencesOf(target))}`;
  return { authenticated: false, error };
}
