/** The cache of the exec plugin: tokens in files that only their owner can read. */

import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isJsonObject, type JsonObject } from '../../base/json.ts';

export interface IssuedToken {
  readonly token: string;
  /** Epoch milliseconds, shortly before the expiry. */
  readonly renewAtMs: number;
}

const GROUP_AND_OTHERS = 0o077;

export class TokenCache {
  readonly #folder: string | undefined;

  /** Below `XDG_CACHE_HOME` or `HOME`; without either nothing is cached. */
  constructor({ XDG_CACHE_HOME: cache, HOME: home }: NodeJS.ProcessEnv) {
    const base = cache || (home && join(home, '.cache'));
    this.#folder = base ? join(base, 'endpoint-syncer', 'tokens') : undefined;
  }

  /** `request`: everything that the token depends on. Undefined if there is none or it is due for renewal. */
  read(request: string, nowMs: number): IssuedToken | undefined {
    const file = this.#fileFor(request);
    if (file === undefined) return undefined;
    try {
      if ((statSync(file).mode & GROUP_AND_OTHERS) !== 0) return undefined;
      const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
      if (!isJsonObject(value)) return undefined;
      const { token, renewAtMs } = value;
      if (typeof token !== 'string' || typeof renewAtMs !== 'number' || renewAtMs <= nowMs) return undefined;
      return { token, renewAtMs };
    } catch {
      return undefined;
    }
  }

  /** Without a writable cache each run requests a token. */
  write(request: string, issued: IssuedToken): void {
    const file = this.#fileFor(request);
    if (file === undefined || this.#folder === undefined) return;
    const next = `${file}.${randomBytes(6).toString('hex')}`;
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      writeFileSync(next, JSON.stringify(issued), { mode: 0o600, flag: 'wx' });
    } catch {
      return;
    }
    renameSync(next, file);
  }

  #fileFor(request: string): string | undefined {
    const name = `${createHash('sha256').update(request).digest('hex')}.json`;
    return this.#folder && join(this.#folder, name);
  }
}

export interface TokenClaims {
  /** Name of the access key. */
  readonly name: string;
  readonly lifeSeconds: number;
}

/** The claims of a token from the server; they are not verified. */
export function claimsOf(token: string): TokenClaims {
  const claims = payloadOf(token);
  const platform = isJsonObject(claims['platform.sh']) ? claims['platform.sh'] : {};
  const { name } = platform;
  return {
    name: typeof name === 'string' && name !== '' ? name : 'endpoint-syncer',
    lifeSeconds: Math.max(0, Number(claims['exp'] ?? 0) - Number(claims['iat'] ?? 0)),
  };
}

function payloadOf(token: string): JsonObject {
  try {
    const value: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
