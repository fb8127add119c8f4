/** Authenticates a bearer token: an access key, the local administrator's credential, or a token of the host cluster. */

import type { Credentials, UserInfo } from '../apiserver/user.ts';
import type { LocalAdministrator } from './credentials/local-administrator.ts';
import { isDirectToken } from './tokens/token.ts';

export interface BearerParts {
  readonly keys: { authenticate(token: string): UserInfo | undefined | Promise<UserInfo | undefined> };
  readonly local: LocalAdministrator;
  /** Authenticates tokens of the host cluster; absent: they are not accepted. */
  readonly host: { authenticate(token: string, address: string): Promise<UserInfo | undefined> } | undefined;
}

/** Credentials that only this program issues are never sent to the host cluster, valid or not. */
const OURS = /^(pak|local)_/u;
const BEARER = /^bearer +(\S+) *$/iu;

export class BearerAuthenticator {
  readonly #parts: BearerParts;

  constructor(parts: BearerParts) {
    this.#parts = parts;
  }

  /** Undefined: unauthenticated. Rejects with a 401 `StatusError` for a proven key that is refused, with 429 when the host is asked too often. */
  authenticate({
    authorization,
    address,
  }: Credentials): UserInfo | undefined | Promise<UserInfo | undefined> {
    const token = BEARER.exec(authorization ?? '')?.[1];
    if (token === undefined) return undefined;
    const { keys, local } = this.#parts;
    const known = local.authenticate(token) ?? keys.authenticate(token);
    return known instanceof Promise || known === undefined ? this.#orHostUser(known, token, address) : known;
  }

  async #orHostUser(
    known: Promise<UserInfo | undefined> | undefined,
    token: string,
    address: string,
  ): Promise<UserInfo | undefined> {
    const user = await known;
    // A token of ours is no credential for this API, even if the host cluster trusts its issuer.
    const isOurs = OURS.test(token) || isDirectToken(token);
    return user ?? (isOurs ? undefined : this.#parts.host?.authenticate(token, address));
  }
}
