/** Reading YAML and JSON with positions, duplicate keys and hostile input. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { writeYaml } from '../../src/base/yaml/write.ts';
import { readDocument } from '../../src/config-file/document.ts';
import { excerptAt, positionOf } from '../../src/config-file/source-file.ts';
import { read } from './read-text.ts';

describe('valid files', () => {
  test.each([
    ['nothing', '', {}],
    ['comments', '# only\n', {}],
    ['null', '~', {}],
    ['an empty document', '---\n...\n', {}],
    [
      'JSON with tabs',
      '{\n\t"a": {\n\t\t"b": [1, true, null, "x"]\n\t}\n}',
      { a: { b: [1, true, null, 'x'] } },
    ],
    ['keys of any scalar', '1: a\ntrue: b\n"": c', { 1: 'a', true: 'b', '': 'c' }],
    ['anchors', 'a: &x {k: 1}\nb: *x\nc: &x 2\nd: *x', { a: { k: 1 }, b: { k: 1 }, c: 2, d: 2 }],
    [
      'merge keys',
      'a: &x {k: 1, l: 1}\nb: {<<: *x, k: 2}\nc: {<<: [{l: 5}, *x]}',
      {
        a: { k: 1, l: 1 },
        b: { k: 2, l: 1 },
        c: { l: 5, k: 1 },
      },
    ],
    ['a quoted "<<" is a key', '"<<": 1', { '<<': 1 }],
    ['dates stay text', 'a: 2026-01-01', { a: '2026-01-01' }],
    [
      'switches of YAML 1.1, as for Go',
      'a: yes\nb: Off\nc: "yes"\nd: [YES, NO, y]\nyes: {on: 1}',
      { a: true, b: false, c: 'yes', d: [true, false, true], true: { true: 1 } },
    ],
    [
      'octal numbers of YAML 1.1, as for Go',
      'a: 0755\nb: 0o17\nc: "0755"\nd: 09',
      { a: 493, b: 15, c: '0755', d: 9 },
    ],
    ['a closing bracket below its key', 'a: [\n  1\n]\nb: {\n  c: 1\n}', { a: [1], b: { c: 1 } }],
    ['an empty document at the end', 'a: 1\n---\n', { a: 1 }],
    ['a comment as document at the end', 'a: 1\n---\n# nothing\n', { a: 1 }],
    ['an alias as key', 'a: &x k\n*x : 1', { a: 'k', k: 1 }],
  ])('%s', (_, text, value) => {
    expect(read(text)).toEqual({ value, problems: [], isReadable: true });
  });

  test('a __proto__ key is data', () => {
    const { value } = readDocument('f', 'a: {__proto__: {x: 1}}\nb: &b {__proto__: 2}\nc: {<<: *b}');
    expect(JSON.stringify(value)).toBe('{"a":{"__proto__":{"x":1}},"b":{"__proto__":2},"c":{"__proto__":2}}');
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
  });
});

describe('invalid files', () => {
  test.each([
    ['a list', '- a', ['1:1 the file must be a mapping of keys to values: write lines such as "key: value"']],
    ['text', 'hello', ['1:1 the file must be a mapping of keys to values: write lines such as "key: value"']],
    ['an alias of a list as key', 'a: &x [k]\n*x : 1', ['2:1 a key must be text']],
    ['a list as key', '[a]: 1', ['1:1 a key must be text']],
    ['an alias without anchor', 'a: *x', ['1:4 the alias *x has no anchor &x before it']],
    ['an anchor after its alias', 'a: *x\nb: &x 1', ['1:4 the alias *x has no anchor &x before it']],
    ['a merge of text', 'a: &x 1\nb: {<<: *x}', ['2:9 "<<" merges mappings only']],
    ['infinity', 'a: .inf', ['1:4 a number must be finite: put it in quotes if it is text']],
  ])('%s', (_, text, problems) => {
    expect(read(text)).toEqual({ value: {}, problems, isReadable: false });
  });

  test('all duplicate keys are reported, at every depth, and the rest of the file is checked', () => {
    expect(read('a: 1\nb:\n  c: 1\n  c: 2\na: {d: 1, "d": 2}')).toEqual({
      value: { a: { d: 2 }, b: { c: 2 } },
      isReadable: true,
      problems: [
        '4:3 the key "c" is already set in line 3: remove one of the two',
        '5:1 the key "a" is already set in line 1: remove one of the two',
        '5:11 the key "d" is already set in line 5: remove one of the two',
      ],
    });
  });

  test('a duplicate key is reported once, however many aliases lead to it', () => {
    const { problems } = readDocument('f', 'a: &a {k: 1, k: 2}\nb: *a\nc: {<<: *a}\n');
    expect(problems.map(({ offset, message }) => [offset, message])).toEqual([
      [13, 'the key "k" is already set in line 1: remove one of the two'],
    ]);
  });

  test('a recursive alias is an error', () => {
    expect(read('a: &x [*x]').problems).toEqual([
      '1:7 more than 100 levels of nesting, or an alias that contains itself',
    ]);
  });
});

describe('hostile files are rejected quickly', () => {
  const laughs = Array.from(
    { length: 12 },
    (_, i) => `l${i}: &l${i} [${Array.from({ length: 9 }, () => (i === 0 ? 'x' : `*l${i - 1}`)).join(', ')}]`,
  );
  test.each([
    ['a billion laughs', laughs.join('\n'), /more than 200000 values/u],
    ['brackets', '['.repeat(1 << 20), /more than 100 levels/u],
    ['many errors', 'a: b: c\n'.repeat(50), /a second ": "/u],
    ['braces', '{"a":'.repeat(1 << 17), /more than 100 levels/u],
    ['dashes', `${'- '.repeat(1 << 18)}x`, /more than 100 levels/u],
    [
      'indentation',
      Array.from({ length: 1_400 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'),
      /more than 100 levels/u,
    ],
    ['colons', 'a: '.repeat(1 << 15), /./u],
    ['an open quote', `a: "${'x'.repeat(1 << 20)}`, /./u],
    [
      'many anchors and aliases',
      Array.from({ length: 20_000 }, (_, i) => `k${i}: ${i % 2 ? `*a${i - 1}` : `&a${i} 1`}`).join('\n') +
        '\n*z',
      /./u,
    ],
    [
      'many keys twice',
      Array.from({ length: 20_000 }, (_, i) => `k${i % 19_999}: 1`).join('\n'),
      /already set/u,
    ],
  ])('%s', (_, text, message) => {
    const before = process.threadCpuUsage().user;
    const { problems } = readDocument('f', text);
    expect(problems[0]?.message).toMatch(message);
    expect(problems).toHaveLength(1);
    // Microseconds of processor time.
    expect(process.threadCpuUsage().user - before).toBeLessThan(5e6);
  });

  test('reading does not throw for any text', () => {
    const words = ['- ', '  ', '&x ', '*x', '<<', '\r\n', '---'];
    const piece = fc.constantFrom(...'a: \n[]{},"\'|>#!%\t?\0\u2028'.split(''), ...words);
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(piece, { maxLength: 60 }).map((parts) => parts.join('')),
        ),
        (text) => {
          const { value, problems, source } = readDocument('f', text);
          expect(JSON.parse(JSON.stringify(value))).toEqual(value);
          for (const { offset } of problems) expect(excerptAt(source, offset)).toContain('^');
        },
      ),
      { numRuns: 500 },
    );
  });

  test('JSON is read unchanged', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })), (value) => {
        const plain = JSON.parse(JSON.stringify(value)) as unknown; // without -0
        const sets = [JSON.stringify(plain), JSON.stringify(plain, null, '\t')].map(
          (text) => read(text).value,
        );
        expect(sets.map((set) => JSON.stringify(set))).toEqual([
          JSON.stringify(plain),
          JSON.stringify(plain),
        ]);
      }),
    );
  });
});

describe('positions', () => {
  const text = 'a:\n  b: [x, {c: yy}]\nd: &d\n  e: 1\nf: {<<: *d}\ng: *d\n';
  const document = readDocument('f', text);
  const at = (offset: number): string => {
    const { line, column } = positionOf(document.source, offset);
    return `${line}:${column}`;
  };

  test.each([
    [['a'], '1:1', '2:3'],
    [['a', 'b'], '2:3', '2:6'],
    [['a', 'b', 0], '2:7', '2:7'],
    [['a', 'b', 1, 'c'], '2:11', '2:14'],
    [['a', 'b', 1, 'missing'], '2:10', '2:10'],
    [['a', 'b', 7], '2:3', '2:3'],
    [['nowhere', 'at', 'all'], '1:1', '1:1'],
    [['f', 'e'], '4:3', '4:6'],
    [['g', 'e'], '4:3', '4:6'],
    [[], '1:1', '1:1'],
  ])('%j', (path, key, value) => {
    expect([at(document.offsetOfKey(path)), at(document.offsetOfValue(path))]).toEqual([key, value]);
  });

  test('every key of any mapping is found at its position', () => {
    const keys = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,8}$/u), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(keys, fc.boolean(), (names, isFlow) => {
        fc.pre(!names.some((name) => /^(?:y|n|on|off|yes|no|true|false|null)$/u.test(name)));
        const value = Object.fromEntries(names.map((name) => [name, { inner: name }]));
        const printed = writeYaml(value, { isFlow });
        const parsed = readDocument('f', printed);
        for (const name of names) {
          expect(printed.slice(parsed.offsetOfKey([name]))).toMatch(new RegExp(`^${name}:`, 'u'));
          expect(printed.slice(parsed.offsetOfValue([name, 'inner']))).toMatch(
            new RegExp(`^${name}\\b`, 'u'),
          );
        }
      }),
    );
  });
});
