/** Tokens over a memory store, with a fake clock and keys of the test. */

import { randomBytes } from 'node:crypto';
import { createLocalJWKSet, decodeJwt, jwtVerify, type JSONWebKeySet, type JWTPayload } from 'jose';
import { META_TYPES, TypeTable } from '../../../src/apiserver/schema/object-schema.ts';
import type { Caller } from '../../../src/apiserver/objects/resource-definition.ts';
import type { UserInfo } from '../../../src/apiserver/user.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { Seal } from '../../../src/access-keys/credentials/master-key.ts';
import {
  AUTHENTICATED,
  TOKEN_AUDIENCE,
  type KeyIndex,
  type KeyRecord,
  type Scope,
} from '../../../src/access-keys/identity.ts';
import { SCOPE_TYPES } from '../../../src/access-keys/authorization/scope-validation.ts';
import {
  composeTokens,
  type Tokens,
  type TokensOptions,
  KEY_SET_PATH,
  TOKEN_TYPES,
} from '../../../src/access-keys/tokens/token-kind.ts';
import { TOKEN_TYPE } from '../../../src/access-keys/tokens/token.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { MemoryStore } from '../../../src/apiserver/storage/revisioned-store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { record } from '../authorization/authorization-server.ts';

export const ISSUER = 'https://platform.example.com';
export const DAY_MS = 24 * 60 * 60_000;

/** A seal with a fixed key, as after a restart with the same key file. */
export function testSeal(): Seal {
  return new Seal(Buffer.alloc(32, 7), randomBytes);
}

export function tokenTypes(): TypeTable {
  return new TypeTable([META_TYPES, SCOPE_TYPES, TOKEN_TYPES]);
}

export function keyRecord(
  overrides: Partial<KeyRecord> & { expiresAtMs?: number; scope?: Scope } = {},
): TestKey {
  const { expiresAtMs, ...rest } = overrides;
  const key = record({ uid: 'uid-1', name: 'key-1', ...rest });
  return { ...key, user: { ...key.user, groups: ['platform:team:blue', AUTHENTICATED] }, expiresAtMs };
}

export interface TestKey extends KeyRecord {
  readonly expiresAtMs: number | undefined;
}

/** Keys by uid, changed at will. */
export class TestIndex implements KeyIndex {
  readonly keys = new Map<string, TestKey>();
  /** What `catchUp` brings to light. */
  readonly arriving: TestKey[] = [];

  set(key: TestKey): TestKey {
    this.keys.set(key.uid, key);
    return key;
  }

  byUid(uid: string): TestKey | undefined {
    return this.keys.get(uid);
  }

  expiresAtMs(record: KeyRecord): number | undefined {
    return this.keys.get(record.uid)?.expiresAtMs;
  }

  confirmed(): undefined {
    return undefined;
  }

  catchUp(): Promise<void> {
    for (const key of this.arriving.splice(0)) this.set(key);
    return Promise.resolve();
  }
}

export interface TokenHarness extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly store: MemoryStore;
  readonly index: TestIndex;
  readonly tokens: Tokens;
  /** POST without HTTP. `warnings` gets what the client would. */
  create(user: UserInfo, spec: JsonObject, options?: CreateOptions): Promise<JsonObject>;
  /** The token of a create that must succeed. */
  token(user: UserInfo, spec?: JsonObject): Promise<string>;
  keySet(): Promise<JSONWebKeySet>;
}

export interface CreateOptions {
  readonly metadata?: JsonObject;
  readonly isDryRun?: boolean;
  readonly manager?: string;
  readonly warnings?: string[];
}

export async function startTokens(options: Partial<TokensOptions> = {}): Promise<TokenHarness> {
  const clock = (options.clock as FakeClock | undefined) ?? new FakeClock();
  const store = (options.store as MemoryStore | undefined) ?? new MemoryStore();
  const index = new TestIndex();
  const tokens = composeTokens({
    store,
    seal: testSeal(),
    index,
    clock,
    random: Math.random,
    logger: silentLogger,
    types: tokenTypes(),
    issuer: ISSUER,
    ttls: { default: 86_400, max: 604_800 },
    issued: () => undefined,
    ...options,
  });
  await tokens.start();
  const create = async (user: UserInfo, spec: JsonObject, how: CreateOptions = {}): Promise<JsonObject> => {
    const { metadata = {}, isDryRun = false, manager = 'test', warnings = [] } = how;
    const caller: Caller = { user, prefix: '', manager, isDryRun, warn: (text) => void warnings.push(text) };
    const answer = await tokens.definition.respond?.({ metadata, spec, status: {} }, caller);
    if (answer === undefined) throw new Error('the kind does not answer');
    return answer;
  };
  return {
    clock,
    store,
    index,
    tokens,
    create,
    token: async (user, spec = {}) => tokenOf(await create(user, spec)),
    keySet: async () => {
      const answer = await tokens.publicDocuments.get(KEY_SET_PATH)?.();
      return JSON.parse(answer?.body ?? '{}') as JSONWebKeySet;
    },
    [Symbol.asyncDispose]: async () => {
      await tokens.stop();
      await store[Symbol.asyncDispose]();
    },
  };
}

export function tokenOf(object: JsonObject): string {
  const { token } = object['status'] as { token?: string }; // an answer of the kind
  if (token === undefined) throw new Error('the answer has no token');
  return token;
}

export interface TokenClaims extends JWTPayload {
  readonly iat: number;
  readonly exp: number;
  readonly groups: string[];
  readonly 'platform.sh': {
    readonly uid: string;
    readonly name: string;
    readonly kind: string;
    readonly gen: number;
    readonly scope?: Scope;
    readonly scopeText?: string;
  };
}

export function claimsOf(token: string): TokenClaims {
  return decodeJwt<TokenClaims>(token) as TokenClaims; // every claim is there
}

/** As a stock verifier does it, which knows nothing but the key set. */
export async function verifyWith(
  keySet: JSONWebKeySet,
  token: string,
  nowMs: number,
  audience = TOKEN_AUDIENCE,
): Promise<JWTPayload> {
  const { payload } = await jwtVerify(token, createLocalJWKSet(keySet), {
    issuer: ISSUER,
    audience,
    typ: TOKEN_TYPE,
    algorithms: ['ES256'],
    currentDate: new Date(nowMs),
  });
  return payload;
}
