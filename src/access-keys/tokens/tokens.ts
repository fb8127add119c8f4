/** Composes direct cluster endpoint tokens: the resource, the signing keys, and the documents for verifiers. */

import { type ApiResponse, jsonResponse } from '../../apiserver/request/api-response.ts';
import type { ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import type { UserInfo } from '../../apiserver/user.ts';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Logger } from '../../base/logger.ts';
import type { Store } from '../../apiserver/storage/store.ts';
import type { Seal } from '../credentials/master-key.ts';
import type { KeyIndex } from '../types.ts';
import { KeyRing } from './key-ring.ts';
import { signToken, verifyToken } from './token.ts';
import { directClusterEndpointTokens, type TokenTtls } from './token-kind.ts';
import type { JsonObject } from '../../base/json.ts';
import { KEY_SET_AGE_MS } from './rotation.ts';
import { ALGORITHM } from './signing-key.ts';

export interface TokensOptions {
  readonly store: Store;
  readonly seal: Seal;
  readonly index: KeyIndex;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Holds `META_TYPES`, `SCOPE_TYPES` and `TOKEN_TYPES`. */
  readonly types: TypeTable;
  /** https URL, the `iss` claim; a trailing slash is removed. */
  readonly issuer: string;
  readonly ttls: TokenTtls;
  /** Called for each issued token. */
  issued(): void;
}

export interface Tokens {
  readonly definition: ResourceDefinition;
  /** For `startServer`, by path. */
  readonly publicDocuments: ReadonlyMap<string, () => Promise<ApiResponse>>;
  /** The user of a token, for a TokenReview; undefined: invalid. On this API itself a token is not accepted. */
  verify(token: string): Promise<UserInfo | undefined>;
  /** Generates the first signing key. Throws a `TerminalError` if the keys in the store cannot be decrypted. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function createTokens(options: TokensOptions): Tokens {
  const { store, seal, index, clock, random, logger, types, ttls } = options;
  const issuer = options.issuer.replace(/\/+$/, '');
  const ring = new KeyRing({ store, seal, clock, logger, tokenSecondsMax: Math.max(ttls.default, ttls.max) });
  return {
    definition: directClusterEndpointTokens({
      types,
      index,
      clock,
      random,
      ttls,
      issued: () => options.issued(),
      sign: (content) => signToken(ring, issuer, content),
    }),
    publicDocuments: tokenDocuments(ring, issuer),
    verify: (token) => verifyToken(ring, issuer, index, clock, token),
    start: () => ring.start(),
    stop: () => ring.stop(),
  };
}

// The documents for verifiers of tokens: OpenID Connect Discovery and the key set.

const DISCOVERY_PATH = '/.well-known/openid-configuration';
export const KEY_SET_PATH = '/openid/v1/jwks';

const CACHE_CONTROL = `public, max-age=${KEY_SET_AGE_MS / 1000}`;

/** By path. If the issuer has a path, they are served below it too, because verifiers append to the issuer. */
function tokenDocuments(ring: KeyRing, issuer: string): ReadonlyMap<string, () => Promise<ApiResponse>> {
  const discovery = (): Promise<ApiResponse> => Promise.resolve(cachedAnswer(discoveryDocument(issuer)));
  const keySet = async (): Promise<ApiResponse> => {
    const keys = (await ring.published()).map(({ publicJwk }) => publicJwk);
    const answer = cachedAnswer({ keys });
    return { ...answer, headers: { ...answer.headers, 'content-type': 'application/jwk-set+json' } };
  };
  const documents = new Map<string, () => Promise<ApiResponse>>();
  for (const base of new Set(['', basePath(issuer)])) {
    documents.set(base + DISCOVERY_PATH, discovery);
    documents.set(base + KEY_SET_PATH, keySet);
  }
  return documents;
}

function discoveryDocument(issuer: string): JsonObject {
  return {
    issuer,
    jwks_uri: issuer + KEY_SET_PATH,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [ALGORITHM],
  };
}

function cachedAnswer(body: JsonObject): ApiResponse {
  const answer = jsonResponse(200, body);
  return { ...answer, headers: { ...answer.headers, 'cache-control': CACHE_CONTROL } };
}

function basePath(issuer: string): string {
  return new URL(issuer).pathname.replace(/\/+$/, '');
}
