/** kubectl's JSONPath templates: what they print, beside kubectl's own reader, and how they fail. */

import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TerminalError } from '../../../src/base/errors.ts';
import type { JsonValue } from '../../../src/base/json.ts';
import { applyTemplate } from '../../../src/cli/output/template.ts';
import { goProgram, hasGo } from '../../support/go-program.ts';

const POD = {
  metadata: { name: 'web', annotations: { 'example.com/owner': 'a', plain: 'b', 'a b': 'c', 'x}y': 'd' } },
  ports: [
    { name: 'http', port: 80, isOpen: true, hosts: ['a', 'b'] },
    { name: 'dns', port: 53, isOpen: false, hosts: ['c'] },
    { name: 'own', port: 8080, hosts: [], ratio: 0.5, none: null },
  ],
  text: '<é&>',
};

const PRINTED: readonly [template: string, text: string][] = [
  ['{.metadata.annotations.example\\.com/owner}', 'a'],
  ["{.metadata.annotations['example\\.com/owner']}", 'a'],
  ["{.metadata['annotations']['plain']}", 'b'],
  ['{.metadata.annotations.x\\}y}', 'd'],
  ['{.metadata.annotations.a\\ b}', 'c'],
  ['{.metadata.missing}', ''],
  ['{$.metadata.name}/{@.metadata.name}', 'web/web'],
  ['name: {.metadata.name}{"\\t"}{\'\\x41\\u00e9\\n\'}', 'name: web\tAé\n'],
  ['{.ports[*].name}', 'http dns own'],
  ['{.ports[-1].name} {.ports[-2:].name} {.ports[::2].name} {.ports[0:1].name}', 'own dns own http own http'],
  ['{.ports[0,2].name}', 'http own'],
  ["{.ports[0]['name','port']}", 'http 80'],
  ['{.ports[?(@.name=="dns")].port}', '53'],
  ["{.ports[?(@.name!='dns')].port}", '80 8080'],
  ['{.ports[?(@.port>=80)].name}', 'http own'],
  ['{.ports[?(@.isOpen==true)].name}', 'http'],
  ['{.ports[?(@.ratio)].name}', 'own'],
  ['{.ports[?(@.none)].name}', 'own'],
  ['{range .ports[*]}{.name}={.port}{"\\n"}{end}', 'http=80\ndns=53\nown=8080\n'],
  ['{range .ports[*]}{.name}:{range .hosts[*]} {@}{end};{end}.', 'http: a b;dns: c;own:;.'],
  ['{range .missing[*]}{.name}{end}none', 'none'],
  ['{.ports[0]}', '{"hosts":["a","b"],"isOpen":true,"name":"http","port":80}'],
  ['{.text}', '<é&>'],
  ['{.ports[2].none}', 'null'],
  ['{..port}', '80 53 8080'],
  ['{.ports[*].*}', 'http 80 true ["a","b"] dns 53 false ["c"] own 8080 [] 0.5 null'],
  ['{1} {-1.5} {true}', '1 -1.5 true'],
  ['a}b', 'a}b'],
];

/** `column`: 1-based. */
const FAILING: readonly [template: string, column: number, problem: RegExp][] = [
  ['{.a', 4, /no closing brace/],
  ['{.a\n}', 4, /no closing brace/],
  ['{.a &}', 5, /"&" is unexpected/],
  ['{a.b}', 2, /"a" is unknown/],
  ['ab {end}', 4, /no range to end/],
  ['{range .a[*]}{.b}', 1, /has no \{end\}/],
  ['{.a range}', 5, /has to begin its action/],
  ['{.a["b"]}', 4, /is not an index/],
  ['{.a[1', 4, /"\[" has no "\]"/],
  ['{.a["b]}', 4, /is not an index/],
  ['{"a}', 2, /has no end/],
  ['{"\\q"}', 2, /escape/],
  ['{"\\xff"}', 2, /UTF-8/],
  ['{.a[?(@.b)}', 10, /no "\)\]"/],
  ['{.a[?(@.b=1)]}', 10, /"=" is no operator/],
  ['{.a[?(@.b==1 && @.c)]}', 14, /"&" is unexpected/],
  ['{.a[?(@.b=~"x")]}', 10, /"=" is no operator/],
  ['{.a[0, ?(b)]}', 10, /"b" is unknown/],
  ['{....a}', 4, /twice/],
  ['{1.2.3}', 2, /not a number/],
  ['{.metadata[0]}', 11, /not to a mapping/],
  ['{.ports[3]}', 8, /out of bounds: the list has 3/],
  ['{.ports[::0]}', 8, /step/],
  ['{.metadata[?(@.a)]}', 11, /a filter applies to lists/],
  ['{.ports[?(@.port=="80")]}', 8, /a number and text cannot be compared/],
  ['{.ports[?(@.hosts[*]=="a")]}', 8, /one value/],
];

const KEYS = ['a', 'b', 'c', 'example.com/owner', 'x y', 'é', ''];
const scalar = fc.oneof(
  fc.integer({ min: -3, max: 9 }),
  fc.constantFrom(0.5, 1e-5, 1e21, true, false, null, '', 'a', 'xy', '<é&>', '80'),
);
const { data } = fc.letrec<{ data: JsonValue }>((tie) => ({
  data: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    scalar,
    fc.array(tie('data'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...KEYS), tie('data'), { maxKeys: 4 }),
    fc.array(fc.dictionary(fc.constantFrom('a', 'b'), scalar, { minKeys: 1 }), {
      minLength: 1,
      maxLength: 4,
    }),
  ),
}));

