/** Who sent a request, by its bearer token: a key, the administrator of this machine, or somebody whom the host cluster knows. */

import type { Credentials, UserInfo } from '../apiserver/request/user.ts';
import type { LocalAdministrator } from './bootstrap/local-administrator.ts';
import { isDirectToken } from './tokens/token.ts';

export interface BearerParts {
  readonly keys: { authenticate(token: string): Promise<UserInfo | undefined> };
  readonly local: LocalAdministrator;
  /** Callers with tokens of the host cluster; absent: they are nobody here. */
  readonly host: { authenticate(token: string, address: string): Promise<UserInfo | undefined> } | undefined;
}

/** What only this program gives out is nobody else's business, even where it is wrong. */
const OURS = /^(pak|local)_/u;
const BEARER = /^bearer +(\S+) *$/iu;

export class BearerAuthenticator {
  readonly #parts: BearerParts;

  constructor(parts: BearerParts) {
    this.#parts = parts;
  }

  /** Undefined: nobody. Rejects with a 401 `StatusError` that says more where a key was proven and is refused, 429 where the host is asked too much. */
  async authenticate({ authorization, address }: Credentials): Promise<UserInfo | undefined> {
    const token = BEARER.exec(authorization ?? '')?.[1];
    if (token === undefined) return undefined;
    const { keys, local, host } = this.#parts;
    const known = local.authenticate(token) ?? (await keys.authenticate(token));
    // The host may trust our tokens: for that they are no credential here.
    const isOurs = OURS.test(token) || isDirectToken(token);
    return known ?? (isOurs ? undefined : host?.authenticate(token, address));
  }
}
