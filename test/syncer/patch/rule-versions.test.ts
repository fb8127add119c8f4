/** Which change of the patches is another rule for a place, and which is none. */

import { expect, test } from 'vitest';
import type { PatchConfig } from '../../../src/syncer/patch/patch-schema.ts';
import { createPatchPipeline } from '../../../src/syncer/patch/pipeline.ts';
import { UNPROVABLE } from '../../../src/syncer/translate/last-synced.ts';
import { build, pipelineOptions } from './build.ts';

const KEY = ['metadata', 'annotations', 'k'];
const path = 'metadata.annotations.k';
const one = { path, expression: 'value + "-a"' };

test.each<[string, boolean, readonly PatchConfig[]]>([
  ['the same patch', true, [one]],
  ['another expression', false, [{ path, expression: 'value + "-b"' }]],
  ['no patch', false, []],
  ['a reverse expression, which makes nothing on the host', true, [{ ...one, reverseExpression: '1' }]],
  ['a patch of another key', true, [{ path: 'metadata.annotations.other', expression: '1' }, one]],
  ['a second patch of the key', false, [one, { path, expression: 'value + "-c"' }]],
  ['a patch of all annotations', false, [one, { path: 'metadata.annotations.*', expression: '1' }]],
  ['a patch of the whole object', false, [one, { path: '', expression: 'value' }]],
  ['a patch of another part of the object', true, [one, { path: 'subsets', expression: 'value' }]],
  ['a label selector', false, [{ path, labels: {} }]],
  ['a reference', false, [{ path, reference: { apiVersion: 'v1', kind: 'Secret' } }]],
  ['a filter', false, [{ ...one, path: 'metadata.annotations[?(@ == "x")]' }]],
])('%s: the same rule: %s', (_, isSame, after) => {
  expect(build(after).pipeline.rulesOf(KEY) === build([one]).pipeline.rulesOf(KEY)).toBe(isSame);
});

test.each([
  ['context.vcluster.config.tier', false],
  ['context.vcluster.config', false],
  ['context.vcluster.name', true],
  ['value', true],
])('another value of vCluster is another rule exactly where an expression reads it: %s', (read, isSame) => {
  const options = pipelineOptions([{ path, expression: `value + JSON.stringify(${read})` }]);
  const rules = ['gold', 'silver'].map((tier) => {
    const vcluster = { ...options.vcluster, config: { tier } };
    return createPatchPipeline({ ...options, vcluster }).rulesOf(KEY);
  });
  expect(rules[0] === rules[1]).toBe(isSame);
});

test.each([
  [{ path, expression: 'context.hostObject?.metadata?.annotations?.k ?? value' }],
  [{ ...one, path: 'metadata.annotations[?(context.hostObject == null)]' }],
])('what depends on the host object is proven by no record: %j', (reading) => {
  expect(build([reading]).pipeline.rulesOf(KEY)).toBe(UNPROVABLE);
  expect(build([one, reading]).pipeline.rulesOf(KEY)).toBe(UNPROVABLE);
});
