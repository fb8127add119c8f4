/** JSON texts in strings: reading them, and replacing strings in them with everything else kept byte for byte. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isJsonObject, textAt, type JsonValue } from '../../../src/base/json.ts';
import type { ReferenceConfig } from '../../../src/syncer/patch/patch-schema.ts';
import { JsonText } from '../../../src/syncer/patch/json-text.ts';
import type { ConcretePath } from '../../../src/syncer/translate/types.ts';
import { withValueAt } from '../../../src/syncer/translate/paths.ts';
import { build, context, type BuildOptions } from './build.ts';

function read(text: string): JsonText {
  const found = JsonText.read(text);
  if (!(found instanceof JsonText)) throw new Error(`not read: ${text}`);
  return found;
}

const BLANKS = fc.array(fc.constantFrom(' ', '\n', '\t', '\r'), { maxLength: 3 }).map((all) => all.join(''));

/** A text as a string of JSON, with escapes that need not be there. */
function literalOf(text: string): fc.Arbitrary<string> {
  const units = Array.from({ length: text.length }, (_, at) => text.charAt(at));
  const written = units.map((unit) => {
    const code = unit.charCodeAt(0).toString(16).padStart(4, '0');
    const plain = JSON.stringify(unit).slice(1, -1);
    const slash = unit === '/' ? ['\\/'] : [];
    return fc.constantFrom(plain, plain, plain, `\\u${code}`, `\\u${code.toUpperCase()}`, ...slash);
  });
  return fc.tuple(...written).map((all) => `"${all.join('')}"`);
}

const KEY = fc.oneof(
  fc.string({ maxLength: 3, unit: 'grapheme' }),
  fc.constantFrom('a', 'b', 'constructor', 'name', 'é\u2028'),
);
const SCALAR = fc.oneof(
  fc.constantFrom('null', 'true', 'false', '0', '-0', '-1.5e+3', '1E400', '123456789012345678901234567890'),
  KEY.chain(literalOf),
);

function listOf(element: fc.Arbitrary<string>, open: string, close: string): fc.Arbitrary<string> {
  const padded = fc.tuple(BLANKS, element, BLANKS).map((parts) => parts.join(''));
  return fc
    .tuple(BLANKS, fc.array(padded, { maxLength: 4 }))
    .map(([blanks, elements]) => `${open}${elements.length === 0 ? blanks : elements.join(',')}${close}`);
}

/** JSON texts in any formatting; keys may be there twice. */
const { text: ANY_TEXT } = fc.letrec<{ text: string; value: string; member: string }>((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, SCALAR, tie('text')),
  member: fc
    .tuple(KEY.chain(literalOf), BLANKS, BLANKS, tie('value'))
    .map(([key, before, after, value]) => `${key}${before}:${after}${value}`),
  text: fc.oneof(listOf(tie('value'), '[', ']'), listOf(tie('member'), '{', '}')),
}));

/** What `JSON.parse` reads, if it has members. */
function containerIn(text: string): JsonValue | undefined {
  try {
    const value = JSON.parse(text) as JsonValue; // what JSON.parse returns
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function stringPlaces(value: JsonValue, above: ConcretePath = []): ConcretePath[] {
  if (typeof value === 'string') return [above];
  if (Array.isArray(value)) return value.flatMap((element, at) => stringPlaces(element, [...above, at]));
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([key, member]) => stringPlaces(member, [...above, key]));
}

describe('a JSON text', () => {
  test('is read with any formatting, and is the same text if nothing is replaced', () => {
    fc.assert(
      fc.property(fc.tuple(BLANKS, ANY_TEXT, BLANKS), (parts) => {
        const text = parts.join('');
        expect(read(text).content).toEqual(JSON.parse(text));
        expect(read(text).with([])).toBe(text);
      }),
      { numRuns: 500 },
    );
  });

  test('has exactly one string replaced, unless a key on the way is there twice', () => {
    fc.assert(
      fc.property(ANY_TEXT, fc.nat(), (text, pick) => {
        const json = read(text);
        const places = stringPlaces(json.content);
        const place = places[pick % Math.max(1, places.length)];
        if (place === undefined) return;
        const literal = json.literalAt(place);
        const changed = json.with([{ place, literal: '"new"' }]);
        const isOnce = typeof literal === 'string';
        const restored = isOnce ? read(changed).with([{ place, literal }]) : changed;
        expect(restored).toBe(text);
        expect(JSON.parse(changed)).toEqual(isOnce ? withValueAt(json.content, place, 'new') : json.content);
      }),
      { numRuns: 1000 },
    );
  });

  test('the key __proto__ is data', () => {
    const text = '{"__proto__":{"a":"1"}}';
    expect(read(text).with([{ place: ['__proto__', 'a'], literal: '"2"' }])).toBe('{"__proto__":{"a":"2"}}');
  });

  test('several strings are replaced in any order, each once', () => {
    const text = '{ "b":"1",\t"a" : ["\\u0031", {"c":"1"}] }';
    const at = (...place: ConcretePath): { place: ConcretePath; literal: string } => ({
      place,
      literal: '"22"',
    });
    expect(read(text).with([at('a', 1, 'c'), at('b'), at('a', 0), at('b')])).toBe(
      '{ "b":"22",\t"a" : ["22", {"c":"22"}] }',
    );
  });

  test.each<[string, ConcretePath, string]>([
    ['{"a":"1","a":"2"}', ['a'], 'a'],
    ['{"a":{"b":"1"},"x":0,"\\u0061":{"b":"2"}}', ['a', 'b'], 'a'],
    ['[{"b":"1","b":"1"}]', [0, 'b'], 'b'],
    ['{"a":"1","o":{"__proto__":1,"__proto__":2}}', ['a'], '__proto__'],
  ])('%s: a key that is there twice has no place', (text, place, duplicateKey) => {
    expect(read(text).literalAt(place)).toEqual({ duplicateKey });
  });

  test('a key that is there twice elsewhere does not matter', () => {
    const text = '{"o":{"x":1,"x":2},"a":"1"}';
    expect(read(text).with([{ place: ['a'], literal: '"2"' }])).toBe('{"o":{"x":1,"x":2},"a":"2"}');
  });

  test.each([
    '',
    'a',
    '5',
    '"a"',
    'null',
    'true',
    '{',
    '[1,]',
    '{a:1}',
    "{'a':1}",
    '[1] x',
    '[1]//',
    '\uFEFF[1]',
    '[\u00a01]',
  ])('%j is none', (text) => {
    expect(JsonText.read(text)).toBeUndefined();
  });

  test('no text is an error', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string({ unit: fc.constantFrom('[', ']', '{', '}', ':', ',', '"', '\\', 'a', '1', ' ') }),
        ),
        (text) => {
          const found = JsonText.read(text);
          expect(found instanceof JsonText ? found.content : undefined).toEqual(containerIn(text));
        },
      ),
    );
  });

  test.each([
    ['64 levels', `${'['.repeat(64)}${']'.repeat(64)}`, undefined],
    ['65 levels', `${'['.repeat(65)}${']'.repeat(65)}`, 'the JSON text is nested deeper than 64 levels'],
    [
      'a million brackets',
      `${'['.repeat(500_000)}${']'.repeat(500_000)}`,
      'the JSON text is nested deeper than 64 levels',
    ],
    ['1 MiB', JSON.stringify(['x'.repeat(1024 * 1024 - 4)]), undefined],
    ['more', JSON.stringify(['x'.repeat(1024 * 1024 - 3)]), 'the JSON text has more than 1048576 characters'],
  ])('%s', (_, text, problem) => {
    const found = JsonText.read(text);
    expect(found instanceof JsonText ? undefined : found).toEqual(
      problem === undefined ? undefined : { problem },
    );
  });

  test('the work grows with its length, not with the square of it', () => {
    const text = `{${Array.from({ length: 50_000 }, (_, at) => `"k${at}":"v"`).join(',')}}`;
    const json = read(text);
    const places = Object.keys(json.content as object).map((key) => [key]);
    const changed = json.with(places.map((place) => ({ place, literal: '"w"' })));
    expect(changed).toBe(text.replaceAll('"v"', '"w"'));
  }, 30_000);
});

