/** The descriptions of review kinds for kubectl explain. */

import { expect, test } from 'vitest';
import { META_TYPES, TypeTable } from '../../src/apiserver/schema/object-schema.ts';
import { REVIEW_TYPES } from '../../src/apiserver/access-review.ts';

const FILTERS = /^authorization\.(Field|Label)SelectorAttributes/u;

test('there are descriptions for exactly the kinds and fields of reviews', () => {
  const types = new TypeTable([META_TYPES, REVIEW_TYPES]);
  const lines = REVIEW_TYPES.trim().split('\n');
  const starts = (mark: string): string[] =>
    lines.filter((line) => line.includes(mark)).map((line) => line.slice(0, line.indexOf(mark)));
  const names = starts(' = ');
  const fields = names.flatMap((name) =>
    [...types.get(name).fields.keys()].map((field) => `${name}.${field}`),
  );
  const described = new Set(starts(': '));
  expect(fields.filter((field) => !described.has(field) && !FILTERS.test(field))).toEqual([]);
  expect(names.filter((name) => name.endsWith('Review') && !described.has(name))).toEqual([]);
  expect([...described].filter((name) => ![...names, ...fields].includes(name))).toEqual([]);
});
