/** Authenticates a bearer token: an access key, the local administrator's credential, or a token of the host cluster. */

import type { Credentials, UserInfo } from '../apiserver/user.ts';
import type { LocalAdministrator } from './credentials/local-administrator.ts';
import { isDirectToken } from './tokens/token.ts';

export interface BearerParts {
  readonly keys: { authenticate(token: string): Promise<UserInfo | undefined> };
  readonly local: LocalAdministrator;
  /** Authenticates tokens of the host cluster; absent: they are not accepted. */
  readonly host: { authenticate(token: string, address: string): Promise<UserInfo | undefined> } | undefined;
}

/** Credentials that only this program issues are never sent to the host cluster, valid or not. */
const OURS = /^(pak|local)_/u;
const BEARER = /^bearer +(\S+) *$/iu;

/** Returns undefined: unauthenticated. It rejects with a 401 `StatusError` for a proven key that is refused, with 429 when the host is asked too often. */
export function bearerAuthenticator({ keys, local, host }: BearerParts) {
  return async ({ authorization, address }: Credentials): Promise<UserInfo | undefined> => {
    const token = BEARER.exec(authorization ?? '')?.[1];
    if (token === undefined) return undefined;
    const user = local.authenticate(token) ?? (await keys.authenticate(token));
    // A token of ours is no credential for this API, even if the host cluster trusts its issuer.
    if (user !== undefined || OURS.test(token) || isDirectToken(token)) return user;
    return host?.authenticate(token, address);
  };
}
