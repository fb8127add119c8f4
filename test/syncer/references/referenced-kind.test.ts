/** Which kinds references may lead to: those that patches of synced kinds name. */

import { describe, expect, test } from 'vitest';
import { TerminalError } from '../../../src/base/errors.ts';
import type { JsonValue } from '../../../src/base/json.ts';
import { CachingDiscovery, type Discovery } from '../../../src/kube/discovery.ts';
import { failure } from '../../../src/kube/status-error.ts';
import { TransportError, type ClusterName } from '../../../src/kube/types.ts';
import type { SyncConfig } from '../../../src/syncer/config/config.ts';
import type { PatchConfig } from '../../../src/syncer/patch/patch-schema.ts';
import {
  kindPolicy,
  missingKindMessage,
  resolveNamedKinds,
} from '../../../src/syncer/references/referenced-kind.ts';

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
    return new CachingDiscovery({ cluster, request });
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
    await resolveNamedKinds(policy, discoveries, (_, error) => void missing.push(String(error)), {});
    expect(missing).toHaveLength(1);
    expect(missing[0]).toContain('Zone of example.com/v1 is cluster-scoped in the virtual cluster');
  });
});

describe('the warning about a kind that a patch names', () => {
  const zone = { ...reference('Zone'), reference: { apiVersion: 'example.com/v1', kind: 'Zone' } };
  const policy = kindPolicy({ ...sync(false), endpoints: { enabled: true, patches: [zone] } });
  const failing = (cluster: ClusterName, error: Error): Discovery => {
    const request = async (_method: string, path: string): Promise<JsonValue> => {
      if (path !== '/api/v1') throw error;
      return { resources: [{ name: 'namespaces', kind: 'Namespace', namespaced: false }] };
    };
    return new CachingDiscovery({ cluster, request });
  };

  test.each([
    ['is not served', failure(404, 'NotFound', 'no'), 'install the CustomResourceDefinition'],
    ['has an API server that is away', failure(503, 'ServiceUnavailable', 'away'), 'kubectl get apiservices'],
    ['has an API server that hangs', new TransportError('took 5000 ms'), 'kubectl get apiservices'],
  ])('and that %s says what to do', async (_, error, advice) => {
    const discoveries = { host: failing('host', error), virtual: failing('virtual', error) };
    const messages: string[] = [];
    await resolveNamedKinds(
      policy,
      discoveries,
      (_kind, seen) => void messages.push(missingKindMessage(seen)),
      {},
    );
    expect(messages).toEqual([expect.stringContaining(advice)]);
  });
});
