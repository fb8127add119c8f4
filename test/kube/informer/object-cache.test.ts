/** The rules by which a cache stores or ignores objects, with the numbers of src/kube/informer/README.md. */

import { describe, expect, test } from 'vitest';
import { ObjectCache } from '../../../src/kube/informer/object-cache.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import type { KubeObject } from '../../../src/kube/object.ts';

function object(version: string, extra: Partial<KubeObject['metadata']> = {}): KubeObject {
  return { metadata: { name: 'a', namespace: 'n', uid: 'one', resourceVersion: version, ...extra } };
}

function cacheWith(...objects: KubeObject[]): ObjectCache {
  return cacheAt(new FakeClock(), ...objects);
}

function cacheAt(clock: FakeClock, ...objects: KubeObject[]): ObjectCache {
  const cache = new ObjectCache({}, clock);
  for (const one of objects) cache.apply(one);
  return cache;
}

function version(cache: ObjectCache): string | undefined {
  return cache.indexer.get('n/a')?.metadata.resourceVersion;
}

describe('rule 2: never an older state of the same object', () => {
  test('older and equal versions are ignored, a newer one is stored', () => {
    const cache = cacheWith(object('10'));
    expect(cache.apply(object('9'))).toBeUndefined();
    expect(cache.apply(object('10'))).toBeUndefined();
    expect(cache.apply(object('11'))).toMatchObject({
      type: 'updated',
      previous: { metadata: { resourceVersion: '10' } },
    });
    expect(version(cache)).toBe('11');
  });

  test('a version that is not a number is stored', () => {
    const cache = cacheWith(object('abc'));
    expect(cache.apply(object('abd'))?.type).toBe('updated');
    expect(cache.apply(object('5'))?.type).toBe('updated');
    expect(cache.apply(object('5'))).toBeUndefined();
  });
});

describe('rules 3 and 4: identity is the uid', () => {
  test('a re-created object is stored, and late events of the old one are ignored', () => {
    const cache = cacheWith(object('10'));
    expect(cache.apply(object('12', { uid: 'two' }))?.type).toBe('updated');
    expect(cache.apply(object('9'))).toBeUndefined();
    expect(cache.remove(object('11'))).toBeUndefined();
    expect(cache.indexer.get('n/a')?.metadata.uid).toBe('two');
  });

  test('late events of an earlier object with the same name are ignored', () => {
    const cache = cacheWith(object('14', { uid: 'two' }));
    expect(cache.apply(object('12'))).toBeUndefined();
    expect(cache.remove(object('13'))).toBeUndefined();
    expect(cache.apply(object('14', { uid: 'two' }))).toBeUndefined();
    expect(version(cache)).toBe('14');
  });

  test('a deletion of a deleted object, or of an older state, is ignored', () => {
    const cache = cacheWith(object('10'));
    expect(cache.remove(object('11'))).toMatchObject({
      type: 'deleted',
      object: { metadata: { resourceVersion: '11' } },
    });
    expect(cache.remove(object('11'))).toBeUndefined();
    expect(cache.apply(object('10'))).toBeUndefined();
    // A watch with a selector sends DELETED for an object that no longer matches; now it matches again:
    expect(cache.apply(object('13'))?.type).toBe('added');
    expect(cache.remove(object('11'))).toBeUndefined();
    expect(cache.apply(object('12')), 'a replay').toBeUndefined();
    expect(version(cache)).toBe('13');
  });
});

describe('rules 5 and 6: our own writes', () => {
  test('an object that is newer than a list stays although it is not in the list', () => {
    const cache = cacheWith(object('30'));
    expect(cache.removeUnlisted('n/a', '29')).toBeUndefined();
    expect(cache.removeUnlisted('n/a', '30')?.type).toBe('deleted');
  });

  test('a late event does not restore an object that this process deleted', () => {
    const cache = cacheWith(object('10'));
    cache.deleted('n/a', 'one');
    expect(version(cache)).toBeUndefined();
    expect(cache.apply(object('10')), 'the list in progress').toBeUndefined();
    expect(cache.apply(object('11')), 'a change before the deletion').toBeUndefined();
    expect(cache.remove(object('12')), 'the echo').toBeUndefined();
    expect(cache.apply(object('14', { uid: 'two' }))?.type).toBe('added');
  });

  test('a deletion is remembered for as long as an event of before may come: a quarter of an hour', () => {
    const clock = new FakeClock();
    const cache = cacheAt(clock, object('10'));
    cache.deleted('n/a', 'one');
    const other = (uid: string): void => cache.deleted(`n/${uid}`, uid);
    clock.advance(15 * 60_000 - 1);
    other('two');
    expect(cache.apply(object('11'))).toBeUndefined();
    clock.advance(1);
    other('three');
    expect(cache.apply(object('11'))?.type).toBe('added');
  });

  describe('an object that finalizers keep stays in the cache until the event of its deletion', () => {
    const marked = object('11', { deletionTimestamp: '2026-01-01T00:00:00Z' });

    test('where the event that marks it comes after the response', () => {
      const cache = cacheWith(object('10'));
      cache.deleted('n/a', 'one');
      expect(cache.apply(marked)?.type).toBe('added');
      expect(cache.remove(object('12'))?.type).toBe('deleted');
    });

    test('where it comes before the response', () => {
      const cache = cacheWith(object('10'));
      expect(cache.apply(marked)?.type).toBe('updated');
      cache.deleted('n/a', 'one');
      expect(version(cache)).toBe('11');
      expect(cache.remove(object('12'))?.type).toBe('deleted');
    });

    test('but not where a read has found nothing', () => {
      const cache = cacheWith(marked);
      cache.forget('n/a', 'one');
      expect(version(cache)).toBeUndefined();
      expect(cache.apply(marked)).toBeUndefined();
    });
  });

  test('forgetting another uid changes nothing', () => {
    const cache = cacheWith(object('10'));
    cache.forget('n/a', 'other');
    expect(version(cache)).toBe('10');
  });
});

