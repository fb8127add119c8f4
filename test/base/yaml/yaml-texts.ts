/** Generators of YAML texts and of values that readers of YAML 1.1 and 1.2 differ in. */

import fc from 'fast-check';
import type { JsonValue } from '../../../src/base/json.ts';

const WORDS =
  'y Y yes Yes YES yEs n N no No NO on On ON off Off OFF true True TRUE tRUE false False FALSE null Null NULL nULL ~ << = - ? .inf -.Inf +.INF .nan .NaN . .. --- ...';
const NUMBERS =
  '0 -0 +1 017 08 0o17 0O17 0x1F 0X1F -0x1f 0b11 0B11 0b-1 -0b1 1e1_0 1_000 1__0 1_ .5 +.5 5. 1.10 1.0 1e3 1E+3 1e-7 1e400 1e-400 190:20:30 1:30 0x 0b 0o8 12345678901 ' +
  '9007199254740993 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 +18446744073709551615 ' +
  '0xFFFFFFFFFFFFFFFF 0x1FFFFFFFFFFFFFFFF 1234567.8 123456.7 0.00001234 1e300 3.4e38 1.7976931348623157e308 16777217 10.0.0.1 1.2.3 2026-01-01 2026-1-1 2026-01-01T00:00:00Z 12:30:45 _1 -_1 1e 1e+ 0.1e1_0';

/** Unquoted text. */
export const yamlScalar: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...`${WORDS} ${NUMBERS}`.split(' ').filter((word) => !/^(?:-|\?|---|\.\.\.)$/u.test(word))),
  fc.stringMatching(/^[-+.]?[0-9][0-9a-fA-FxXoO_.:eE+-]{0,8}$/u).filter((text) => !text.endsWith(':')),
  fc.stringMatching(/^[-+]?(?:0[xXoObB]?)?[0-7_]{1,22}$/u),
  fc.stringMatching(/^[-+]?[0-9]{1,3}\.[0-9]{0,8}(?:[eE][-+]?[0-9]{1,3})?$/u),
);

/** Characters that are special in some version of YAML, or to some reader. */
const CHARACTERS = [
  ' \t\n\r:#,-?[]{}&*!|>\'"%@`=<~\\/._$aZ0',
  '\0\u0007\u001b\u007f\u0080\u0085\u009f\u00a0\u00ad\u2028\u2029\ufeff\ufffd\ufffe\uffff\ud7ff\ue000é日😀',
].flatMap((text) => Array.from(text));

const trickyText: fc.Arbitrary<string> = fc.oneof(
  yamlScalar,
  fc.constantFrom(...WORDS.split(' '), ''),
  fc.array(fc.constantFrom(...CHARACTERS), { maxLength: 8 }).map((parts) => parts.join('')),
  fc
    .array(
      fc.constantFrom(
        'a',
        'b c',
        ' x',
        'y ',
        '',
        '\tz',
        '# no',
        '- i',
        'k: v',
        '---',
        '...',
        '%Y',
        '"q"',
        "'s'",
      ),
      { maxLength: 5 },
    )
    .map((lines) => lines.join('\n')),
  fc.string({ maxLength: 12 }),
  fc.string({ maxLength: 12, unit: 'binary' }),
  fc.stringMatching(/^[ -~]{60,140}$/u),
);

const trickyNumber: fc.Arbitrary<number> = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(0, -0, 1e20, 1e21, 2 ** 53, -(2 ** 53), 1e-7, 5e-324),
);

/** A JSON value that is easily written in a way that a reader takes for another one. */
export const trickyValue: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    trickyText,
    fc.oneof(fc.boolean(), fc.constant(null), trickyNumber),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(trickyText, tie('value'), { maxKeys: 4 }),
  ),
})).value;

const pieces = [
  'a: ',
  'b: ',
  'on: ',
  '1.10: ',
  '"q": ',
  "'s': ",
  '? ',
  ': ',
  '- ',
  '\n',
  '\n',
  '\n  ',
  '\n    ',
  '\n- ',
  '  ',
  '[',
  ']',
  '{',
  '}',
  ', ',
  '&x ',
  '*x',
  '<<: ',
  '*x : ',
  '|',
  '>',
  '|-',
  '>+',
  '|2',
  '\n\n',
  '# c\n',
  ' #c',
  '"',
  "'",
  '!!str ',
  '!!int ',
  '!foo ',
  '! ',
  '!!binary ',
  '%YAML 1.1\n',
  '%YAML 1.2\n',
  '---\n',
  '--- ',
  '...\n',
  '\t',
  '\r\n',
  '\r',
  '"\\x41"',
  '"\\\n  b"',
  '\u0085',
  '\u2028',
  '\u007f',
  '\ufeff',
  'word',
  'two words',
  'yes',
  '017',
  '1e1_0',
  'null',
  'k',
  '{}',
  '[]',
  '"a\n  b"',
  "'it''s'",
];

