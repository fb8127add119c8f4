/** Decoding for any input, and times in the canonical form of a kube-apiserver. */

import { describe, expect, test } from 'vitest';
import fc from 'fast-check';
import { canonicalTime, decodeObject } from '../../../src/apiserver/schema/decode.ts';
import type { JsonValue } from '../../../src/base/json.ts';
import { decoded, outcome, service, types } from '../random-services.ts';

const ENDPOINTS = types.get('Endpoints');

describe('decoding', () => {
  const anything = fc.jsonValue({ maxDepth: 4 }).map((value) => value as JsonValue);

  test('returns an object or throws an error, for any input', () => {
    fc.assert(
      fc.property(fc.record({ metadata: anything, subsets: anything }), (input) => {
        expect(outcome(() => decodeObject(ENDPOINTS, input))).toMatch(/^(fine|DecodeError)$/);
      }),
    );
  });

  test('decodes its own result to itself', () => {
    fc.assert(
      fc.property(service, (object) => {
        const once = decoded(object);
        expect(JSON.stringify(decoded(once))).toBe(JSON.stringify(once));
      }),
    );
  });
});

describe('a time', () => {
  test.each([
    ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05Z'],
    ['2026-01-02T03:04:05.999Z', '2026-01-02T03:04:05Z'],
    ['2026-01-02T03:04:05+02:00', '2026-01-02T01:04:05Z'],
    ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59Z'],
  ])('%s becomes %s', (text, canonical) => {
    expect(canonicalTime(text, 'time')).toBe(canonical);
  });

  // In UTC these have years that RFC 3339 cannot express: other clients could not parse the object.
  test.each(['9999-12-31T23:59:59-01:00', '0000-01-01T00:00:00+01:00'])('%s is invalid', (text) => {
    expect(canonicalTime(text, 'time')).toBeUndefined();
    expect(canonicalTime(text.replace(/([+-]\d\d:)/, '.000000$1'), 'microtime')).toBeUndefined();
  });
});