describe('rule 5: a list is the truth about everything that is not newer', () => {
  const list = { version: '100', requestedAtMs: 1 };

  test('an older state of an object replaces a newer one and proves that the server was restored', () => {
    const cache = cacheWith(object('90'));
    expect(cache.applyListed(object('80'), list)).toMatchObject({
      event: { type: 'updated' },
      isContradiction: true,
    });
    expect(version(cache)).toBe('80');
  });

  test('an earlier object of the same name, too', () => {
    const cache = cacheWith(object('90', { uid: 'two' }));
    expect(cache.applyListed(object('80'), list).isContradiction).toBe(true);
    expect(cache.indexer.get('n/a')?.metadata.uid).toBe('one');
  });

  test('the same version with other content replaces, but proves nothing', () => {
    const cache = cacheWith(object('90'));
    const changed = object('90', { labels: { a: 'b' } });
    expect(cache.applyListed(changed, list)).toMatchObject({
      event: { type: 'updated' },
      isContradiction: false,
    });
    expect(cache.applyListed(object('90', { labels: { a: 'b' } }), list).event).toBeUndefined();
  });

  test('a state that is newer than the list stays', () => {
    const cache = cacheWith(object('101'));
    expect(cache.applyListed(object('80'), list)).toEqual({ event: undefined, isContradiction: false });
    expect(version(cache)).toBe('101');
  });

  test('an object that this process deleted before the list was requested exists again; after that, the list is late', () => {
    const clock = new FakeClock();
    const cache = new ObjectCache({}, clock);
    cache.apply(object('90'));
    cache.forget('n/a', 'one');
    expect(cache.applyListed(object('90'), { ...list, requestedAtMs: 0 }).event, 'late').toBeUndefined();
    expect(cache.applyListed(object('90'), list)).toMatchObject({
      event: { type: 'added' },
      isContradiction: true,
    });
  });

  test('an object whose labels match again is no contradiction', () => {
    const cache = cacheWith(object('50'));
    cache.remove(object('60'));
    expect(cache.applyListed(object('70'), list)).toMatchObject({
      event: { type: 'added' },
      isContradiction: false,
    });
  });
});

describe('rule 7: a new history', () => {
  test('replaces any known state, deleted or newer', () => {
    const list = { version: undefined, requestedAtMs: 1 };
    const cache = cacheWith(object('100'));
    expect(cache.applyListed(object('50'), list).event?.type).toBe('updated');
    expect(cache.applyListed(object('50'), list).event).toBeUndefined();
    cache.remove(object('101'));
    expect(cache.applyListed(object('51'), list).event?.type).toBe('added');
  });

  test('that shows an earlier object of the name does not say that the later one is deleted', () => {
    const cache = cacheWith(object('100', { uid: 'two' }));
    cache.applyListed(object('50'), { version: undefined, requestedAtMs: 1 });
    cache.remove(object('99'));
    expect(cache.apply(object('100', { uid: 'two' }))?.type).toBe('added');
  });
});

describe('indexes', () => {
  test('follow their objects', () => {
    const cache = new ObjectCache(
      { color: ({ metadata }) => metadata.labels?.['color']?.split('+') ?? [] },
      new FakeClock(),
    );
    cache.apply(object('1', { labels: { color: 'red+blue' } }));
    expect([...cache.indexer.byIndex('color', 'red')]).toEqual(['n/a']);
    cache.apply(object('2', { labels: { color: 'blue' } }));
    expect([...cache.indexer.byIndex('color', 'red')]).toEqual([]);
    expect([...cache.indexer.byIndex('color', 'blue')]).toEqual(['n/a']);
    cache.remove(object('3'));
    expect([...cache.indexer.byIndex('color', 'blue')]).toEqual([]);
    expect(() => cache.indexer.byIndex('size', 'L')).toThrow('there is no index size');
  });

  test('hold every object of a value', () => {
    const cache = new ObjectCache(
      { color: ({ metadata }) => [metadata.labels?.['color'] ?? ''] },
      new FakeClock(),
    );
    const red = (name: string): KubeObject => object('1', { name, uid: name, labels: { color: 'red' } });
    const reds = (): readonly string[] => [...cache.indexer.byIndex('color', 'red')];
    for (const name of ['a', 'b', 'c']) cache.apply(red(name));
    expect(reds()).toEqual(['n/a', 'n/b', 'n/c']);
    cache.remove(red('a'));
    cache.remove(red('c'));
    expect(reds()).toEqual(['n/b']);
    cache.remove(red('b'));
    expect(reds()).toEqual([]);
    cache.apply(red('d'));
    expect(reds()).toEqual(['n/d']);
  });
});
