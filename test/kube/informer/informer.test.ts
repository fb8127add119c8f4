/** The contract of an informer. */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { contents, prepare, quiet, until } from '../ground.ts';
import { bookmarkLine, eventLine, list, objectOf, watch, type Item } from '../scripted-server.ts';

function kubeObject(item: Item): KubeObject {
  return objectOf(item) as KubeObject; // the fixture's form is that of an object
}

describe('an informer', () => {
  test('is synced when the first list is complete in the cache and its events are published', async () => {
    await using ground = await prepare();
    const never = new AbortController().signal;
    let seenAtSync = -1;
    const synced = ground.informer.whenSynced(never).then(() => (seenAtSync = ground.events.length));
    ground.server.on('list', list(10, [{ name: 'a', version: 1 }], 'more'));
    ground.start();
    await until(() => ground.informer.size === 1);
    await quiet();
    expect(ground.informer.isSynced).toBe(false);
    ground.server.on('list', list(10, [{ name: 'b', version: 2 }]));
    await synced;
    expect(seenAtSync).toBe(2);
    await ground.informer.whenSynced(never);
    ground.server.on('watch', watch(eventLine('ADDED', { name: 'c', version: 11 })));
    await until(() => ground.events.length === 3);
    expect(ground.events.map(({ isInitial }) => isInitial)).toEqual([true, true, undefined]);
  });

  test('waiting for it ends with the signal', async () => {
    await using ground = await prepare();
    const stop = new AbortController();
    const waiting = ground.informer.whenSynced(stop.signal);
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await expect(ground.informer.whenSynced(stop.signal)).rejects.toThrow('enough');
  });

  test('gives objects of a list the type that objects of a watch have', async () => {
    await using ground = await prepare();
    ground.server.on('list', list(10, [{ name: 'a', version: 1 }]));
    ground.start();
    await until(() => ground.informer.isSynced);
    expect(ground.informer.get('default/a')).toMatchObject({ apiVersion: 'v1', kind: 'Endpoints' });
  });

  test('stores the response to a write immediately, and publishes neither it nor its watch event', async () => {
    await using ground = await prepare();
    ground.server.on('list', list(10, [{ name: 'a', version: 5 }]));
    ground.start();
    await until(() => ground.informer.isSynced);
    ground.informer.observeWrite(kubeObject({ name: 'a', version: 12 }));
    ground.informer.observeWrite(kubeObject({ name: 'b', version: 13 }));
    expect(contents(ground.informer)).toEqual({ a: '12', b: '13' });
    ground.server.on(
      'watch',
      watch(
        eventLine('MODIFIED', { name: 'a', version: 11 }),
        eventLine('MODIFIED', { name: 'a', version: 12 }),
        eventLine('ADDED', { name: 'b', version: 13 }),
        eventLine('MODIFIED', { name: 'b', version: 14 }),
        bookmarkLine(15),
      ),
    );
    await until(() => ground.metrics.types.includes('BOOKMARK'));
    expect(
      ground.events.map(({ type, key, object }) => [type, key, object.metadata.resourceVersion]),
    ).toEqual([
      ['added', 'default/a', '5'],
      ['updated', 'default/b', '14'],
    ]);
    expect(ground.metrics.ignoredCount).toBe(3);
  });

  test('publishes an object that was read, and one that a read did not find, but not their watch events', async () => {
    await using ground = await prepare();
    ground.server.on('list', list(10, [{ name: 'a', version: 5 }]));
    ground.start();
    await until(() => ground.informer.isSynced);
    ground.informer.observeRead(kubeObject({ name: 'b', version: 12 }));
    ground.informer.observeRead(kubeObject({ name: 'b', version: 12 }));
    ground.informer.observeAbsence('default/a', 'uid-a');
    ground.informer.observeAbsence('default/b', 'uid-of-another');
    ground.server.on(
      'watch',
      watch(
        eventLine('DELETED', { name: 'a', version: 11 }),
        eventLine('ADDED', { name: 'b', version: 12 }),
        bookmarkLine(15),
      ),
    );
    await until(() => ground.metrics.types.includes('BOOKMARK'));
    expect(
      ground.events.map(({ type, key, object }) => [type, key, object.metadata.resourceVersion]),
    ).toEqual([
      ['added', 'default/a', '5'],
      ['added', 'default/b', '12'],
      ['deleted', 'default/a', '5'],
    ]);
    expect(contents(ground.informer)).toEqual({ b: '12' });
  });

  test('a write is not undone by a list that is older than it', async () => {
    await using ground = await prepare();
    ground.server.on('list', list(10, [{ name: 'a', version: 5 }], 'more'));
    ground.start();
    await until(() => ground.informer.size === 1);
    ground.informer.observeWrite(kubeObject({ name: 'new', version: 12 }));
    ground.informer.observeDelete('default/a', 'uid-a');
    ground.server.on('list', list(10, [{ name: 'b', version: 6 }]));
    await until(() => ground.informer.isSynced);
    expect(contents(ground.informer)).toEqual({ new: '12', b: '6' });
  });

  test('a write in another namespace is ignored', async () => {
    await using ground = await prepare({ namespace: 'other' });
    ground.informer.observeWrite(kubeObject({ name: 'a', version: 12 }));
    expect(ground.informer.size).toBe(0);
  });

  test('caches what transform returns, without changing the object of the caller', async () => {
    await using ground = await prepare({
      transform(object) {
        delete object.metadata.managedFields;
        return object;
      },
    });
    const written = kubeObject({ name: 'a', version: 12 });
    written.metadata.managedFields = [{ manager: 'm', operation: 'Update' }];
    ground.informer.observeWrite(written);
    expect(ground.informer.get('default/a')?.metadata).not.toHaveProperty('managedFields');
    expect(written.metadata.managedFields).toHaveLength(1);
  });

  test('a handler that throws does not affect other handlers', async () => {
    await using ground = await prepare();
    ground.informer.subscribe(() => {
      throw new Error('mine');
    });
    const later: string[] = [];
    ground.informer.subscribe(({ key }) => later.push(key));
    ground.server
      .on('list', list(10, [{ name: 'a', version: 5 }]))
      .on('watch', watch(eventLine('ADDED', { name: 'b', version: 11 })));
    ground.start();
    await until(() => later.length === 2);
    expect(ground.metrics.ends).toEqual([{ phase: 'listing', outcome: 'complete' }]);
  });
});
