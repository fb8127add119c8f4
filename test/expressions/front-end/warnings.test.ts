/** What is probably a mistake in an expression or a filter, with what its path tells of the values. */

import { expect, test } from 'vitest';
import { endpointsFields } from '../../../src/syncer/kinds/endpoints.ts';
import { checkPatch } from '../../../src/syncer/patch/check-patch.ts';

test.each([
  ['value in ["a", "b"]', 0],
  ['1 + value.replace(/^(a+)+$/i, "")', 18],
  ['/^(a+)+\\1$/.test(value)', 0],
  ['/(?=x)(a*)*/.test(value)', 0],
  ['/((a|b){2,})+/u.test(value)', 0],
  ['/(a{1,1000})+/.test(value)', 0],
  ['/(a{1,12}){1,12}b/.test(value)', 0],
  ['/(a?){30}a{30}/.test(value)', 0],
  ['new RegExp("(a+)+$", "i").test(value)', 0],
  ['new RegExp(`(a{5}){4}`).test(value)', 0],
])('%s', (expression, offset) => {
  const found = checkPatch({ path: 'a', expression });
  expect(found.map(({ severity, offset: at }) => [severity, at])).toEqual([['warning', offset]]);
});

test.each([
  [
    'a',
    'value === "a" ? 1 : 2 === "2"',
    20,
    '`===` compares a number with a string, so this is always false',
  ],
  [
    'a',
    'value.trim() != 3',
    0,
    '`!=` converts between a string and a number; convert explicitly and use `!==`',
  ],
  ['a', 'typeof value == "sting"', 0, '`typeof` never gives "sting", so this is always false'],
  ['a', 'typeof value === undefined', 0, '`===` compares a string with undefined, so this is always false'],
  ['a', 'base64.decode(value) === 1', 0, '`===` compares a string with a number, so this is always false'],
  [
    'a',
    'value === []',
    0,
    '`===` compares objects by identity, so this is always false; compare JSON.stringify() of both',
  ],
  [
    'metadata.annotations["a"]',
    'value == 5 ? "five" : value',
    0,
    '`==` converts between a string and a number; convert explicitly and use `===`',
  ],
  [
    'subsets[*].ports[*].port',
    'value === "80" ? 8080 : value',
    0,
    '`===` compares a number with a string, so this is always false',
  ],
  ['a', '1 + 1', 0, 'the expression does not read `value` or `context`, so all objects get the same result'],
  [
    'a',
    '((x) => x + "a")("b")',
    0,
    'the expression does not read `value` or `context`, so all objects get the same result',
  ],
  [
    'subsets[*].addresses[*].hostname',
    'context.virtualObject.metadata.name',
    0,
    'the expression does not read `value` or `context.path`, so all matches of an object get the same result',
  ],
  ...['context.virtualObject.metadata.name', 'context.hostObject === null', 'context.path.length'].map(
    (expression) =>
      [
        'a',
        expression,
        0,
        'the expression does not read `value`, which its result replaces; if that is intended, write `void value;` before it',
      ] as const,
  ),
] as const)('%s: %s', (path, expression, at, message) => {
  const expected = { field: 'expression', offset: at, message, severity: 'warning' };
  expect(checkPatch({ path, expression })).toEqual([expected]);
});

test.each([
  ['a[?(true)].b', 4, 'filter: it reads neither `@` nor `context.path`, so it selects everything or nothing'],
  [
    'a[?(@ in ["x"])]',
    4,
    'filter: `in` checks for an index of the list, not for an element; use [...].includes(value)',
  ],
  [
    'subsets[*].ports[?(1 && @.nmae === "x")].port',
    24,
    'filter: never matches: subsets[*].ports[*] has no field "nmae"; did you mean `@.name`?',
  ],
  [
    'subsets[?(@.addresses && @.x)].ports[*].port',
    25,
    'filter: never matches: subsets[*] has no field "x"; it has addresses, notReadyAddresses, ports',
  ],
])('%s', (path, offset, message) => {
  const known = path.startsWith('subsets') ? endpointsFields : undefined;
  const warning = { field: 'path', offset, message, severity: 'warning' };
  expect(checkPatch({ path, labels: {} }, known)).toEqual([warning]);
});

test.each([
  'metadata.annotations[?(@.includes("{{"))]',
  'metadata[?(@.x)]',
  'subsets[*].ports[?(@.name === "https" && context.path)].port',
  'subsets[?(@.ports.length > 0)].addresses[?(@["ip"].startsWith("10."))].hostname',
])('none for %s', (path) => {
  expect(checkPatch({ path, labels: {} }, endpointsFields)).toEqual([]);
});

