/** What takes far longer to parse than its bytes of addresses is found in the text, wherever its author hides it. */

import { describe, expect, test } from 'vitest';
import { PARSE_LIMITS, parseProblem } from '../../../src/kube/client/parse-cost.ts';

const LIMITS = { containersMax: 100_000, shapesMax: 1000 };
const MANY = /^more than 100000 objects and arrays$/u;
const DIFFERENT = /^more than 1000 different beginnings of objects$/u;
const BYTES = 3_900_000;

const fill = (text: string): string => text.repeat(Math.floor(BYTES / text.length));
const list = (count: number, one: (at: number) => string): string =>
  `[${Array.from({ length: count }, (_, at) => one(at)).join()}]`;
/** A text that is long enough to be read. */
const padded = (text: string): string => `[${text},"${'x'.repeat(70_000)}"]`;

describe('too costly', () => {
  test.each<[string, string, RegExp]>([
    ['arrays in each other', '['.repeat(BYTES / 2) + ']'.repeat(BYTES / 2), MANY],
    ['objects in each other', '{"a":'.repeat(200_000), MANY],
    ['empty arrays', `[0${fill(',[]')}]`, MANY],
    ['empty objects', `[0${fill(',{}')}]`, MANY],
    ['small towers of arrays', `[0${fill(`,${'['.repeat(10)}${']'.repeat(10)}`)}]`, MANY],
    ['arrays after a string with escaped quotes', `["\\"\\\\"${fill(',[]')}]`, MANY],
    ['objects with members of their own', list(1100, (at) => `{"k${at}":0}`), DIFFERENT],
    ['the same with spaces', list(1100, (at) => `{ "k${at}" \n : 0}`), DIFFERENT],
    ['the same with escapes', list(1100, (at) => `{"\\u00${16 + (at % 64)}\\"${at}":0}`), DIFFERENT],
    ['nested objects with members of their own', list(1100, (at) => `{"a":{"k${at}":[]}}`), DIFFERENT],
    [
      'the same members in other orders',
      list(8000, (at) => `{"${at & 7}":0,"${8 + ((at >> 3) & 7)}":0,"${16 + (at >> 6)}":0,"z":[]}`),
      DIFFERENT,
    ],
  ])('%s', (_, text, problem) => {
    expect(parseProblem(padded(text), LIMITS)).toMatch(problem);
  });
});

describe('not too costly', () => {
  test.each<[string, string]>([
    ['many objects with the same members', list(50_000, (at) => `{"ip":"10.0.0.${at}","hostname":"h"}`)],
    ['brackets and names in strings', list(100_000, (at) => `"[{\\"k${at}\\":0}[{"`)],
    ['one map with many members', `{${list(100_000, (at) => `"k${at}":0`).slice(1, -1)}}`],
    ['maps with the same members', list(20_000, () => '{"a":{"b":{"c":[]}}}')],
    ['what is not JSON', '"\\'],
    ['strings that are no names', list(100_000, (at) => `"k${at}"`)],
  ])('%s', (_, text) => {
    expect(parseProblem(padded(text), LIMITS)).toBeUndefined();
  });

  test('a short text of any kind', () => {
    expect(parseProblem(`${'['.repeat(30_000)}${']'.repeat(30_000)}`, LIMITS)).toBeUndefined();
  });

  test('4 MiB of endpoints, each with all that a controller writes', () => {
    const one = (at: number): string =>
      `{"addresses":["10.0.${at >> 8}.${at & 255}"],"conditions":{"ready":true},"nodeName":"n","targetRef":{"kind":"Pod","name":"p${at}"}}`;
    const text = list(Math.floor(BYTES / one(10_000).length), one);
    expect(text.length).toBeGreaterThan(BYTES * 0.95);
    expect(parseProblem(text, PARSE_LIMITS)).toBeUndefined();
  });
});
