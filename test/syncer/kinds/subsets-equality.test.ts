/** Comparison of subsets with defaults and canonical order of the API server. */

import { describe, expect, test } from 'vitest';
import { endpointsContent } from '../../../src/syncer/kinds/endpoints.ts';
import { memberEquals } from '../../../src/syncer/translate/content.ts';

/** What kube-apiserver 1.36 answers to a POST of each. */
describe('subsets are equal when a server stores the same', () => {
  const address = { ip: '10.0.0.1' };

  test.each([
    ['empty text', { addresses: [{ ...address, hostname: '' }] }, { addresses: [address] }],
    [
      'empty text deep down',
      { addresses: [{ ...address, targetRef: { kind: 'Pod', uid: '' } }] },
      { addresses: [{ ...address, targetRef: { kind: 'Pod' } }] },
    ],
    ['null', { addresses: [{ ...address, targetRef: null }], ports: null }, { addresses: [address] }],
    ['empty lists', { addresses: [address], notReadyAddresses: [], ports: [] }, { addresses: [address] }],
    [
      'no protocol',
      { addresses: [address], ports: [{ port: 80 }] },
      { addresses: [address], ports: [{ port: 80, protocol: 'TCP' }] },
    ],
    [
      'an empty protocol',
      { addresses: [address], ports: [{ port: 80, protocol: '' }] },
      { addresses: [address], ports: [{ port: 80, protocol: 'TCP' }] },
    ],
  ])('%s', (_what, sent, stored) => {
    expect(memberEquals(endpointsContent, 'subsets', [sent], [stored])).toBe(true);
  });

  test.each([
    ['a hostname', { addresses: [address] }, { addresses: [{ ...address, hostname: 'a' }] }],
    ['an empty reference', { addresses: [address] }, { addresses: [{ ...address, targetRef: {} }] }],
    [
      'another protocol',
      { addresses: [address], ports: [{ port: 80 }] },
      { addresses: [address], ports: [{ port: 80, protocol: 'UDP' }] },
    ],
  ])('but not with %s', (_what, sent, stored) => {
    expect(memberEquals(endpointsContent, 'subsets', [sent], [stored])).toBe(false);
  });
});
