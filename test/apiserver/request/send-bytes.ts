/** A minimal HTTP client, so that requests cost the thread of the test little processor time. */

import { request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { buffer } from 'node:stream/consumers';

export interface BytesRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes?: Buffer;
  /** PEM. */
  readonly ca?: string;
}

export interface BytesResponse {
  readonly status: number;
  readonly bytes: Buffer;
}

export function sendBytes({ method, url, headers, bytes, ca }: BytesRequest): Promise<BytesResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<BytesResponse>();
  const open = url.startsWith('https:') ? secureRequest : request;
  const options = { method, headers: { ...headers, 'content-length': bytes?.length ?? 0 } };
  const sent = open(url, ca === undefined ? options : { ...options, ca }, (response) => {
    buffer(response).then((body) => resolve({ status: response.statusCode ?? 0, bytes: body }), reject);
  });
  sent.on('error', reject);
  sent.end(bytes);
  return promise;
}
