/** Detection of needed writes. */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { needsWrite } from '../../../src/syncer/translate/content.ts';

const base: KubeObject = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'a', labels: { x: '1' } } };

describe('needsWrite', () => {
  test.each([
    [
      'what a server fills in',
      { ...base, metadata: { ...base.metadata, uid: 'u', resourceVersion: '1' } },
      false,
    ],
    ['a missing type', { metadata: base.metadata }, false],
    ['null subsets', { ...base, subsets: null }, false],
    ['empty subsets', { ...base, subsets: [] }, false],
    ['a label', { ...base, metadata: { ...base.metadata, labels: {} } }, true],
    ['an annotation', { ...base, metadata: { ...base.metadata, annotations: { a: 'b' } } }, true],
    ['subsets', { ...base, subsets: [{ addresses: [{ ip: '10.0.0.1' }] }] }, true],
    ['a field that this program does not know', { ...base, extra: 1 }, true],
  ])('%s', (_what, actual, expected) => {
    expect(needsWrite(base, actual)).toBe(expected);
  });
});
