/** The cluster in memory as an API server: one history for lists, pages and watches, and preconditions of writes. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { listPage, MemoryClient, MemoryCluster } from '../../src/kube/memory-cluster.ts';
import { CONFIG_MAPS, ENDPOINTS, objectKey, SECRETS, type KubeObject } from '../../src/kube/object.ts';
import type { WatchHandler } from '../../src/kube/types.ts';

const CONTEXT = { manager: 'test' };

function newCluster(): MemoryCluster {
  return new MemoryCluster({ name: 'host', now: () => 0 });
}

function endpoints(name: string, tier = 'a', more: Partial<KubeObject['metadata']> = {}): KubeObject {
  return { metadata: { name, namespace: 'ns', labels: { tier }, ...more } };
}

/** One write: creates what does not exist, otherwise deletes it or changes its label. */
function write(cluster: MemoryCluster, name: string, tier: string, deletes: boolean): void {
  if (cluster.get('endpoints', `ns/${name}`) === undefined)
    cluster.create('endpoints', endpoints(name, tier), CONTEXT);
  else if (deletes) cluster.delete('endpoints', { namespace: 'ns', name }, CONTEXT);
  else cluster.update('endpoints', endpoints(name, tier), CONTEXT);
}

const writes = fc.array(
  fc.record({
    name: fc.constantFrom('x', 'y', 'z'),
    tier: fc.constantFrom('a', 'b'),
    deletes: fc.boolean(),
  }),
  { maxLength: 20 },
);

function versions(objects: Iterable<KubeObject>): string[] {
  return Array.from(objects, (one) => `${objectKey(one)}@${one.metadata.resourceVersion}`).toSorted();
}

describe('the history', () => {
  test('shows a list at any revision as it was, on pages of any size', () => {
    fc.assert(
      fc.property(writes, fc.integer({ min: 1, max: 3 }), (all, limit) => {
        const cluster = newCluster();
        const moments = all.map(({ name, tier, deletes }) => {
          write(cluster, name, tier, deletes);
          return { revision: cluster.revision, list: versions(cluster.list('endpoints')) };
        });
        for (const { revision, list } of moments) {
          expect(versions(cluster.listAt('endpoints', revision))).toEqual(list);
          const paged: KubeObject[] = [];
          let continueToken = '';
          do {
            const page = listPage(cluster, 'endpoints', { limit, continueToken, atRevision: revision });
            paged.push(...page.items);
            continueToken = page.continueToken;
          } while (continueToken !== '');
          expect(versions(paged)).toEqual(list);
        }
      }),
    );
  });

  test('that is compacted can neither continue a list nor resume a watch', async () => {
    const cluster = newCluster();
    for (const name of ['x', 'y']) cluster.create('endpoints', endpoints(name), CONTEXT);
    const client = new MemoryClient(cluster, CONTEXT);
    const { continueToken, resourceVersion } = await client.list(ENDPOINTS, { limit: 1 });
    cluster.create('endpoints', endpoints('z'), CONTEXT);
    cluster.compact();
    const expired = { code: 410, reason: 'Expired' };
    await expect(client.list(ENDPOINTS, { limit: 1, continueToken })).rejects.toMatchObject(expired);
    const { signal } = new AbortController();
    const handler = { started: fail, dataReceived: fail, event: fail };
    await expect(client.watch(ENDPOINTS, { resourceVersion, signal }, handler)).rejects.toMatchObject(
      expired,
    );
  });
});

function fail(): void {
  throw new Error('the watch has started');
}

