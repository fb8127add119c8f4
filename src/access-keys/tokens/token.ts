/** What a token is: a JWT that says for which key it speaks, and what it may reach. */

import { decodeProtectedHeader, errors, jwtVerify, SignJWT, type JWTPayload } from 'jose';
import type { UserInfo } from '../../apiserver/request/user.ts';
import type { Clock } from '../../base/clock.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { AUTHENTICATED, EXTRA, TOKEN_AUDIENCE } from '../identity.ts';
import type { KeyIndex, KeyRecord, Scope } from '../types.ts';
import { hasCanonicalSignature, withCanonicalSignature } from './canonical-signature.ts';
import type { KeyRing } from './key-ring.ts';
import { ALGORITHM } from './signing-key.ts';

/** The `typ` of the header: a token is no ID token and no access token of anybody else. */
export const TOKEN_TYPE = 'dcet+jwt';
/** The claim with everything that is not in every JWT. */
export const PLATFORM_CLAIM = 'platform.sh';
/** Half of what Node takes as headers, so that a token and the other headers of a request fit. */
export const TOKEN_BYTES_MAX = 8 * 1024;
/** By how much the clock of the replica that issued a token may be ahead. A token is never accepted past its end. */
const CLOCK_TOLERANCE_SECONDS = 1;

/** The claim {@link PLATFORM_CLAIM}. */
interface PlatformClaim {
  /** UID and name of the key that made the token. */
  readonly uid: string;
  readonly name: string;
  readonly kind: 'OwnedAccessKey';
  /** The key's token generation. */
  readonly gen: number;
  /** For rules that look into it. Absent: no restriction. */
  readonly scope?: Scope;
  /** The same as JSON text, for whoever only hands it on. */
  readonly scopeText?: string;
}

/** What a token is to say. */
export interface TokenContent {
  readonly id: string;
  readonly record: KeyRecord;
  readonly scope: Scope | undefined;
  /** Epoch seconds. */
  readonly issuedAt: number;
  readonly expiresAt: number;
}

export interface TokenOptions {
  readonly ring: KeyRing;
  readonly index: KeyIndex;
  readonly clock: Clock;
  /** The `iss` claim, a URL without a slash at its end. */
  readonly issuer: string;
}

export async function signToken(
  { ring, issuer }: Pick<TokenOptions, 'ring' | 'issuer'>,
  content: TokenContent,
): Promise<string> {
  const { record, scope, issuedAt, expiresAt, id } = content;
  const platform: PlatformClaim = {
    uid: record.uid,
    name: record.name,
    kind: 'OwnedAccessKey',
    gen: record.tokenGeneration,
    ...(scope === undefined ? {} : { scope, scopeText: JSON.stringify(scope) }),
  };
  const claims: JWTPayload = {
    iss: issuer,
    sub: record.user.name,
    aud: [TOKEN_AUDIENCE],
    iat: issuedAt,
    nbf: issuedAt,
    exp: expiresAt,
    jti: id,
    groups: record.user.groups.filter((group) => group !== AUTHENTICATED),
    [PLATFORM_CLAIM]: platform,
  };
  const { kid, key } = await ring.signer();
  const header = { alg: ALGORITHM, typ: TOKEN_TYPE, kid };
  return withCanonicalSignature(await new SignJWT(claims).setProtectedHeader(header).sign(key));
}

/**
 * Who a token speaks for; undefined: nobody, whatever the reason. The key that made it must still be there, unchanged in what it may do,
 * neither disabled nor over. Rejects when the store is needed and does not answer.
 */
export async function verifyToken(options: TokenOptions, token: string): Promise<UserInfo | undefined> {
  const claim = await verifiedClaim(options, token);
  if (claim === undefined) return undefined;
  const { index, clock } = options;
  const found = index.byUid(claim.uid);
  // Made on another replica, or its change has not come here yet.
  if (found === undefined || found.tokenGeneration < claim.gen) await index.catchUp();
  const record = index.byUid(claim.uid);
  if (record === undefined || !isUsable(record, index, clock)) return undefined;
  if (record.tokenGeneration !== claim.gen) return undefined;
  if (claim.scopeText === undefined) return record.user;
  return { ...record.user, extra: { ...record.user.extra, [EXTRA.scope]: [claim.scopeText] } };
}

/** By its header, nothing verified: a token of this kind, whoever made it. Total on any text. */
export function isDirectToken(text: string): boolean {
  if (text.length > TOKEN_BYTES_MAX || text.split('.').length !== 3) return false;
  try {
    return decodeProtectedHeader(text).typ === TOKEN_TYPE;
  } catch {
    return false;
  }
}

/** Neither disabled, nor deleted, nor over. */
export function isUsable(record: KeyRecord, index: KeyIndex, clock: Clock): boolean {
  if (record.isDisabled || record.isDeleted) return false;
  const expiresAtMs = index.expiresAtMs(record);
  return expiresAtMs === undefined || expiresAtMs > clock.now();
}

async function verifiedClaim(
  { ring, clock, issuer }: TokenOptions,
  token: string,
): Promise<PlatformClaim | undefined> {
  if (token.length > TOKEN_BYTES_MAX || token.split('.').length !== 3) return undefined;
  if (!hasCanonicalSignature(token)) return undefined;
  try {
    const { payload } = await jwtVerify(
      token,
      async ({ kid }) => {
        const key = typeof kid === 'string' ? await ring.verifier(kid) : undefined;
        if (key === undefined) throw new errors.JWKSNoMatchingKey();
        return key;
      },
      {
        algorithms: [ALGORITHM],
        typ: TOKEN_TYPE,
        issuer,
        audience: TOKEN_AUDIENCE,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        currentDate: new Date(clock.now()),
        requiredClaims: ['iss', 'sub', 'aud', 'iat', 'nbf', 'exp', 'jti', PLATFORM_CLAIM],
      },
    );
    // The tolerance is for tokens that begin, not for those that end.
    if ((payload.exp ?? 0) * 1000 <= clock.now()) return undefined;
    return platformClaim(payload[PLATFORM_CLAIM]);
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}

/** Signed by us, but perhaps by another version of us. */
function platformClaim(value: unknown): PlatformClaim | undefined {
  if (!isJsonObject(value)) return undefined;
  const { uid, name, kind, gen, scopeText }: JsonObject = value;
  if (kind !== 'OwnedAccessKey' || typeof uid !== 'string' || typeof name !== 'string') return undefined;
  if (typeof gen !== 'number') return undefined;
  if (scopeText !== undefined && typeof scopeText !== 'string') return undefined;
  // A scope that cannot be handed on is a restriction that would be lost.
  if (scopeText === undefined && value['scope'] !== undefined) return undefined;
  return { uid, name, kind, gen, ...(scopeText === undefined ? {} : { scopeText }) };
}