const scraps = fc
  .array(fc.oneof(fc.constantFrom(...pieces), yamlScalar), { minLength: 1, maxLength: 12 })
  .map((parts) => parts.join(''));

interface Parts extends Record<string, unknown> {
  block: string;
  flow: string;
}

const key = fc.oneof(fc.constantFrom('a', 'b', 'c', 'on', 'y', '"on"', "'1.10'", '1.10', '017'), yamlScalar);
const indented = (text: string): string => text.replaceAll('\n', '\n  ');

/** Texts that are mostly well-formed: anchors, merge keys, all styles of text, comments, collections in both styles. */
const wellFormed = fc.letrec<Parts>((tie) => {
  const scalar = fc.oneof(
    yamlScalar,
    fc.constantFrom(
      'text',
      'two words',
      '"q"',
      "'it''s'",
      '"\\u2028"',
      '"a\n    b"',
      '',
      '!!str 5',
      '!!int "5"',
      '!!float 5',
      '!foo x',
      '!!bool yes',
      'a#b',
      'a:b',
      '?a',
      '-a',
      ':a',
      'a?',
      '"a": b',
    ),
  );
  const flowPair = fc.tuple(key, tie('flow')).map(([name, value]) => `${name}: ${value}`);
  const flowList = fc.array(fc.oneof(tie('flow'), flowPair), { maxLength: 3 });
  return {
    flow: fc.oneof(
      { maxDepth: 3 },
      scalar,
      flowList.map((items) => `[${items.join(', ')}]`),
      fc.array(flowPair, { maxLength: 3 }).map((items) => `{${items.join(', ')}}`),
      fc
        .tuple(
          fc.array(flowPair, { maxLength: 2 }),
          fc.constantFrom(...Array<string>(9).fill(' '.repeat(20)), ''),
        )
        .map(([items, indent]) => `{\n${items.map((item) => `${indent}${item},\n`).join('')}${indent}}`),
    ),
    block: fc.oneof(
      { maxDepth: 3 },
      tie('flow').map((text) => ` ${text}`),
      fc.constantFrom(
        ' |\n  line\n  more',
        ' >-\n  folded\n  text\n\n  x',
        ' |+\n  kept\n\n',
        ' # only a comment',
        ' word # comment',
        ' several\n  lines',
      ),
      fc
        .array(fc.tuple(key, tie('block')), { minLength: 1, maxLength: 4 })
        .map((pairs) => `\n  ${indented(pairs.map(([name, value]) => `${name}:${value}`).join('\n'))}`),
      fc
        .array(tie('block'), { minLength: 1, maxLength: 3 })
        .map((items) => `\n  ${indented(items.map((item) => `-${item}`).join('\n'))}`),
      fc
        .tuple(key, tie('flow'), key, tie('flow'), key, tie('flow'))
        .map(
          ([a, one, b, two, c, three]) =>
            ` &m {${a}: ${one}, ${b}: ${two}}\nmerged:\n  ${c}: ${three}\n  <<: *m\n  ${a}: again`,
        ),
      fc
        .tuple(key, tie('flow'))
        .map(([a, one]) => ` &n {${a}: ${one}, b: 1}\nmerged: {<<: [*n, {c: 2, ${a}: 3}], b: 3, <<: {c: 4}}`),
    ),
  };
});

const document = fc
  .array(fc.tuple(key, wellFormed.block), { minLength: 1, maxLength: 3 })
  .map((pairs) => pairs.map(([name, value]) => `${name}:${value}\n`).join(''));

export const yamlText: fc.Arbitrary<string> = fc.oneof(
  { arbitrary: document, weight: 4 },
  {
    arbitrary: fc.tuple(document, fc.nat(), fc.constantFrom(...pieces)).map(([text, at, piece]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + piece + text.slice(place);
    }),
    weight: 2,
  },
  scraps,
);