describe('a watch', () => {
  test('with a selector leads from any list to the newest one', async () => {
    await fc.assert(
      fc.asyncProperty(writes, writes, writes, async (before, missed, live) => {
        const cluster = newCluster();
        const client = new MemoryClient(cluster, CONTEXT);
        const run = (all: typeof before): void => {
          for (const { name, tier, deletes } of all) write(cluster, name, tier, deletes);
        };
        run(before);
        const selection = { labelSelector: 'tier=a' };
        const { items, resourceVersion } = await client.list(ENDPOINTS, selection);
        const seen = new Map(items.map((object) => [objectKey(object), object]));
        run(missed);
        const stop = new AbortController();
        const handler: WatchHandler = {
          started: () => undefined,
          dataReceived: () => undefined,
          event(type, object) {
            // No event repeats what the watch has shown, and an object begins with ADDED.
            expect(seen.has(objectKey(object))).toBe(type !== 'ADDED');
            if (type === 'DELETED') seen.delete(objectKey(object));
            else seen.set(objectKey(object), object);
          },
        };
        const watching = client.watch(
          ENDPOINTS,
          { ...selection, resourceVersion, signal: stop.signal },
          handler,
        );
        run(live);
        // Events are delivered in microtasks, all of which precede this.
        await new Promise((resolve) => void setImmediate(resolve));
        stop.abort(new Error('the end'));
        await expect(watching).rejects.toThrow('the end');
        expect(versions(seen.values())).toEqual(versions((await client.list(ENDPOINTS, selection)).items));
      }),
    );
  });
});

describe('a write', () => {
  const name = { namespace: 'ns', name: 'x' };

  test.each<[string, object, (cluster: MemoryCluster) => unknown]>([
    [
      'a name that exists',
      { code: 409, reason: 'AlreadyExists' },
      (c) => c.create('endpoints', endpoints('x'), CONTEXT),
    ],
    [
      'an old version',
      { code: 409, reason: 'Conflict' },
      (c) => c.update('endpoints', endpoints('x', 'b', { resourceVersion: '1' }), CONTEXT),
    ],
    [
      'the uid of another object',
      { code: 409, reason: 'Conflict' },
      (c) => c.update('endpoints', endpoints('x', 'b', { uid: 'other' }), CONTEXT),
    ],
    [
      'a patch for another uid',
      { code: 422, reason: 'Invalid' },
      (c) => c.mergePatch('endpoints', name, { metadata: { uid: 'other' } }, CONTEXT),
    ],
    [
      'a patch of an old version',
      { code: 409, reason: 'Conflict' },
      (c) => c.mergePatch('endpoints', name, { metadata: { resourceVersion: '1' } }, CONTEXT),
    ],
    [
      'a deletion of another uid',
      { code: 409, reason: 'Conflict' },
      (c) => c.delete('endpoints', name, { uid: 'other', ...CONTEXT }),
    ],
    [
      'an object that does not exist',
      { code: 404, reason: 'NotFound' },
      (c) => c.update('endpoints', endpoints('y'), CONTEXT),
    ],
  ])('with %s is rejected and changes nothing', (_, error, act) => {
    const cluster = newCluster();
    cluster.create('endpoints', endpoints('x'), CONTEXT);
    const before = [cluster.revision, cluster.list('endpoints')];
    expect(() => act(cluster)).toThrow(expect.objectContaining(error) as Error);
    expect([cluster.revision, cluster.list('endpoints')]).toEqual(before);
  });

  test('that changes nothing, or is a dry run, has no revision', () => {
    const cluster = newCluster();
    const created = cluster.create('endpoints', endpoints('x'), CONTEXT);
    expect(cluster.update('endpoints', endpoints('x'), { manager: 'another' })).toBe(created);
    expect(
      cluster.mergePatch('endpoints', name, { labels: { x: 'y' } }, { ...CONTEXT, isDryRun: true }),
    ).toMatchObject({ labels: { x: 'y' } });
    cluster.delete('endpoints', name, { ...CONTEXT, isDryRun: true });
    expect([cluster.revision, cluster.get('endpoints', 'ns/x')]).toEqual([101, created]);
  });

  test('to the status leaves the rest, and a write to the rest keeps uid and creation', () => {
    const cluster = newCluster();
    const { metadata } = cluster.create('endpoints', endpoints('x'), CONTEXT);
    const patch = { metadata: { labels: { tier: 'b' } }, status: { ready: true } };
    const patched = cluster.mergePatch('endpoints', name, patch, { ...CONTEXT, isStatus: true });
    expect(patched).toMatchObject({ metadata: { labels: { tier: 'a' } }, status: { ready: true } });
    const put = endpoints('x', 'b', { creationTimestamp: '2001-01-01T00:00:00Z' });
    expect(cluster.update('endpoints', put, CONTEXT).metadata).toMatchObject({
      uid: metadata.uid,
      creationTimestamp: metadata.creationTimestamp,
      labels: { tier: 'b' },
    });
  });

  test.each([
    ['the type of a Secret', { type: 'Opaque' }, { type: 'other' }],
    ['the data of an immutable Secret', { data: { a: '' }, immutable: true }, { data: { a: 'x' } }],
  ])('to %s is rejected', async (_, content, patch) => {
    const client = new MemoryClient(newCluster(), CONTEXT);
    await client.create(SECRETS, { ...endpoints('x'), ...content });
    await expect(client.patch(SECRETS, name, { type: 'merge', body: patch })).rejects.toMatchObject({
      code: 422,
      reason: 'Invalid',
    });
  });
});

