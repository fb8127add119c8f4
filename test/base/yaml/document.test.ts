/** What a text means, as kubectl, Helm and vCluster read it; `go-reader.test.ts` compares it with their reader. */

import { expect, test } from 'vitest';
import { parseYaml } from '../../../src/base/yaml/document.ts';

test.each([
  ['a: [0X1F, 1e1_0, 0o17, 017, 1_000, 0b11, .5, 08]', { a: [31, 1e10, 15, 15, 1000, 3, 0.5, 8] }],
  ['a: [1:30, 190:20:30, 1e400, 2026-01-01, 0x]', { a: ['1:30', '190:20:30', '1e400', '2026-01-01', '0x'] }],
  ['on: 1\n', { true: 1 }],
  ['y: 1\n', { true: 1 }],
  ['1.10: a\n017: b\n0x1F: c\n1e10: d\n', { '1.1': 'a', 15: 'b', 31: 'c', '1e+10': 'd' }],
  ['"on": 1\n\'1.10\': 2\n', { on: 1, '1.10': 2 }],
  [
    'a: &a {k: 1, l: 1}\nb: {k: 2, <<: *a}\nc: {<<: *a, k: 2}',
    { a: { k: 1, l: 1 }, b: { k: 1, l: 1 }, c: { k: 2, l: 1 } },
  ],
  ['a: !foo 5\nb: !!str 5\nc: !!int "5"\n', { a: '5', b: '5', c: 5 }],
  ['{"a": "\u2028\u0080\u007f"}', { a: '\u2028\u0080\u007f' }],
  ['\ufeffa: 1', { a: 1 }],
])('%j', (text, json) => {
  expect(parseYaml(text)).toMatchObject({ json, isReadable: true });
});

test.each([
  ['a: x\u2028b', /U\+2028 is a line break to kubectl and Helm: write it as an escape/u],
  ['a: x\u0085b', /U\+0085 is a line break/u],
  ['a: x\rb', /U\+000D is a line break/u],
  ['a: "x\u0081"', /U\+0081 is a control character/u],
  ['a: {\nb: 1\n}', /must be sufficiently indented/u],
  ['%YAML 1.2\n---\na: 1', /remove the line that begins with %/u],
  ['null: 1', /a key must be text/u],
  ['1.2345678: 1', /a key must be text/u],
  ['a: ! 5', /remove the tag/u],
  ['a: !!binary YQ==', /remove the tag/u],
  ['a: !!int x', /not of the type !!int/u],
  ['-\ta: 1', /tab/u],
  ['{a: b?}', /needs quotes between brackets/u],
  ['? "a"b', /a key after "\?" needs a value/u],
  ['{a\n : 1}', /on one line/u],
])('%j is refused, because Go reads something else or nothing', (text, message) => {
  const { json, isReadable, problems } = parseYaml(text);
  expect({
    json,
    isReadable,
    message: problems.find(({ severity }) => severity === 'error')?.message,
  }).toEqual({
    json: null,
    isReadable: false,
    message: expect.stringMatching(message) as string,
  });
});
