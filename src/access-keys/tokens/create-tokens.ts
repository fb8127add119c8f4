/** Composes direct cluster endpoint tokens: the resource, the signing keys, and the documents for verifiers. */

import type { ApiResponse } from '../../apiserver/http/api-response.ts';
import type { ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/notation.ts';
import type { UserInfo } from '../../apiserver/request/user.ts';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Logger } from '../../base/logger.ts';
import type { Store } from '../../apiserver/storage/store.ts';
import type { KeyIndex, Seal } from '../types.ts';
import { KeyRing } from './key-ring.ts';
import { signToken, verifyToken } from './token.ts';
import { tokenDocuments } from './token-documents.ts';
import { directClusterEndpointTokens } from './token-kind.ts';
import type { TokenTtls } from './token-ttl.ts';

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
      sign: (content) => signToken({ ring, issuer }, content),
    }),
    publicDocuments: tokenDocuments(ring, issuer),
    verify: (token) => verifyToken({ ring, index, clock, issuer }, token),
    start: () => ring.start(),
    stop: () => ring.stop(),
  };
}
