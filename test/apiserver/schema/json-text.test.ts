/** Fields that a JSON text names twice. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { duplicateFields } from '../../../src/apiserver/schema/json-text.ts';

test('exactly the duplicate keys are found', () => {
  fc.assert(fc.property(fc.json({ maxDepth: 4 }), (text) => duplicateFields(text).length === 0));
  expect(duplicateFields('{"a":1, "b":{"c":[{"d":1,"d":2}]}, "a":{}}')).toEqual([
    'duplicate field "b.c[0].d"',
    'duplicate field "a"',
  ]);
  expect(duplicateFields('{"a\\"b":1,"a\\"b":2,"\\u0061":1,"a":2}')).toEqual([
    'duplicate field "a\\"b"',
    'duplicate field "a"',
  ]);
});
