/** Names of the objects of a vCluster, and the URL of its API server. */

import { expect, test } from 'vitest';
import { serverOf, vclustersOf } from '../../src/fleet/vcluster.ts';

test.each<['Secret' | 'ConfigMap', string, string[]]>([
  ['Secret', 'vc-my', ['my']],
  ['Secret', 'vc-config-my', ['config-my', 'my']],
  ['Secret', 'vc-', []],
  ['Secret', 'sh.helm.release.v1.my.v1', []],
  ['ConfigMap', 'endpoint-syncer-my', ['my']],
  ['ConfigMap', 'vc-my', []],
])('a %s of the name %s belongs to %j', (kind, name, expected) => {
  expect(vclustersOf(kind, name)).toEqual(expected);
});

test.each([
  ['https://localhost:8443', 'https://my.team-a'],
  ['https://localhost:8443/', 'https://my.team-a'],
  ['https://127.0.0.1:16443', 'https://127.0.0.1:16443'],
  ['http://localhost:40123', 'http://localhost:40123'],
  ['https://my.example.com', 'https://my.example.com'],
])('the server %s is reached at %s', (ofSecret, expected) => {
  expect(serverOf({ namespace: 'team-a', name: 'my' })(ofSecret)).toBe(expected);
});
