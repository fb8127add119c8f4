/** Ranges of addresses, as a kube-apiserver accepts them. */

import { expect, test } from 'vitest';
import { networkProblem } from '../../src/kube/endpoint-rules.ts';
import { BAD_RANGES, GOOD_RANGES } from '../syncer/patch/endpoint-rules.ts';

test.each(GOOD_RANGES)('%s is a range', (range) => {
  expect(networkProblem(range)).toBeUndefined();
});

test.each(BAD_RANGES)('%s is none', (range, message) => {
  const problem = networkProblem(range);
  expect(typeof problem === 'object' ? problem.detail : problem).toMatch(message);
});
