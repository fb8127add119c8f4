/** Single fields: which addresses kube-apiserver accepts. */

import { expect, test } from 'vitest';
import { endpointIpProblem } from '../../../src/syncer/patch/validate-fields.ts';
import { BAD_IPS, GOOD_IPS } from './endpoint-rules.ts';

test.each(GOOD_IPS)('%s is fine', (ip) => {
  expect(endpointIpProblem(ip)).toBeUndefined();
});

test.each(BAD_IPS)('%s is refused', (ip, message) => {
  expect(endpointIpProblem(ip)).toMatch(message);
});
