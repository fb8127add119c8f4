/** The contract of an informer. */

import { describe, expect, test } from 'vitest';
import { MemoryClient, MemoryCluster } from '../../../src/kube/memory-cluster.ts';
import { objectKey, type KubeObject } from '../../../src/kube/object.ts';
import { TransportError } from '../../../src/kube/types.ts';
import { contents, prepare, published, quiet, until } from '../informer-harness.ts';
import { bookmarkLine, eventLine, list, objectOf, watch, type Item } from '../scripted-server.ts';

function kubeObject(item: Item): KubeObject {
  return objectOf(item) as KubeObject; // the fixture's form is that of an object
}

describe('an informer', () => {
  test('is synced when the first list is complete in the cache and its events are published', async () => {
    await using harness = await prepare();
    const never = new AbortController().signal;
    let seenAtSync = -1;
    const synced = harness.informer.whenSynced(never).then(() => (seenAtSync = harness.events.length));
    harness.server.on('list', list(10, [{ name: 'a', version: 1 }], 'more'));
    harness.start();
    await until(() => harness.informer.size === 1);
    await quiet();
    expect(harness.informer.isSynced).toBe(false);
    harness.server.on('list', list(10, [{ name: 'b', version: 2 }]));
    await synced;
    expect(seenAtSync).toBe(2);
    await harness.informer.whenSynced(never);
    harness.server.on('watch', watch(eventLine('ADDED', { name: 'c', version: 11 })));
    await until(() => harness.events.length === 3);
    expect(harness.events.map(({ isInitial }) => isInitial)).toEqual([true, true, undefined]);
  });

  test('waiting for it ends with the signal', async () => {
    await using harness = await prepare();
    const stop = new AbortController();
    const waiting = harness.informer.whenSynced(stop.signal);
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await expect(harness.informer.whenSynced(stop.signal)).rejects.toThrow('enough');
  });

  test('with a label selector does not keep what a write or a read shows to no longer match', async () => {
    await using harness = await prepare({ labelSelector: 'owner notin (another)' });
    harness.server.on('list', list(10, [{ name: 'a', version: 5 }]));
    harness.start();
    const { informer } = harness;
    await until(() => informer.isSynced);
    const owned = (item: Item, owner: string): KubeObject => {
      const { metadata, ...rest } = kubeObject(item);
      return { ...rest, metadata: { ...metadata, labels: { owner } } };
    };
    informer.observeWrite(owned({ name: 'b', version: 11 }, 'another'));
    expect(contents(informer)).toEqual({ a: '5' });
    informer.observeRead(owned({ name: 'a', version: 12 }, 'another'));
    expect(contents(informer)).toEqual({});
    expect(harness.events.at(-1)).toMatchObject({ type: 'deleted', key: 'default/a' });
    informer.observeRead(kubeObject({ name: 'a', version: 5 }));
    expect(contents(informer)).toEqual({});
    informer.observeRead(owned({ name: 'a', version: 13 }, 'us'));
    expect(contents(informer)).toEqual({ a: '13' });
  });

  test('stores the response to a write immediately, and publishes neither it nor its watch event', async () => {
    await using harness = await prepare();
    harness.server.on('list', list(10, [{ name: 'a', version: 5 }]));
    harness.start();
    await until(() => harness.informer.isSynced);
    harness.informer.observeWrite(kubeObject({ name: 'a', version: 12 }));
    harness.informer.observeWrite(kubeObject({ name: 'b', version: 13 }));
    expect(contents(harness.informer)).toEqual({ a: '12', b: '13' });
    harness.server.on(
      'watch',
      watch(
        eventLine('MODIFIED', { name: 'a', version: 11 }),
        eventLine('MODIFIED', { name: 'a', version: 12 }),
        eventLine('ADDED', { name: 'b', version: 13 }),
        eventLine('MODIFIED', { name: 'b', version: 14 }),
        bookmarkLine(15),
      ),
    );
    await until(() => harness.metrics.types.includes('BOOKMARK'));
    expect(published(harness)).toEqual([
      ['added', 'default/a', '5'],
      ['updated', 'default/b', '14'],
    ]);
    expect(harness.metrics.ignoredCount).toBe(3);
  });

  test('publishes an object that was read, and one that a read did not find, but not their watch events', async () => {
    await using harness = await prepare();
    harness.server.on('list', list(10, [{ name: 'a', version: 5 }]));
    harness.start();
    await until(() => harness.informer.isSynced);
    harness.informer.observeRead(kubeObject({ name: 'b', version: 12 }));
    harness.informer.observeRead(kubeObject({ name: 'b', version: 12 }));
    harness.informer.observeAbsence('default/a', 'uid-a');
    harness.informer.observeAbsence('default/b', 'uid-of-another');
    harness.server.on(
      'watch',
      watch(
        eventLine('DELETED', { name: 'a', version: 11 }),
        eventLine('ADDED', { name: 'b', version: 12 }),
        bookmarkLine(15),
      ),
    );
    await until(() => harness.metrics.types.includes('BOOKMARK'));
    expect(published(harness)).toEqual([
      ['added', 'default/a', '5'],
      ['added', 'default/b', '12'],
      ['deleted', 'default/a', '5'],
    ]);
    expect(contents(harness.informer)).toEqual({ b: '12' });
  });

  test('a list that is older than a write does not replace it', async () => {
    await using harness = await prepare();
    harness.server.on('list', list(10, [{ name: 'a', version: 5 }], 'more'));
    harness.start();
    await until(() => harness.informer.size === 1);
    harness.informer.observeWrite(kubeObject({ name: 'new', version: 12 }));
    harness.informer.observeDelete('default/a', 'uid-a');
    harness.server.on('list', list(10, [{ name: 'b', version: 6 }]));
    await until(() => harness.informer.isSynced);
    expect(contents(harness.informer)).toEqual({ new: '12', b: '6' });
  });

  test('a write in another namespace is ignored', async () => {
    await using harness = await prepare({ namespaces: ['other'] });
    harness.informer.observeWrite(kubeObject({ name: 'a', version: 12 }));
    expect(harness.informer.size).toBe(0);
  });

  test('caches what transform returns, without changing the object of the caller', async () => {
    await using harness = await prepare({
      transform(object) {
        delete object.metadata.managedFields;
        return object;
      },
    });
    const written = kubeObject({ name: 'a', version: 12 });
    written.metadata.managedFields = [{ manager: 'm', operation: 'Update' }];
    harness.informer.observeWrite(written);
    expect(harness.informer.get('default/a')?.metadata).not.toHaveProperty('managedFields');
    expect(written.metadata.managedFields).toHaveLength(1);
  });

  test('a handler that throws does not affect other handlers', async () => {
    await using harness = await prepare();
    harness.informer.subscribe(() => {
      throw new Error('mine');
    });
    const later: string[] = [];
    harness.informer.subscribe(({ key }) => later.push(key));
    harness.server
      .on('list', list(10, [{ name: 'a', version: 5 }]))
      .on('watch', watch(eventLine('ADDED', { name: 'b', version: 11 })));
    harness.start();
    await until(() => later.length === 2);
    expect(harness.metrics.ends).toEqual([{ phase: 'listing', outcome: 'complete' }]);
  });

  test('of several namespaces is in sync when each is listed, and the list of one leaves the others alone', async () => {
    const memory = new MemoryCluster({ name: 'host', now: () => 0 });
    const endpoints = (namespace: string): KubeObject => ({ metadata: { name: 'x', namespace } });
    for (const namespace of ['a', 'b', 'c'])
      memory.create('endpoints', endpoints(namespace), { manager: 'm' });
    const working = new MemoryClient(memory, { manager: 'm' });
    let failures = 0;
    await using harness = await prepare({
      namespaces: ['a', 'b'],
      client: {
        cluster: 'host',
        watch: (...args) => working.watch(...args),
        async list(resource, options) {
          if (options?.namespace === 'b' && failures++ === 0) throw new TransportError('not yet');
          return working.list(resource, options);
        },
      },
    });
    const keys = (): string[] => [...harness.informer.list()].map(objectKey).toSorted();
    harness.start();
    await until(() => failures === 1 && harness.informer.size === 1);
    expect([harness.informer.isSynced, keys()]).toEqual([false, ['a/x']]);
    harness.clock.advance(30_000);
    await until(() => harness.informer.isSynced);
    expect(keys()).toEqual(['a/x', 'b/x']);
    memory.delete('endpoints', { namespace: 'a', name: 'x' }, { manager: 'm' });
    await until(() => harness.informer.size === 1);
    expect(harness.events.map(({ type, key, isInitial }) => [type, key, isInitial])).toEqual([
      ['added', 'a/x', true],
      ['added', 'b/x', true],
      ['deleted', 'a/x', undefined],
    ]);
  });
});
