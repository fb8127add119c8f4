/** The token with which a paged list goes on: where it stopped, and the revision that its pages show. */

import { isJsonObject, type JsonValue } from '../../base/json.ts';
import { badRequest } from '../status.ts';

export interface ContinuePoint {
  /** -1: a continuation that shows the present, after the snapshot was lost. */
  readonly revision: number;
  /** The last key that was handed out. */
  readonly after: string;
}

export function encodeContinue({ revision, after }: ContinuePoint): string {
  const token = { v: 'meta.k8s.io/v1', rv: revision, start: `${after}\0` };
  return Buffer.from(JSON.stringify(token)).toString('base64url');
}

/** Throws 400. */
export function decodeContinue(token: string): ContinuePoint {
  const wrong = illegalBase64UrlAt(token);
  if (wrong !== undefined) throw invalidToken(`illegal base64 data at input byte ${wrong}`);
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
  const wrong = text.search(/[^A-Za-z0-9_-]/);
  if (wrong >= 0) return wrong;
  return text.length % 4 === 1 ? text.length - 1 : undefined;
}

function invalidToken(why: string): Error {
  return badRequest(`invalid continue token: continue key is not valid: ${why}`);
}
