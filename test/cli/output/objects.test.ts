/** Objects in files that no API server would take. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject } from '../../../src/base/json.ts';
import { typeProblem } from '../../../src/cli/output/objects.ts';

const ENDPOINTS = { apiVersion: 'v1', kind: 'Endpoints' };
const GADGET = { apiVersion: 'example.com/v1', kind: 'Gadget' };

test.each<[JsonObject, RegExp]>([
  [{ ...ENDPOINTS, metadata: { name: 'a', labels: { version: 1.1 } } }, /labels of type string/],
  [
    { ...ENDPOINTS, metadata: { name: 'a', labels: { version: 'a b' } } },
    /metadata\.labels: Invalid value: "a b"/,
  ],
  [{ ...ENDPOINTS, metadata: { name: 'a', annotations: { n: 5 } } }, /annotations of type string/],
  [{ ...ENDPOINTS, metadata: { name: 'a' }, subsets: [{ ports: [{ port: '8080' }] }] }, /port of type int32/],
  [{ ...ENDPOINTS, metadata: { name: 'a' }, subsets: {} }, /cannot unmarshal object/],
  [{ ...ENDPOINTS, metadata: { name: 'a', managedFields: 'x' } }, /cannot unmarshal string/],
  [{ ...GADGET, metadata: { name: 'a', managedFields: 'x' } }, /cannot unmarshal string/],
  [{ ...GADGET, metadata: { name: 'a', labels: { n: 1 } } }, /labels of type string/],
])('%o', (object, problem) => {
  expect(typeProblem(object)).toMatch(problem);
});

test.each<JsonObject>([
  {
    ...ENDPOINTS,
    metadata: { name: 'a' },
    subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }],
  },
  { ...ENDPOINTS, metadata: { name: 'a', namespace: 'b' }, unknown: 1 },
  { ...GADGET, metadata: { name: 'a', labels: { n: '1' } }, subsets: 5 },
])('%o is taken', (object) => {
  expect(typeProblem(object)).toBeUndefined();
});

test('what people wrote', () => {
  const file = join(import.meta.dirname, '../../cases/world/values/i11.yaml');
  expect(typeProblem(parse(readFileSync(file, 'utf8')) as JsonObject)).toMatch(
    /no API server takes this object/,
  );
});
