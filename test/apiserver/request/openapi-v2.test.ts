/** Content negotiation of the OpenAPI v2 document. */

import { describe, expect, test } from 'vitest';
import { openApiV2 } from '../../../src/apiserver/request/meta-handler.ts';

const VERSION = 'v1.36.0+test';

describe('the OpenAPI v2 document', () => {
  test.each([
    'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
    'application/com.github.proto-openapi.spec.v2.v1.0+protobuf, application/json',
  ])('is protobuf for %s, named in a way that clients can read', (accept) => {
    const { headers, body } = openApiV2(VERSION, accept);
    expect(headers['content-type']).toBe('application/com.github.proto-openapi.spec.v2.v1.0+protobuf');
    const bytes = Buffer.from(body);
    expect(bytes.every((byte) => byte < 0x80)).toBe(true);
    const document = fields(bytes);
    expect(document.get(1)?.toString()).toBe('2.0');
    expect(document.get(8)).toHaveLength(0);
    const info = fields(document.get(2) ?? Buffer.alloc(0));
    expect([...info].map(([number, text]) => [number, text.toString()])).toEqual([
      [1, 'Kubernetes'],
      [2, VERSION],
    ]);
  });

  test.each([undefined, '', '*/*', 'application/json'])('is JSON for %j', (accept) => {
    expect(JSON.parse(openApiV2(VERSION, accept).body)).toEqual({
      swagger: '2.0',
      info: { title: 'Kubernetes', version: VERSION },
      paths: {},
    });
  });

  test('is not available in other media types', () => {
    expect(() => openApiV2(VERSION, 'text/html')).toThrow(/only the following media types are accepted/u);
  });
});

/** Number → content, of a message of fields with a length below 128 each. */
function fields(message: Buffer): Map<number, Buffer> {
  const found = new Map<number, Buffer>();
  let at = 0;
  while (at < message.length) {
    const [tag = 0, length = 0] = message.subarray(at, at + 2);
    expect(tag & 7).toBe(2);
    found.set(tag >> 3, message.subarray(at + 2, at + 2 + length));
    at += 2 + length;
  }
  return found;
}
