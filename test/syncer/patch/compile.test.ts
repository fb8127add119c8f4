/** The sync direction that the patches give to a path. */

import { describe, expect, test } from 'vitest';
import type { PatchConfig } from '../../../src/syncer/patch/patch-schema.ts';
import type { ConcretePath, Flow } from '../../../src/syncer/translate/types.ts';
import { build } from './build.ts';

const TO_HOST = { expression: 'value' };
const TO_VIRTUAL = { reverseExpression: 'value' };
const BOTH = { ...TO_HOST, ...TO_VIRTUAL };
const REFERENCE = { reference: { apiVersion: 'v1', kind: 'Secret' } };

function flowOf(patches: readonly PatchConfig[], path: ConcretePath): Flow {
  return build(patches).pipeline.flowOf(path);
}

describe('direction of a path', () => {
  const key: ConcretePath = ['metadata', 'annotations', 'example.com/key'];

  test.each<[string, readonly PatchConfig[], Flow]>([
    ['no patch', [], 'both'],
    ['both expressions', [{ path: 'metadata.annotations[*]', ...BOTH }], 'both'],
    ['a reference', [{ path: 'metadata.annotations[*]', ...REFERENCE }], 'both'],
    ['labels', [{ path: 'metadata.annotations[*]', labels: {} }], 'both'],
    ['an expression', [{ path: 'metadata.annotations["example.com/key"]', ...TO_HOST }], 'toHost'],
    ['an expression on all', [{ path: 'metadata.annotations.*', ...TO_HOST }], 'toHost'],
    ['an expression on the map', [{ path: 'metadata.annotations', ...TO_HOST }], 'toHost'],
    ['an expression on everything', [{ path: '', ...TO_HOST }], 'toHost'],
    ['an expression below it', [{ path: 'metadata.annotations["example.com/key"].x', ...TO_HOST }], 'both'],
    ['an expression beside it', [{ path: 'metadata.annotations.other', ...TO_HOST }], 'both'],
    ['a reverseExpression', [{ path: 'metadata.*["example.com/key"]', ...TO_VIRTUAL }], 'toVirtual'],
    [
      'one way each',
      [
        { path: 'metadata.annotations.*', ...TO_HOST },
        { path: 'metadata', ...TO_VIRTUAL },
      ],
      'none',
    ],
  ])('%s', (_, patches, flow) => {
    expect(flowOf(patches, key)).toBe(flow);
  });

  test('wildcards do not match bookkeeping; numbers are indices and keys', () => {
    const all = [{ path: 'metadata.annotations.*', ...TO_HOST }];
    expect(flowOf(all, ['metadata', 'annotations', 'vcluster.loft.sh/object-name'])).toBe('both');
    expect(flowOf([{ path: 'subsets.0', ...TO_HOST }], ['subsets', 0, 'ports'])).toBe('toHost');
    expect(flowOf([{ path: 'subsets[0]', ...TO_HOST }], ['subsets', 0])).toBe('toHost');
    expect(flowOf([{ path: 'subsets[0]', ...TO_HOST }], ['subsets', '0'])).toBe('both');
    expect(flowOf([{ path: 'subsets["0"]', ...TO_HOST }], ['subsets', 0])).toBe('both');
  });
});

describe('paths in an object', () => {
  const object = {
    metadata: { annotations: { a: '1' } },
    subsets: [
      { addresses: [{ ip: '10.0.0.1', hostname: 'x' }, { ip: '10.0.0.2' }] },
      { addresses: [{ hostname: 'y' }] },
    ],
  };

  function twoWay(...patches: PatchConfig[]): readonly ConcretePath[] {
    return build(patches).pipeline.twoWayPaths(object);
  }

  test('two-way: both expressions, at or below subsets', () => {
    const hostnames = [
      ['subsets', 0, 'addresses', 0, 'hostname'],
      ['subsets', 1, 'addresses', 0, 'hostname'],
    ];
    const path = 'subsets[*].addresses[*].hostname';
    expect(twoWay({ path, ...BOTH })).toEqual(hostnames);
    expect(twoWay({ path: '*[*].addresses[*].hostname', ...BOTH }, { path, ...BOTH })).toEqual(hostnames);
    expect(twoWay({ path, ...TO_HOST })).toEqual([]);
    expect(twoWay({ path, ...REFERENCE })).toEqual([]);
    expect(twoWay({ path: 'metadata.annotations.*', ...BOTH })).toEqual([]);
    expect(twoWay({ path: '', ...BOTH })).toEqual([['subsets']]);
    expect(twoWay({ path: 'subsets', ...BOTH })).toEqual([['subsets']]);
  });

  test('not two-way if another entry is one-way', () => {
    expect(
      twoWay(
        { path: 'subsets[*].addresses[*].hostname', ...BOTH },
        { path: 'subsets[0].addresses[*].hostname', ...TO_HOST },
      ),
    ).toEqual([['subsets', 1, 'addresses', 0, 'hostname']]);
  });

  test('the host owns values that only a reverseExpression matches', () => {
    const { pipeline } = build([
      { path: 'metadata.annotations.*', ...TO_VIRTUAL },
      { path: 'subsets[*].addresses[*].hostname', ...BOTH },
    ]);
    expect(pipeline.hostOwnedPaths(object)).toEqual([['metadata', 'annotations', 'a']]);
  });
});
