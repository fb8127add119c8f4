/** Which kinds a configuration syncs, and what its messages say of them. */

import { expect, test } from 'vitest';
import { vclusterRemedy } from '../../../src/syncer/kinds/synced-kinds.ts';
import { validConfig } from '../../cli/config/setup.ts';

test.each([
  ['endpointSyncer: {name: vc}', 'sync.toHost.endpoints.enabled and sync.toHost.endpointSlices.enabled'],
  [
    'endpointSyncer: {name: vc}\nsync: {toHost: {endpointSlices: {enabled: false}}}',
    'sync.toHost.endpoints.enabled',
  ],
  [
    'endpointSyncer: {name: vc, services: sync}\nsync: {toHost: {endpoints: {enabled: false}}}',
    'sync.toHost.endpointSlices.enabled and sync.toHost.services.enabled',
  ],
])('vCluster is to leave what is synced to this program: %s', (text, settings) => {
  expect(vclusterRemedy(validConfig(text))).toBe(`Set ${settings} to false in vCluster's values.`);
});
