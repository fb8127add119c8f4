/** The documents for verifiers of tokens: OpenID Connect Discovery and the key set. */

import { jsonResponse, type ApiResponse } from '../../apiserver/http/api-response.ts';
import type { JsonObject } from '../../base/json.ts';
import type { KeyRing } from './key-ring.ts';
import { KEY_SET_AGE_MS } from './rotation.ts';
import { ALGORITHM } from './signing-key.ts';

export const DISCOVERY_PATH = '/.well-known/openid-configuration';
export const KEY_SET_PATH = '/openid/v1/jwks';

const CACHE_CONTROL = `public, max-age=${KEY_SET_AGE_MS / 1000}`;

/** By path. If the issuer has a path, they are served below it too, because verifiers append to the issuer. */
export function tokenDocuments(
  ring: KeyRing,
  issuer: string,
): ReadonlyMap<string, () => Promise<ApiResponse>> {
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
