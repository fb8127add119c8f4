/** The lifetime of a token: as requested or the default, at most the maximum, never beyond the end of its key; pure. */

import { invalidValue, type FieldError } from '../../apiserver/field-error.ts';
import { failure } from '../../apiserver/status.ts';
import type { JsonObject } from '../../base/json.ts';

/** Seconds. */
export interface TokenTtls {
  readonly default: number;
  readonly max: number;
}

export interface GrantedTtl {
  /** Epoch seconds. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** Empty if the client gets the lifetime that it requested. */
  readonly warning: string;
}

export function checkTtl(spec: JsonObject, { max }: TokenTtls): FieldError[] {
  const asked = askedTtl(spec);
  if (asked < 0) return [invalidValue('spec.ttl', asked, 'must be greater than or equal to 0')];
  if (asked > max) {
    return [
      invalidValue('spec.ttl', asked, `must not be more than ${max} seconds, the maximum of this server`),
    ];
  }
  return [];
}

/** Throws 401 if the key expires within this second. */
export function grantTtl(
  spec: JsonObject,
  ttls: TokenTtls,
  { nowMs, keyExpiresAtMs }: { readonly nowMs: number; readonly keyExpiresAtMs: number | undefined },
): GrantedTtl {
  const issuedAt = Math.floor(nowMs / 1000);
  const asked = askedTtl(spec);
  const wanted = issuedAt + (asked === 0 ? Math.min(ttls.default, ttls.max) : asked);
  const keyEnds = keyExpiresAtMs === undefined ? wanted : Math.floor(keyExpiresAtMs / 1000);
  const expiresAt = Math.min(wanted, keyEnds);
  if (expiresAt <= issuedAt) throw failure(401, 'Unauthorized', 'Unauthorized');
  const isCut = asked !== 0 && expiresAt < wanted;
  const warning = isCut
    ? `spec.ttl: reduced from ${asked} to ${expiresAt - issuedAt} seconds: the token expires with the access key that creates it`
    : '';
  return { issuedAt, expiresAt, warning };
}

/** 0: the default. */
function askedTtl({ ttl }: JsonObject): number {
  return typeof ttl === 'number' ? ttl : 0;
}