describe('a deletion', () => {
  test('waits for the finalizers of the object', () => {
    const cluster = newCluster();
    cluster.create('endpoints', endpoints('x', 'a', { finalizers: ['a.b/c'] }), CONTEXT);
    const name = { namespace: 'ns', name: 'x' };
    cluster.delete('endpoints', name, CONTEXT);
    cluster.delete('endpoints', name, CONTEXT);
    expect(cluster.revision).toBe(102);
    expect(cluster.get('endpoints', 'ns/x')?.metadata.deletionTimestamp).toBe('1970-01-01T00:00:00Z');
    cluster.mergePatch('endpoints', name, { metadata: { finalizers: null } }, CONTEXT);
    expect(cluster.list('endpoints')).toEqual([]);
  });

  test.each([
    ['leaves its Endpoints to controllers', undefined, ['ns/x', 'ns/y']],
    ['deletes its Endpoints, before 1.37', true, ['ns/y']],
  ])('of a Service %s', (_, deletesEndpoints, left) => {
    const ways = deletesEndpoints === undefined ? {} : { deletesEndpoints };
    const cluster = new MemoryCluster({ name: 'host', now: () => 0, ...ways });
    for (const plural of ['services', 'endpoints'])
      for (const name of ['x', 'y']) cluster.create(plural, endpoints(name), CONTEXT);
    cluster.delete('services', { namespace: 'ns', name: 'x' }, CONTEXT);
    expect(cluster.list('endpoints').map(objectKey)).toEqual(left);
  });
});

test('a namespace that is being deleted, or is gone, takes no new objects', () => {
  const cluster = newCluster();
  const create = (): KubeObject => cluster.create('endpoints', endpoints('x'), CONTEXT);
  cluster.setNamespace('ns', 'terminating');
  expect(create).toThrow(expect.objectContaining({ code: 403, reason: 'Forbidden' }) as Error);
  cluster.setNamespace('ns', 'gone');
  expect(create).toThrow(expect.objectContaining({ code: 404, reason: 'NotFound' }) as Error);
  cluster.create('namespaces', { metadata: { name: 'ns' } }, CONTEXT);
  expect(create()).toMatchObject({ metadata: { name: 'x' } });
});

test('objects are copied on their way in and out, and those that are stored cannot be changed', async () => {
  const cluster = newCluster();
  const client = new MemoryClient(cluster, CONTEXT);
  const given = endpoints('x');
  const created = await client.create(ENDPOINTS, given);
  const list = await client.list(ENDPOINTS);
  for (const object of [given, created, ...list.items]) object.metadata.labels = { tier: 'changed' };
  const read = await client.get(ENDPOINTS, { namespace: 'ns', name: 'x' });
  expect(read.metadata.labels).toEqual({ tier: 'a' });
  const stored = cluster.get('endpoints', 'ns/x');
  expect(() => Object.assign(stored?.metadata.labels ?? {}, { tier: 'b' })).toThrow(TypeError);
});

test('a member of any name survives, __proto__ too', async () => {
  const cluster = newCluster();
  const client = new MemoryClient(cluster, CONTEXT);
  const data = JSON.parse('{"__proto__":"kept","constructor":"kept"}') as Record<string, string>; // its members are texts
  await client.create(CONFIG_MAPS, { metadata: { name: 'x', namespace: 'ns' }, data });
  const read = await client.get(CONFIG_MAPS, { namespace: 'ns', name: 'x' });
  expect(JSON.stringify(read['data'])).toBe(JSON.stringify(data));
});
