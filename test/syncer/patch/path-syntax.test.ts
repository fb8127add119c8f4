/** Parsing and printing of patch paths. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parsePath, type Segment, printPath } from '../../../src/syncer/patch/path-syntax.ts';
import type { ConcretePath } from '../../../src/syncer/translate/types.ts';

function parsed(text: string): readonly Segment[] {
  const result = parsePath(text);
  if (!result.ok) throw new Error(`${text}: ${result.problem.message} at ${result.problem.offset}`);
  return result.segments;
}

/** Short form: names as they are, indices as numbers, `*` as null. */
function short(text: string): (string | number | null)[] {
  return parsed(text).map((segment) => {
    if (segment.kind === 'wildcard') return null;
    if (segment.kind === 'filter') return `?${segment.expression}@${segment.offset}`;
    return segment.kind === 'index' ? segment.index : segment.key;
  });
}

describe('paths that parse', () => {
  test.each<[string, (string | number | null)[]]>([
    ['', []],
    ['  ', []],
    ['$', []],
    ['.', []],
    ['a', ['a']],
    ['a.b.c', ['a', 'b', 'c']],
    ['.a.b', ['a', 'b']],
    ['$.a.b', ['a', 'b']],
    ['$["a"].b', ['a', 'b']],
    ['$[0]', [0]],
    ['$ref.x', ['$ref', 'x']],
    [' a.b ', ['a', 'b']],
    ['a.b.', ['a', 'b']],
    ['a[0].b', ['a', 0, 'b']],
    ['a[ 12 ].b', ['a', 12, 'b']],
    ['a[*].b', ['a', null, 'b']],
    ['a.*.b', ['a', null, 'b']],
    ['*', [null]],
    ['a[*][*]', ['a', null, null]],
    ['a["b.c"].d', ['a', 'b.c', 'd']],
    ["a['x.y/z']", ['a', 'x.y/z']],
    ['a."b.c".d', ['a', 'b.c', 'd']],
    ['a.["b"]', ['a', 'b']],
    ['"a b"', ['a b']],
    ['a["it\'s"]', ['a', "it's"]],
    [String.raw`a["x\"y\\z\n"]`, ['a', String.raw`x"y\z\n`]],
    ['a[""]', ['a', '']],
    ['a["*"]', ['a', '*']],
    ['a["[0]"]', ['a', '[0]']],
    ['metadata.annotations.ctx-1', ['metadata', 'annotations', 'ctx-1']],
    ['system:node', ['system:node']],
    ['ключ.日本', ['ключ', '日本']],
    // Without quotes, as vCluster reads them.
    ['a[b].c', ['a', 'b', 'c']],
    ['a[example.com/owner]', ['a', 'example.com/owner']],
    ['a[ b c ]', ['a', 'b c']],
    // jsonpath-plus would read these differently.
    ['a;b.c~d.e^f', ['a;b', 'c~d', 'e^f']],
    ["a#1.it's.x@y(z)", ['a#1', "it's", 'x@y(z)']],
    ['a["b]c"].d[?(@.e)]', ['a', 'b]c', 'd', '?@.e@13']],
    ['a[?(@.b == "c")].d', ['a', '?@.b == "c"@4', 'd']],
    ['a[?( @ )][*]', ['a', '? @ @4', null]],
    ['[?(@)]', ['?@@3']],
    [
      'a[?(@[0] && (")]" + /[)\\]]/.test(`${@}]`)))].b',
      ['a', '?@[0] && (")]" + /[)\\]]/.test(`${@}]`))@4', 'b'],
    ],
  ])('%j', (text, expected) => {
    expect(short(text)).toEqual(expected);
  });

  test('a plain number is a key and an index, a quoted one is a key, a bracketed one an index', () => {
    expect(parsed('a.0')[1]).toEqual({ kind: 'key', key: '0', index: 0 });
    expect(parsed('a["0"]')[1]).toEqual({ kind: 'key', key: '0', index: undefined });
    expect(parsed('a[0]')[1]).toEqual({ kind: 'index', index: 0 });
  });
});

