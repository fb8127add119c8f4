/** Objects in files, read as kubectl reads them, and those that no API server would take. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject } from '../../../src/base/json.ts';
import type { ConfigProblem } from '../../../src/base/errors.ts';
import { parseObjects, typeProblem } from '../../../src/cli/output/objects.ts';
import type { KubeObject } from '../../../src/kube/object.ts';

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

const WEB = 'apiVersion: v1\nkind: Endpoints\nmetadata: {name: web}\n';

function read(text: string): { objects: KubeObject[]; problems: string[] } {
  const found: ConfigProblem[] = [];
  const objects = parseObjects('f', text, found);
  return { objects, problems: found.map(({ line, column, message }) => `${line}:${column} ${message}`) };
}

test('merge keys and the octal numbers of YAML 1.1 mean what they mean to kubectl', () => {
  const text = 'x: &x {name: web}\napiVersion: v1\nkind: Gadget\nmetadata: {<<: *x}\nmode: 0440\n';
  const { objects, problems } = read(text);
  expect(problems).toEqual([]);
  expect(objects).toMatchObject([{ metadata: { name: 'web' }, mode: 0o440 }]);
});

test('many aliases are followed, and not more values than a file may have', () => {
  const aliases = Array.from({ length: 500 }, () => '*l').join(', ');
  expect(read(`${WEB}x: &l [1, 2]\ny: [${aliases}]\n`).problems).toEqual([]);
  const bomb = ['a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]'];
  for (const [name, before] of ['ba', 'cb', 'dc', 'ed', 'fe'].map((pair) => pair.split('')))
    bomb.push(`${name}: &${name} [${Array.from({ length: 10 }, () => `*${before}`).join(', ')}]`);
  expect(read(bomb.join('\n')).problems).toEqual([
    expect.stringMatching(/values after aliases are expanded/),
  ]);
});

test.each([
  // A syntax error is one problem, and the next document is read.
  [`{{- if }}\n${WEB}---\n${WEB}`, ['1:3 block collections are not allowed within flow collections']],
  [
    `${WEB}kind: Service\n---\n${WEB}`,
    ['4:1 the key "kind" is already set in line 2: remove one of the two'],
  ],
  [`${WEB}x: *y\n---\n${WEB}`, ['4:4 the alias *y has no anchor &y before it']],
  [`hello\n---\n${WEB}`, ['1:1 a document must be an object with apiVersion, kind and metadata']],
  // An item of a List is where it is, not where the List begins.
  [
    `kind: List\nitems:\n- ${WEB.replaceAll('\n', '\n  ')}\n- kind: Pod\n`,
    ['7:3 an object of kind Pod has no metadata.name'],
  ],
])('one problem, with its position, beside the other objects: %o', (text, expected) => {
  const { objects, problems } = read(text);
  expect(problems).toEqual(expected);
  expect(objects).toMatchObject([{ kind: 'Endpoints', metadata: { name: 'web' } }]);
});
