/** Which kinds references may lead to: those that patches of synced kinds name. */

import { expect, test } from 'vitest';
import type { SyncConfig, PatchConfig } from '../../../src/config/config.ts';
import { kindPolicy } from '../../../src/syncer/references/referenced-kind.ts';

const reference = (kind: string): PatchConfig => ({
  path: 'metadata.annotations.a',
  reference: { apiVersion: 'v1', kind },
});

function sync(isSlicesEnabled: boolean): SyncConfig {
  return {
    endpoints: { enabled: true, patches: [reference('Secret')] },
    endpointSlices: { enabled: isSlicesEnabled, patches: [reference('ConfigMap'), reference('Secret')] },
    services: { enabled: true, patches: [] },
    syncedByVcluster: undefined,
    namespaces: { kind: 'single' },
    enabledResources: new Set(),
    enabledCustomResources: new Set(),
  };
}

test('the patches of every synced kind name kinds, each once', () => {
  expect(kindPolicy(sync(true)).named).toEqual([
    { patch: 'sync.toHost.endpoints.patches[0]', apiVersion: 'v1', kind: 'Secret' },
    { patch: 'sync.toHost.endpointSlices.patches[0]', apiVersion: 'v1', kind: 'ConfigMap' },
  ]);
});

test('the patches of a kind that is not synced name nothing', () => {
  const policy = kindPolicy(sync(false));
  expect(policy.named.map(({ kind }) => kind)).toEqual(['Secret']);
  expect(policy.isAllowed('v1', 'ConfigMap')).toBe(false);
});
