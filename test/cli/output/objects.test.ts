/** Objects in files, read as kubectl reads them, and the positions of what is wrong in them. */

import { expect, test } from 'vitest';
import type { ConfigProblem } from '../../../src/base/errors.ts';
import { parseObjects } from '../../../src/cli/output/objects.ts';
import type { KubeObject } from '../../../src/kube/object.ts';

const WEB = 'apiVersion: v1\nkind: Endpoints\nmetadata: {name: web}\n';
const GADGET = WEB.replace('v1\nkind: Endpoints', 'example.com/v1\nkind: Gadget');

function read(text: string): { objects: KubeObject[]; problems: string[] } {
  const found: ConfigProblem[] = [];
  const objects = parseObjects('f', text, found);
  return {
    objects,
    problems: found.map(
      ({ line, column, path, message }) => `${line}:${column} ${path}${path && ': '}${message}`,
    ),
  };
}

test('merge keys and the octal numbers of YAML 1.1 mean what they mean to kubectl', () => {
  const text =
    'x: &x {name: web}\napiVersion: example.com/v1\nkind: Gadget\nmetadata: {<<: *x}\nmode: 0440\n';
  const { objects, problems } = read(text);
  expect(problems).toEqual([]);
  expect(objects).toMatchObject([{ metadata: { name: 'web' }, mode: 0o440 }]);
});

test('many aliases are followed, and not more values than a file may have', () => {
  const aliases = Array.from({ length: 500 }, () => '*l').join(', ');
  expect(read(`${GADGET}x: &l [1, 2]\ny: [${aliases}]\n`).problems).toEqual([]);
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
    ['7:3 items[1].metadata.name: an object of kind Pod has no metadata.name'],
  ],
])('one problem, with its position, beside the other objects: %o', (text, expected) => {
  const { objects, problems } = read(text);
  expect(problems).toEqual(expected);
  expect(objects).toMatchObject([{ kind: 'Endpoints', metadata: { name: 'web' } }]);
});