test.each([
  ['metadata.annotations["a"]', 'value?.toUpprCase?.()'],
  ['a', 'value == null'],
  ['a', 'value === undefined || null == undefined'],
  ['a', 'valueExists === true'],
  ['a', '"constant"'],
  ['a', '-1'],
  ['a', 'undefined'],
  ['a', '({ a: [1, "b"] })'],
  ['a', 'context.vcluster.name'],
  ['a', 'context.vcluster.name + "-" + context.vcluster.namespace'],
  ['a', 'void value; context.virtualObject.metadata.name'],
  ['subsets[*].addresses[*].hostname', 'value + context.path.length'],
  ['metadata.annotations["a"]', 'value === "5"'],
  ['metadata.annotations["a"]', 'value = Number(value); value === 5'],
  ['metadata.annotations["a"]', '((value) => value === 5)(Number(value))'],
  ['metadata.annotations', 'value["x"] == 5 ? {} : value'],
  ['metadata.annotations["a"].b', 'value === 5'],
  ['subsets[*].ports[*].port', 'value === 80 ? 8080 : value'],
  ['metadata.annotations.of-a-name-that-once-took-minutes-to-read["a/b"]', 'value === "5"'],
])('none for %s: %s', (path, expression) => {
  expect(checkPatch({ path, expression })).toEqual([]);
});

test.each([
  '"a" in value',
  'value.replace(/^(a+)+$/, "")',
  'value.replace(/a+/i, "")',
  'value.replace(/(?:ab)+c+/iu, "")',
  'value.replace(/[(+)+]+\\(+\\)+/i, "")',
])('none for %s', (expression) => {
  expect(checkPatch({ path: 'a', expression })).toEqual([]);
});

test.each([
  ['metadata.annotations["a"]', '(v) => v', 'the result is a function'],
  ['metadata.annotations["a"]', 'function f() {}', 'the result is a function'],
  ['metadata.annotations["a"]', 'value.toUpprCase()', 'a string has no method `toUpprCase`'],
  ['metadata.annotations["a"]', 'value.trim().toUpprCase()', 'a string has no method `toUpprCase`'],
  ['subsets[*].ports[*].port', 'value.padStart(4)', 'a number has no method `padStart`'],
])('fails on every object: %s: %s', (path, expression, message) => {
  expect(checkPatch({ path, expression })).toMatchObject([
    { field: 'expression', severity: 'warning', message: expect.stringContaining(message) as unknown },
  ]);
});

const ANNOTATION = 'metadata.annotations["a"]';
const IF_JSON = '; if the text is JSON, write JSON.parse(…) around it';

test.each([
  ['value.owner.name', `a string has no member \`owner\`, so reading \`name\` of it fails${IF_JSON}`],
  ['value["owner"]["name"]', `a string has no member \`owner\`, so reading \`name\` of it fails${IF_JSON}`],
  ['`${value}`.trim().owner[0]', `a string has no member \`owner\`, so reading \`0\` of it fails${IF_JSON}`],
  ['value.owner?.name', `a string has no member \`owner\`, so this is undefined${IF_JSON}`],
  ['value.owner', `a string has no member \`owner\`, so this is undefined${IF_JSON}`],
  ['value.lenght', 'a string has no member `lenght`, so this is undefined; did you mean `length`?'],
  [
    'if (value) { (v) => v + 1 }',
    'the function is not called, so it is no value: write its body, or call it',
  ],
  ['if (value = "a") { 1 } else { 2 }', '`=` is an assignment, and no comparison: write `===`'],
  [
    'const v = value; () => v.trim()',
    'the result is a function, which fails on every object: write its body, in which `value` is the value of the path',
  ],
])('%s is a mistake on an annotation', (expression, message) => {
  const found = checkPatch({ path: ANNOTATION, expression });
  expect(found.map((warning) => [warning.severity, warning.message])).toEqual([['warning', message]]);
});

test.each([
  'value.length + value[0] + value["1"]',
  'value.at(0) ?? value.constructor',
  'JSON.parse(value).owner.name',
  'const value2 = JSON.parse(value); value2.owner.name',
  '[value].map((value) => value.owner.name)',
  'value = JSON.parse(value); value.owner.name',
  '[1].map((each) => each.toFixed() + value)',
])('%s is none', (expression) => {
  const found = checkPatch({ path: ANNOTATION, expression });
  expect(found.filter(({ severity }) => severity === 'warning')).toEqual([]);
});

test.each([
  ['value =~ /^a/ ? 1 : 2', 0, '`=~` is an assignment in JavaScript: write /^a/.test(value)'],
  ['1 && (value =~/a/i)', 6, '`=~` is an assignment in JavaScript: write /a/i.test(value)'],
  ['value =~ "^web" ? 1 : 2', 0, '`=~` is an assignment in JavaScript: write new RegExp("^web").test(value)'],
  ['value =~ `a${1}`', 0, '`=~` is an assignment in JavaScript: write new RegExp(`a${1}`).test(value)'],
  ['let p = /a/; value =~ p && "x"', 13, '`=~` is an assignment in JavaScript: write p.test(value)'],
])('%s is an error', (expression, offset, message) => {
  expect(checkPatch({ path: ANNOTATION, expression })).toEqual([{ field: 'expression', offset, message }]);
  const path = `subsets[*].ports[?(${expression.replaceAll('value', '@')})]`;
  const inFilter = checkPatch({ path, expression: 'value' });
  expect(inFilter).toHaveLength(expression.startsWith('let') ? inFilter.length : 1);
  expect(inFilter[0]?.severity).toBeUndefined();
});

test('a complement that is assigned is none', () => {
  expect(checkPatch({ path: 'a', expression: 'let mask = 0; mask = ~value; mask' })).toEqual([]);
});
