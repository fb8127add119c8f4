/** The paths at which two states of an object differ, as Events name them. */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { changedPaths, listedPaths } from '../../../src/syncer/reconcile/object-diff.ts';

const base: KubeObject = {
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: 'a', annotations: { 'example.com/a': '1' } },
  subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }],
};

describe('changedPaths', () => {
  test.each([
    ['equal objects', base, []],
    [
      'what a server sets',
      { ...base, metadata: { ...base.metadata, uid: 'u', resourceVersion: '1', managedFields: [] } },
      [],
    ],
    ['null for a missing member', { ...base, extra: null }, []],
    [
      'the record of the sync',
      {
        ...base,
        metadata: {
          ...base.metadata,
          annotations: { 'example.com/a': '1', 'endpoint-syncer/last-synced': 'r' },
        },
      },
      [],
    ],
    [
      'an annotation and a port',
      {
        ...base,
        metadata: { name: 'a', annotations: { 'example.com/a': '2' } },
        subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 81 }] }],
      },
      ['metadata.annotations["example.com/a"]', 'subsets[0].ports[0].port'],
    ],
    [
      'an address that is gone',
      { ...base, subsets: [{ ports: [{ port: 80 }] }] },
      ['subsets[0].addresses[0].ip'],
    ],
  ] satisfies [string, KubeObject, string[]][])('%s', (_what, after, expected) => {
    expect(changedPaths(base, after)).toEqual(expected);
    expect(changedPaths(after, base)).toEqual(expected);
  });
});

test('an Event lists five paths, and counts the others', () => {
  const paths = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  expect([0, 1, 5, 7].map((count) => listedPaths(paths.slice(0, count)))).toEqual([
    '',
    'a',
    'a, b, c, d, e',
    'a, b, c, d, e and 2 more',
  ]);
});
