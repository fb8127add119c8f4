/** The continue token of a paged list: the last key and the revision of the list. */

import { isJsonObject, type JsonValue } from '../../base/json.ts';
import { badRequest } from '../status.ts';

export interface ContinuePoint {
  /** -1: continues with current objects, because the revision of the list is compacted. */
  readonly revision: number;
  /** The last key of the previous page. */
  readonly after: string;
}

export function encodeContinue({ revision, after }: ContinuePoint): string {
  const token = { v: 'meta.k8s.io/v1', rv: revision, start: `${after}\0` };
  return Buffer.from(JSON.stringify(token)).toString('base64url');
}

/** Throws 400. */
export function decodeContinue(token: string): ContinuePoint {
  const illegalAt = illegalBase64UrlAt(token);
  if (illegalAt !== undefined) throw invalidToken(`illegal base64 data at input byte ${illegalAt}`);
  let json: JsonValue;
  try {
    json = JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as JsonValue; // JSON.parse yields JSON
  } catch (cause) {
    throw Object.assign(invalidToken('it does not hold JSON'), { cause });
  }
  const [revision, start] = isJsonObject(json) ? [json['rv'], json['start']] : [];
  if (typeof revision !== 'number' || typeof start !== 'string' || !Number.isSafeInteger(revision)) {
    throw invalidToken('incorrect encoded start resourceVersion');
  }
  return { revision, after: start.replace(/\0$/, '') };
}

function illegalBase64UrlAt(text: string): number | undefined {
  const illegalAt = text.search(/[^A-Za-z0-9_-]/);
  if (illegalAt >= 0) return illegalAt;
  return text.length % 4 === 1 ? text.length - 1 : undefined;
}

function invalidToken(why: string): Error {
  return badRequest(`invalid continue token: continue key is not valid: ${why}`);
}
