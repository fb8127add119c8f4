/** Discovery of kinds. */

import { describe, expect, test } from 'vitest';
import { CachingDiscovery } from '../../src/kube/discovery.ts';
import type { ClusterClient } from '../../src/kube/types.ts';
import { TerminalError } from '../../src/base/errors.ts';
import { failure } from '../../src/kube/status-error.ts';
import { type JsonValue } from '../../src/base/json.ts';

const SERVED: Record<string, JsonValue> = {
  '/api/v1': {
    resources: [
      { name: 'secrets', kind: 'Secret', namespaced: true },
      { name: 'nodes', kind: 'Node', namespaced: false },
      { name: 'pods', kind: 'Pod', namespaced: true },
      { name: 'pods/eviction', kind: 'Eviction', namespaced: true },
    ],
  },
  '/apis/example.com/v1': { resources: [{ name: 'gadgets', kind: 'Gadget', namespaced: true }] },
  '/apis/example.com/v1-beta': { resources: [{ name: 'gadgets', kind: 'Gadget', namespaced: true }] },
  '/apis/broken.io/v1': 'nonsense',
};

function cluster(): { client: Pick<ClusterClient, 'cluster' | 'request'>; asked: string[] } {
  const asked: string[] = [];
  const request = async (_: string, path: string): Promise<JsonValue> => {
    asked.push(path);
    const answer = SERVED[path];
    if (answer !== undefined) return answer;
    throw failure(404, 'NotFound', 'not served');
  };
  return { client: { cluster: 'virtual', request }, asked };
}

describe('discovery', () => {
  test('finds the resource of a kind and caches it', async () => {
    const { client, asked } = cluster();
    const discovery = new CachingDiscovery(client);
    const secret = { group: '', version: 'v1', kind: 'Secret', plural: 'secrets', isNamespaced: true };
    expect(await discovery.resolve('v1', 'Secret')).toEqual(secret);
    expect(await discovery.resolveNamespaced('v1', 'Secret')).toEqual(secret);
    expect(await discovery.resolve('v1', 'Node')).toMatchObject({ isNamespaced: false });
    expect(await discovery.resolve('example.com/v1', 'Gadget')).toMatchObject({
      group: 'example.com',
      plural: 'gadgets',
    });
    // As a CustomResourceDefinition may be called.
    expect(await discovery.resolve('example.com/v1-beta', 'Gadget')).toMatchObject({ version: 'v1-beta' });
    expect(asked).toEqual(['/api/v1', '/apis/example.com/v1', '/apis/example.com/v1-beta']);
  });

  test('retries for a kind that was missing', async () => {
    const { client, asked } = cluster();
    const discovery = new CachingDiscovery(client);
    await expect(discovery.resolve('v1', 'Later')).rejects.toBeInstanceOf(TerminalError);
    await expect(discovery.resolve('v1', 'Later')).rejects.toBeInstanceOf(TerminalError);
    expect(asked).toEqual(['/api/v1', '/api/v1']);
  });

  test.each([
    ['v1', 'secret', 'the virtual cluster serves no kind secret in v1; did you mean Secret?'],
    ['v1', 'secrets', 'the virtual cluster serves no kind secrets in v1; did you mean Secret?'],
    ['v1', 'Eviction', 'the virtual cluster serves no kind Eviction in v1; it serves Node, Pod, Secret'],
    [
      'nope.io/v1',
      'X',
      'the virtual cluster does not serve nope.io/v1; kubectl api-versions lists what it serves',
    ],
    ['../../version', 'X', '"../../version" is not an apiVersion: write v1 or group/version'],
    ['example.com/v1/x', 'X', '"example.com/v1/x" is not an apiVersion: write v1 or group/version'],
    ['', 'X', '"" is not an apiVersion: write v1 or group/version'],
    ['broken.io/v1', 'X', 'the discovery response for broken.io/v1 has no resources'],
  ])('%s %s', async (apiVersion, kind, message) => {
    await expect(new CachingDiscovery(cluster().client).resolve(apiVersion, kind)).rejects.toThrow(message);
  });

  test('a cluster-scoped kind is an error if a namespaced kind is required', async () => {
    await expect(new CachingDiscovery(cluster().client).resolveNamespaced('v1', 'Node')).rejects.toThrow(
      'Node of v1 is cluster-scoped in the virtual cluster; only namespaced kinds can be used here',
    );
  });
});