const piece = fc.constantFrom(
  '.a',
  '.b',
  '.c',
  '.example\\.com/owner',
  '.x\\ y',
  '.é',
  "['a']",
  "['a.b']",
  "['example\\.com/owner']",
  '.*',
  '..a',
  '..',
  '[*]',
  '[0]',
  '[-1]',
  '[1:]',
  '[:2]',
  '[::2]',
  '[-2:]',
  '[0:0]',
  '[]',
  '[0,1]',
  "['a','b']",
  '[?(@.a)]',
  '[?(@.a==1)]',
  '[?(@.b!="a")]',
  '[?(@.a<=@.b)]',
  "[?(@.a>'a')]",
  '[?(@==2)]',
  '[?(@.a==true)]',
  '@',
  '$',
  ' ',
  '.',
  '[0,?(@.a)]',
  '[?(@.a[*])]',
  '[?(@.a<0.7)]',
  '1',
  '-2.5',
  '"x"',
  'true',
  'é',
  '\\',
  '&',
);
const path = fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join(''));
const text = fc.constantFrom(
  '{"\\n"}',
  '{" "}',
  "{'\\t'}",
  ', ',
  '}',
  '',
  'é',
  "{'\\u00e9\\101\\x41'}",
  '{"\\\'"}',
);
const action = path.map((steps) => `{${steps}}`);
const { template } = fc.letrec<{ template: string }>((tie) => ({
  template: fc.oneof(
    { maxDepth: 2 },
    action,
    fc.tuple(action, text, action).map((parts) => parts.join('')),
    fc.tuple(path, tie('template'), text).map(([over, body, end]) => `{range ${over}}${body}${end}{end}`),
    fc.tuple(tie('template'), text, tie('template')).map((parts) => parts.join('')),
  ),
}));
/** Cut, or with a character more. */
const damaged = fc
  .tuple(
    template,
    fc.nat(),
    fc.constantFrom('', '{', '}', '[', ']', '(', ')', '"', "'", '.', '\\', ',', '@', ' '),
  )
  .map(([whole, seed, character]) => {
    const at = seed % (whole.length + 1);
    return whole.slice(0, at) + character + whole.slice(at + Number(character === ''));
  });

const RUNS = 3000;
const SEED = Number(process.env['TEMPLATE_SEED'] ?? 1);

interface Case {
  readonly template: string;
  readonly data: JsonValue;
}
type GoResult = { readonly text: string } | { readonly error: string };

const fillInGo = goProgram<GoResult>(join(import.meta.dirname, 'go-jsonpath'));

/** Go visits the members of a mapping in any order. */
function withSingleKeys(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withSingleKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, 1)
      .map(([key, member]) => [key, withSingleKeys(member)]),
  );
}

function ours(one: Case): string | undefined {
  try {
    return applyTemplate(one.template, one.data);
  } catch (error) {
    if (error instanceof TerminalError) return undefined;
    throw error;
  }
}

describe('a template', () => {
  test.each(PRINTED)('%s prints what kubectl prints', (template, text) => {
    expect(applyTemplate(template, POD)).toBe(text);
  });

  test.each(FAILING)('%s fails in column %i', (template, column, problem) => {
    const fill = (): string => applyTemplate(template, POD);
    expect(fill).toThrow(TerminalError);
    expect(fill).toThrow(problem);
    expect(fill).toThrow(`the jsonpath template, column ${column}: `);
  });

  test('prints one of two quotes', () => {
    expect(applyTemplate(`{"\\""}{'\\''}`, null)).toBe(`"'`);
  });
});

describe.skipIf(!hasGo)('beside kubectl', () => {
  test('the tables', () => {
    const cases = PRINTED.map(([template]) => ({ template, data: POD as JsonValue }));
    const go = fillInGo(cases);
    const single = cases.map(({ template }) => !template.includes('.*') && !template.includes('..'));
    expect(go.filter((_, index) => single[index])).toEqual(
      PRINTED.filter((_, index) => single[index]).map(([, printed]) => ({ text: printed })),
    );
  });

  test('a generated template prints the same, or is an error', () => {
    const found = fc.sample(fc.tuple(fc.oneof(template, template, damaged), data), {
      numRuns: RUNS,
      seed: SEED,
    });
    const cases = found.map(([one, value]): Case => ({
      template: one,
      data: /\*|\.\.|'\./u.test(one) ? withSingleKeys(value) : value,
    }));
    const go = fillInGo(cases);
    const results = cases.map((one, index) => ({ ...one, ours: ours(one), go: go[index] }));
    // kubectl applies what is in a range without values to nothing, which may fail.
    const wrong = results.filter(
      (one) =>
        one.ours !== undefined &&
        (one.go === undefined ||
          ('text' in one.go ? one.go.text !== one.ours : !one.template.includes('range'))),
    );
    expect(wrong.slice(0, 5)).toEqual([]);
    const refused = results.filter(
      (one) => one.ours === undefined && one.go !== undefined && 'text' in one.go,
    );
    expect(refused.length, 'most of what kubectl takes is taken').toBeLessThan(RUNS / 100);
    expect(results.filter((one) => one.ours !== undefined && one.ours.trim() !== '').length).toBeGreaterThan(
      RUNS / 20,
    );
  });
});
