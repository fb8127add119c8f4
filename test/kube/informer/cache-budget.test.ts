/** What the caches of one caller may hold together, while a server returns more and more. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CacheBudget, sizeOf } from '../../../src/kube/informer/cache-budget.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { garbageCollector } from '../../support/garbage.ts';
import { contents, prepare, until } from '../informer-harness.ts';
import { eventLine, list, watch, type Item } from '../scripted-server.ts';

function items(count: number, from = 0): Item[] {
  return Array.from({ length: count }, (_, at) => ({ name: `e${from + at}`, version: 1 + from + at }));
}

const LIMITS = { objectsMax: 3, bytesMax: 2 ** 20 };

describe('an informer with a budget', () => {
  test('stops at the page with which its cache has too many objects, and is not synced', async () => {
    const budget = new CacheBudget(LIMITS);
    await using harness = await prepare({ budget });
    harness.server.on('list', list(10, items(2), 'more'), list(10, items(500, 2), 'more'));
    harness.start();
    expect(await budget.exceeded).toEqual({ of: 'objects', found: 502, max: 3 });
    await until(() => harness.informer.condition.phase === 'stopped');
    expect(harness.informer.size).toBe(2);
    expect(harness.informer.isSynced).toBe(false);
    expect(harness.server.count('list')).toBe(2);
    expect(harness.metrics.ends).toEqual([]);
  });

  test.each([
    ['the same objects again and again', items(1)],
    ['empty pages', []],
  ])('ends a list that never ends: %s', async (_, page) => {
    const budget = new CacheBudget(LIMITS);
    await using harness = await prepare({ budget });
    harness.server.on('list', ...Array.from({ length: 10 }, () => list(10, page, 'more')));
    harness.start();
    expect(await budget.exceeded).toEqual({ of: 'objects', found: 4, max: 3 });
    await until(() => harness.informer.condition.phase === 'stopped');
    expect(harness.server.count('list')).toBe(4);
  });

  test('stops at the event with which its cache has too much, and what it held stays', async () => {
    const budget = new CacheBudget(LIMITS);
    await using harness = await prepare({ budget });
    harness.server.on('list', list(10, items(3)));
    const added = items(3, 20).map((item) => eventLine('ADDED', item));
    harness.server.on('watch', watch(...added));
    harness.start();
    expect(await budget.exceeded).toMatchObject({ of: 'objects', found: 4 });
    await until(() => harness.informer.condition.phase === 'stopped');
    expect(Object.keys(contents(harness.informer))).toEqual(['e0', 'e1', 'e2', 'e20']);
    expect(harness.events.filter(({ type }) => type === 'deleted')).toEqual([]);
  });

  test('a list that needs too much deletes nothing that it has not returned', async () => {
    const budget = new CacheBudget({ ...LIMITS, objectsMax: 5 });
    await using harness = await prepare({ budget });
    harness.server.on('list', list(10, items(3)), list(20, items(5, 10)));
    harness.server.on('watch', (response) => response.writeHead(410).end('{}'));
    harness.start();
    await until(() => harness.server.count('watch') === 1);
    await until(() => harness.informer.condition.phase === 'waiting');
    harness.clock.advance(60_000);
    expect(await budget.exceeded).toMatchObject({ of: 'objects', found: 6 });
    await until(() => harness.informer.condition.phase === 'stopped');
    expect(harness.events.filter(({ type }) => type === 'deleted')).toEqual([]);
  });

  test('a lowered limit applies at once, and bytes have a limit of their own', async () => {
    const budget = new CacheBudget(LIMITS);
    await using harness = await prepare({ budget });
    harness.server.on('list', list(10, items(3)));
    harness.start();
    await until(() => harness.informer.isSynced);
    expect(budget.excess).toBeUndefined();
    const bytes = [...harness.informer.list()].reduce((sum, object) => sum + sizeOf(object), 0);
    budget.use({ objectsMax: 3, bytesMax: bytes });
    expect(budget.excess).toBeUndefined();
    budget.use({ objectsMax: 3, bytesMax: bytes - 1 });
    expect(budget.excess).toEqual({ of: 'bytes', found: bytes, max: bytes - 1 });
  });

  test('what an informer holds that has ended does not count', async () => {
    const budget = new CacheBudget(LIMITS);
    {
      await using first = await prepare({ budget });
      first.server.on('list', list(10, items(3)));
      first.start();
      await until(() => first.informer.isSynced);
    }
    await using second = await prepare({ budget });
    second.server.on('list', list(10, items(3, 10)));
    second.start();
    await until(() => second.informer.isSynced);
    expect(budget.excess).toBeUndefined();
  });
});

test('the sum of what caches hold is that of their objects, whatever was added and removed before', () => {
  const object = (name: string, text: string): KubeObject => ({ metadata: { name, annotations: { text } } });
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(3), fc.string(), fc.boolean()), { minLength: 1 }), (steps) => {
      const budget = new CacheBudget({ objectsMax: 100, bytesMax: 2 ** 20 });
      const share = budget.share();
      const held = new Map<number, KubeObject>();
      for (const [key, text, isRemoved] of steps) {
        const after = isRemoved ? undefined : object(String(key), text);
        share.replaced(held.get(key), after);
        if (after === undefined) held.delete(key);
        else held.set(key, after);
      }
      const bytes = [...held.values()].reduce((sum, one) => sum + sizeOf(one), 0);
      budget.use({ objectsMax: held.size, bytesMax: bytes });
      expect(budget.excess).toBeUndefined();
      budget.use({ objectsMax: held.size, bytesMax: bytes - 1 });
      expect(budget.excess).toEqual({ of: 'bytes', found: bytes, max: bytes - 1 });
    }),
  );
});

test('the size of a value that is nested deeply is known too', () => {
  const nested: unknown = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000));
  expect(sizeOf(nested)).toBeGreaterThan(100_000);
});

/** Of V8, each list of members that no other object has takes more than the object. */
test.each<[string, (at: number) => JsonObject]>([
  ['members of its own', (at) => ({ [`k${at}`]: 0 })],
  ['two members of its own', (at) => ({ [`k${at}`]: 0, [`l${at}`]: 0 })],
  ['members in an order of its own', (at) => Object.fromEntries(orderOf(at).map((key) => [key, 0]))],
])('objects of which each has %s count at least half of the heap that they take', (_, one) => {
  const collect = garbageCollector();
  const heap = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const texts = Array.from({ length: 100 }, (_page, page) =>
    JSON.stringify({
      metadata: { name: `e${page}` },
      x: Array.from({ length: 1000 }, (_at, at) => one(1000 * page + at)),
    }),
  );
  const before = heap();
  const budget = new CacheBudget({ objectsMax: 1000, bytesMax: 2 ** 40 });
  const share = budget.share();
  const held = texts.map((text) => JSON.parse(text) as KubeObject);
  for (const object of held) share.replaced(undefined, object);
  const taken = heap() - before;
  expect(taken).toBeGreaterThan(10 * 2 ** 20);
  expect(budget.bytes).toBeGreaterThan(taken / 2);
  for (const object of held) share.replaced(object, undefined);
  expect(budget.bytes).toBe(0);
});

test('objects with the same members count as they are, however many', () => {
  const budget = new CacheBudget({ objectsMax: 100_000, bytesMax: 2 ** 40 });
  const share = budget.share();
  let bytes = 0;
  for (let at = 0; at < 20_000; at++) {
    const object = { metadata: { name: `e${at}`, labels: { a: 'b' } }, subsets: [{ ports: [{ port: at }] }] };
    bytes += sizeOf(object);
    share.replaced(undefined, object);
  }
  expect(budget.bytes).toBe(bytes);
});

/** A permutation of eight names. */
function orderOf(at: number): string[] {
  const left = 'abcdefgh'.split('');
  const order: string[] = [];
  for (let rest = at; left.length > 0; rest = Math.floor(rest / (left.length + 1)))
    order.push(...left.splice(rest % left.length, 1));
  return order;
}