describe('paths that do not parse name the part and the character', () => {
  test.each<[string, number, RegExp]>([
    ['a..b', 1, /recursive descent/],
    ['..a', 0, /recursive descent/],
    ['$..a', 1, /recursive descent/],
    ['a.?(@.b)', 2, /a filter stands in brackets/],
    ['a[?@.b]', 3, /has its expression in parentheses/],
    ['a[?(@.b', 1, /unclosed filter/],
    ['a[?(@.b]', 1, /unclosed filter/],
    ['a[?("x)]', 1, /unclosed filter/],
    ['a[?(@) x]', 7, /expected "\]"/],
    ['a[?(@),?(@)]', 2, /unions/],
    ['a[b"c]', 2, /quote/],
    ['a[(@.length-1)]', 2, /scripts such as/],
    ['a.(@.length-1)', 2, /scripts such as/],
    ['a[0:2]', 2, /slices such as "\[0:2\]"/],
    ['a[:2]', 2, /slices/],
    ['a[-1]', 2, /negative indices/],
    ['a.-1', 2, /negative indices/],
    ['a[0,1]', 2, /unions/],
    ['a["b","c"]', 2, /unions/],
    ['a.b,c', 2, /unions/],
    ['a[01]', 2, /not an index/],
    ['a[99999999999]', 2, /not an index/],
    ['a[', 1, /unclosed bracket/],
    ['a["b"', 1, /unclosed bracket/],
    ['a[]', 2, /empty segment/],
    ['a[ ]', 3, /empty segment/],
    ['a["b', 2, /unclosed quote/],
    ["a['b", 2, /unclosed quote/],
    ['a[b[c]]', 2, /bracket in bracket/],
    ['a]', 1, /no bracket is open/],
    ['a[0]]', 4, /no bracket is open/],
    ['a[0]b', 4, /expected "\." or "\["/],
    ['"a"b', 3, /expected "\." or "\["/],
    ['a["b"c]', 5, /expected "\]"/],
    ['a. b', 2, /blanks/],
    ['a"b', 0, /quote/],
    ['a.foo*', 2, /wildcard stands alone/],
    ['a.b()', 2, /functions/],
    ['a.@string', 2, /type selectors/],
    ['a.b^', 2, /operator/],
    ['a.$', 2, /"\$"/],
    ['a.__proto__.b', 2, /"__proto__" cannot be a segment/],
    ["a['__proto__']", 2, /"__proto__" cannot/],
  ])('%j', (text, offset, message) => {
    const result = parsePath(text);
    expect(result).toMatchObject({ ok: false });
    if (result.ok) return;
    expect(result.problem.message).toMatch(message);
    expect(result.problem.offset).toBe(offset);
  });

  test('limits on length and depth', () => {
    expect(parsePath(`${'a.'.repeat(64)}b`)).toMatchObject({ problem: { offset: 128 } });
    expect(parsePath('a'.repeat(5000))).toMatchObject({ problem: { offset: 4096 } });
  });

  test('leading spaces count in offsets', () => {
    expect(parsePath('  a[-1]')).toMatchObject({ problem: { offset: 4 } });
  });

  test('parsing does not throw for any text, and every offset is inside the text', () => {
    const parts = fc.constantFrom('?(', ...Array.from(`a.[]"'*0$@ \\:,-()^`));
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(parts).map((list) => list.join('')),
        ),
        (text) => {
          const result = parsePath(text);
          const { message, offset } = result.ok ? { message: 'none', offset: 0 } : result.problem;
          expect(offset).toBeLessThanOrEqual(text.length);
          expect(message).not.toBe('');
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe('printing', () => {
  test.each<[ConcretePath, string]>([
    [[], ''],
    [['subsets', 0, 'addresses', 1, 'ip'], 'subsets.0.addresses.1.ip'],
    [['metadata', 'annotations', 'example.com/key'], 'metadata.annotations."example.com/key"'],
    [['metadata', 'annotations', 'ctx-1'], 'metadata.annotations.ctx-1'],
    [['a', 'b[0]'], 'a."b[0]"'],
    [['a', ''], 'a.""'],
    [['a', '*'], 'a."*"'],
    [['a', ' b'], 'a." b"'],
    [['a', 'say "hi"'], String.raw`a."say \"hi\""`],
    [['a', 'with space'], 'a.with space'],
    [['$'], '"$"'],
  ])('%j', (path, expected) => {
    expect(printPath(path)).toBe(expected);
  });

  test('a printed path parses to the same path', () => {
    const odd = fc.constantFrom(...Array.from(`.[]"'*$\\ ?()@,^~:-0a`));
    const key = fc
      .oneof(
        fc.string(),
        fc.string({ unit: 'grapheme' }),
        fc.array(odd, { maxLength: 6 }).map((all) => all.join('')),
      )
      .filter((text) => text !== '__proto__');
    const step = fc.oneof(key, fc.nat(1000));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 8 }), (path) => {
        const back = parsed(printPath(path)).map((segment, at) => {
          if (segment.kind !== 'key') return segment;
          return typeof path[at] === 'number' ? segment.index : segment.key;
        });
        expect(back).toEqual(path);
      }),
      { numRuns: 2000 },
    );
  });
});
