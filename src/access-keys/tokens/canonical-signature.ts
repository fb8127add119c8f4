/**
 * One text per token. For an ECDSA signature (r, s), (r, n − s) verifies as well, so a token would have a second form: tokens are signed with
 * the lower s, and every other form is rejected.
 */

/** Order n of the curve P-256. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const HALF_ORDER = ORDER >> 1n;
const SCALAR_BYTES = 32;

/** `token`: a JWT signed with ES256. */
export function withCanonicalSignature(token: string): string {
  const end = token.lastIndexOf('.') + 1;
  const signature = Buffer.from(token.slice(end), 'base64url');
  const s = scalarAt(signature, SCALAR_BYTES);
  if (s <= HALF_ORDER) return token;
  const lower = (ORDER - s).toString(16).padStart(2 * SCALAR_BYTES, '0');
  const canonical = Buffer.concat([signature.subarray(0, SCALAR_BYTES), Buffer.from(lower, 'hex')]);
  return token.slice(0, end) + canonical.toString('base64url');
}

/** False for the higher s and for every other base64 form of the signature. Never throws. */
export function hasCanonicalSignature(token: string): boolean {
  const text = token.slice(token.lastIndexOf('.') + 1);
  const signature = Buffer.from(text, 'base64url');
  if (signature.length !== 2 * SCALAR_BYTES || signature.toString('base64url') !== text) return false;
  return scalarAt(signature, SCALAR_BYTES) <= HALF_ORDER;
}

function scalarAt(signature: Buffer, offset: number): bigint {
  return BigInt(`0x${signature.subarray(offset, offset + SCALAR_BYTES).toString('hex')}`);
}
