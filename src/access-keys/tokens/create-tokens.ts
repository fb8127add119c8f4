/** Direct cluster endpoint tokens, put together: the kind that makes them, the documents that verify them, the keys behind both. */

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
  /** With the types `meta.*`, those of a scope, and those of `token-types.ts`. */
  readonly types: TypeTable;
  /** https URL, the `iss` claim; a slash at its end is dropped. */
  readonly issuer: string;
  readonly ttls: TokenTtls;
}

export interface Tokens {
  readonly definition: ResourceDefinition;
  /** For `startServer`, by path. */
  readonly publicDocuments: ReadonlyMap<string, () => Promise<ApiResponse>>;
  /** Who a token speaks for, for a TokenReview; undefined: nobody. On this API itself a token is no credential. */
  verify(token: string): Promise<UserInfo | undefined>;
  /** Makes the first signing key where there is none. Throws a `TerminalError` when the keys in the store cannot be opened. */
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
      sign: (content) => signToken({ ring, issuer }, content),
    }),
    publicDocuments: tokenDocuments(ring, issuer),
    verify: (token) => verifyToken({ ring, index, clock, issuer }, token),
    start: () => ring.start(),
    stop: () => ring.stop(),
  };
}
