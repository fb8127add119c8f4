/** Which kinds references may lead to: those that patches of synced kinds name. */

import { describe, expect, test } from 'vitest';
import { TerminalError } from '../../../src/base/errors.ts';
import type { JsonValue } from '../../../src/base/json.ts';
import { createDiscovery, type Discovery } from '../../../src/kube/discovery.ts';
import type { ClusterName } from '../../../src/kube/types.ts';
import type { SyncConfig } from '../../../src/syncer/config/config.ts';
import type { PatchConfig } from '../../../src/syncer/patch/patch-schema.ts';
import { kindPolicy, resolveNamedKinds } from '../../../src/syncer/references/referenced-kind.ts';

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

describe('a cluster-scoped kind that a patch names', () => {
  const served = (cluster: ClusterName, isNamespaced: boolean): Discovery => {
    const request = async (): Promise<JsonValue> => ({
      resources: [
        { name: 'zones', kind: 'Zone', namespaced: isNamespaced },
        { name: 'namespaces', kind: 'Namespace', namespaced: false },
      ],
    });
    return createDiscovery({ cluster, request });
  };
  const zone = { ...reference('Zone'), reference: { apiVersion: 'example.com/v1', kind: 'Zone' } };
  const policy = kindPolicy({ ...sync(false), endpoints: { enabled: true, patches: [zone] } });

  test.each([
    ['on the host', false, true],
    ['on both sides', false, false],
  ])('%s refuses the start in one sentence', async (_, isHostNamespaced, isVirtualNamespaced) => {
    const discoveries = {
      host: served('host', isHostNamespaced),
      virtual: served('virtual', isVirtualNamespaced),
    };
    const resolved = async () => resolveNamedKinds(policy, discoveries, () => undefined, {});
    await expect(resolved()).rejects.toThrow(
      new TerminalError(
        'sync.toHost.endpoints.patches[0]: Zone of example.com/v1 is cluster-scoped in the host cluster; only namespaced kinds can be used here: remove the patch',
      ),
    );
  });

  test('in the virtual cluster alone is reported only: a tenant decides it', async () => {
    const discoveries = { host: served('host', true), virtual: served('virtual', false) };
    const missing: string[] = [];
    await resolveNamedKinds(policy, discoveries, (_, why) => void missing.push(why), {});
    expect(missing).toHaveLength(1);
    expect(missing[0]).toContain('Zone of example.com/v1 is cluster-scoped in the virtual cluster');
  });
});
