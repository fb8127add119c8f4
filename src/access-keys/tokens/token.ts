/** The JWT of a token, which names its access key and its scope: signing and verification. */

import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import type { UserInfo } from '../../apiserver/user.ts';
import type { Clock } from '../../base/clock.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { audiencesOf } from '../authorization/audiences.ts';
import {
  AUTHENTICATED,
  EXTRA,
  keyState,
  scopeOf,
  type KeyIndex,
  type KeyRecord,
  type Scope,
} from '../identity.ts';
import { type KeyRing, ALGORITHM } from './key-ring.ts';

/** The `typ` of the header, which distinguishes it from ID tokens and access tokens of other issuers. */
export const TOKEN_TYPE = 'dcet+jwt';
const PLATFORM_CLAIM = 'platform.sh';
/** Half of Node's limit for headers, so that a token and the other headers of a request fit. */
export const TOKEN_BYTES_MAX = 8 * 1024;
/** Tolerated skew of the clock of the replica that issued a token. A token is never accepted after its expiry. */
const CLOCK_TOLERANCE_SECONDS = 1;

interface PlatformClaim {
  /** UID and name of the key that created the token. */
  readonly uid: string;
  readonly name: string;
  readonly kind: 'OwnedAccessKey';
  /** The key's token generation. */
  readonly gen: number;
  /** For CEL rules. Absent: no restriction. */
  readonly scope?: Scope;
  /** The scope as JSON text, for claim mappings. */
  readonly scopeText?: string;
}

export interface TokenContent {
  readonly id: string;
  readonly record: KeyRecord;
  readonly scope: Scope | undefined;
  /** Epoch seconds. */
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** `issuer`: the `iss` claim, a URL. */
export async function signToken(ring: KeyRing, issuer: string, content: TokenContent): Promise<string> {
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
    aud: [...audiencesOf(scope)],
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
 * The user of a token; undefined: it is invalid. Its key must exist, be enabled and unexpired, and have the same token generation. Rejects if
 * the store is needed and fails.
 */
export async function verifyToken(
  ring: KeyRing,
  issuer: string,
  index: KeyIndex,
  clock: Clock,
  token: string,
): Promise<UserInfo | undefined> {
  const claim = await verifiedClaim(ring, issuer, clock, token);
  if (claim === undefined) return undefined;
  await index.confirmed();
  const found = index.byUid(claim.uid);
  // The key was created or changed on another replica, and the index lags behind.
  if (found === undefined || found.tokenGeneration < claim.gen) await index.catchUp();
  const record = index.byUid(claim.uid);
  if (record?.tokenGeneration !== claim.gen || keyState(record, index, clock.now()) !== 'active')
    return undefined;
  if (claim.scopeText === undefined) return record.user;
  return { ...record.user, extra: { ...record.user.extra, [EXTRA.scope]: [claim.scopeText] } };
}

/** Whether the unverified header is that of a token of this kind, of any issuer. Never throws. */
export function isDirectToken(text: string): boolean {
  if (text.length > TOKEN_BYTES_MAX || text.split('.').length !== 3) return false;
  try {
    return decodeProtectedHeader(text).typ === TOKEN_TYPE;
  } catch {
    return false;
  }
}

async function verifiedClaim(
  ring: KeyRing,
  issuer: string,
  clock: Clock,
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
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        currentDate: new Date(clock.now()),
        requiredClaims: ['iss', 'sub', 'aud', 'iat', 'nbf', 'exp', 'jti', PLATFORM_CLAIM],
      },
    );
    // The tolerance applies to nbf and iat, not to exp.
    if ((payload.exp ?? 0) * 1000 <= clock.now()) return undefined;
    const claim = platformClaim(payload[PLATFORM_CLAIM]);
    return claim !== undefined && isForAnEndpoint(payload, claim) ? claim : undefined;
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}

function isForAnEndpoint({ aud = [] }: JWTPayload, { scopeText }: PlatformClaim): boolean {
  const scope = scopeText === undefined ? undefined : scopeOf({ extra: { [EXTRA.scope]: [scopeText] } });
  const accepted = audiencesOf(scope);
  return [aud].flat().some((audience) => accepted.includes(audience));
}

/** Checks the shape: another version of this program may have signed it. */
function platformClaim(value: unknown): PlatformClaim | undefined {
  if (!isJsonObject(value)) return undefined;
  const { uid, name, kind, gen, scopeText }: JsonObject = value;
  if (kind !== 'OwnedAccessKey' || typeof uid !== 'string' || typeof name !== 'string') return undefined;
  if (typeof gen !== 'number') return undefined;
  if (scopeText !== undefined && typeof scopeText !== 'string') return undefined;
  // Without its text the restriction would be lost.
  if (scopeText === undefined && value['scope'] !== undefined) return undefined;
  return { uid, name, kind, gen, ...(scopeText === undefined ? {} : { scopeText }) };
}

/** Order n of the curve P-256. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const HALF_ORDER = ORDER >> 1n;
const SCALAR_BYTES = 32;

/** `token`: a JWT signed with ES256. */
function withCanonicalSignature(token: string): string {
  const end = token.lastIndexOf('.') + 1;
  const signature = Buffer.from(token.slice(end), 'base64url');
  const s = scalarAt(signature, SCALAR_BYTES);
  if (s <= HALF_ORDER) return token;
  const lower = (ORDER - s).toString(16).padStart(2 * SCALAR_BYTES, '0');
  const canonical = Buffer.concat([signature.subarray(0, SCALAR_BYTES), Buffer.from(lower, 'hex')]);
  return token.slice(0, end) + canonical.toString('base64url');
}

/** Returns false if s is above n / 2, or if the signature is not canonical base64url of 64 bytes. Does not throw. */
function hasCanonicalSignature(token: string): boolean {
  const text = token.slice(token.lastIndexOf('.') + 1);
  const signature = Buffer.from(text, 'base64url');
  if (signature.length !== 2 * SCALAR_BYTES || signature.toString('base64url') !== text) return false;
  return scalarAt(signature, SCALAR_BYTES) <= HALF_ORDER;
}

function scalarAt(signature: Buffer, offset: number): bigint {
  return BigInt(`0x${signature.subarray(offset, offset + SCALAR_BYTES).toString('hex')}`);
}
