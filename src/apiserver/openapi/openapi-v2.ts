/**
 * `/openapi/v2` without a definition in it. Kinds are described in `/openapi/v3`; but what kubectl cannot find there, a `List` or an
 * apiVersion that is not served, it checks against this document, and gives up in words that help nobody where there is none. What is
 * not defined passes, and the server itself says what is wrong with it.
 */

import { jsonResponse, type ApiResponse } from '../http/api-response.ts';
import { negotiate } from '../http/negotiate.ts';

/** Clients also ask with `v2@v1.0`, which is no media type that a Go program could read in the answer. */
const PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/** Throws a 406 `StatusError` for any other form than protobuf, JSON and YAML. */
export function openApiV2(version: string, accept: string | undefined): ApiResponse {
  if (!accept?.replace('v2@v1', 'v2.v1').includes(PROTOBUF)) {
    const info = { title: 'Kubernetes', version };
    return jsonResponse(200, { swagger: '2.0', info, paths: {} }, negotiate(accept));
  }
  const info = stringField(1, 'Kubernetes') + stringField(2, version);
  const body = stringField(1, '2.0') + stringField(2, info) + stringField(8, '');
  return { code: 200, headers: { 'content-type': PROTOBUF, vary: 'Accept' }, body };
}

/** A protobuf field of ASCII characters, fewer than 128: each byte is a character then. */
function stringField(number: number, text: string): string {
  return String.fromCharCode((number << 3) | 2, text.length) + text;
}
