/**
 * `/openapi/v2` without definitions. Kinds are described in `/openapi/v3`, but kubectl validates a kind that is not there, such as `List` or
 * an unknown apiVersion, against this document, and fails with a misleading message without it. A kind without a definition passes, and the
 * server reports the error.
 */

import { jsonResponse, type ApiResponse } from '../http/api-response.ts';
import { negotiate } from '../http/negotiate.ts';

/** Clients also accept `v2@v1.0`, which Go's parser of media types rejects in a response. */
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

/** A protobuf field of fewer than 128 ASCII characters, so that each byte is a character. */
function stringField(number: number, text: string): string {
  return String.fromCharCode((number << 3) | 2, text.length) + text;
}