interface Named {
  readonly name: string;
  readonly namespace?: string;
}

describe('a reference in a JSON text', () => {
  const NAME = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}[a-z0-9]$/u);
  const NAMESPACE = fc.constantFrom('team', 'default');
  const OTHER = fc.tuple(
    KEY.filter((key) => !['name', 'namespace'].includes(key)).chain(literalOf),
    fc.oneof(SCALAR, ANY_TEXT),
  );
  const key = (name: string): fc.Arbitrary<string> => literalOf(name);
  const member = (name: string, values: fc.Arbitrary<string>): fc.Arbitrary<[string, string]> =>
    fc.tuple(key(name), values.chain(literalOf));
  const ELEMENT = fc
    .tuple(
      member('name', NAME),
      fc.option(member('namespace', NAMESPACE), { nil: undefined }),
      fc.array(OTHER, { maxLength: 2 }),
    )
    .chain(([name, namespace, others]) => {
      const members = [name, ...(namespace === undefined ? [] : [namespace]), ...others];
      const printed = fc.tuple(
        ...members.map(([k, v]) =>
          fc.tuple(BLANKS, BLANKS, BLANKS).map(([a, b, c]) => `${a}${k}${b}:${c}${v}`),
        ),
      );
      return printed
        .chain((all) => fc.shuffledSubarray(all, { minLength: all.length }))
        .map((all) => `{${all.join(',')}}`);
    });
  const reference: ReferenceConfig = {
    apiVersion: 'example.com/v1',
    kind: 'Network',
    namePath: '[*].name',
    namespacePath: '[*].namespace',
  };
  const byName = { team: 'host-team', default: 'host-default' };
  const modes: [string, BuildOptions][] = [
    ['single-namespace', {}],
    ['long names', { naming: 'long' }],
    ['mappings', { mode: { kind: 'mappings', byName, mappingsOnly: true } }],
    ['the legacy multi-namespace mode', { mode: { kind: 'legacy-multi' } }],
  ];

  test.each(modes)('is translated back to the same text, byte for byte: %s', async (_, options) => {
    const { pipeline } = build([{ path: 'ref', reference }], options);
    await fc.assert(
      fc.asyncProperty(listOf(ELEMENT, '[', ']'), async (ref) => {
        const { object, references } = await pipeline.apply('toHost', { ref }, context());
        const virtual = (JSON.parse(ref) as Named[]).map(({ name, namespace = 'default' }) => [
          namespace,
          name,
        ]);
        expect(references.map(({ namespace, name }) => [namespace, name])).toEqual(virtual);
        const host = (JSON.parse(textAt(object, 'ref')) as Named[]).map(({ name }) => name);
        expect(host).toEqual(references.map(({ written }) => written?.name));
        const back = await pipeline.apply('toVirtual', object, context({ virtualObject: { ref } }));
        expect(back.object).toEqual({ ref });
      }),
      { numRuns: 200 },
    );
  });
});
