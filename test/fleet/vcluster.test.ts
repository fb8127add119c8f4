/** The URL of the API server of a vCluster. Which objects are of it: `discovery.test.ts`. */

import { expect, test } from 'vitest';
import { serverOf } from '../../src/fleet/vcluster.ts';

test.each([
  ['https://localhost:8443', 'https://my.team-a'],
  ['https://localhost:8443/', 'https://my.team-a'],
  ['https://127.0.0.1:16443', 'https://127.0.0.1:16443'],
  ['http://localhost:40123', 'http://localhost:40123'],
  ['https://my.example.com', 'https://my.example.com'],
])('the server %s is reached at %s', (ofSecret, expected) => {
  expect(serverOf({ namespace: 'team-a', name: 'my' })(ofSecret)).toBe(expected);
});
