/** Events are ordered and complete, whatever happens to the list-watch. */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../../src/kube/object.ts';
import {
  encodeSecret,
  SecretDecoder,
  SecretNames,
} from '../../../../src/apiserver/storage/secrets/secret-codec.ts';
import { EventFeed } from '../../../../src/apiserver/storage/event-feed.ts';
import type {
  SecretProjections,
  WriteLedger,
} from '../../../../src/apiserver/storage/secrets/secret-cache.ts';
import { SecretCache } from '../../../../src/apiserver/storage/secrets/secret-cache.ts';
import { silentLogger, type Logger } from '../../../../src/base/logger.ts';
import { type Projection, StoreError, type StoreEvent } from '../../../../src/apiserver/storage/store.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const names = new SecretNames('test');

function thing(name: string): { resource: string; namespace: string; name: string } {
  return { resource: 'things', namespace: '', name };
}

async function secret(
  name: string,
  revision: number,
  value: Record<string, number> = {},
): Promise<KubeObject> {
  const created = await encodeSecret(names, { key: thing(name), value, writeId: `${name}-${revision}` });
  return { ...created, metadata: { ...created.metadata, resourceVersion: String(revision) } };
}

interface Harness {
  readonly cache: SecretCache;
  readonly feed: EventFeed;
  readonly ledger: WriteLedger;
  readonly projections: SecretProjections;
  readonly clock: FakeClock;
  readonly list: (revision: number, ...secrets: KubeObject[]) => void;
  readonly follow: (after: number, range?: { resource: string; namespace?: string }) => string[];
  /** The revision of a bookmark. */
  readonly bookmark: (revision: number) => void;
}

function prepare(limits: { eventsMax?: number; bytesMax?: number; logger?: Logger } = {}): Harness {
  const { eventsMax = 100, bytesMax = 1_000_000, logger = silentLogger } = limits;
  const clock = new FakeClock();
  const feed = new EventFeed({ eventsMax, bytesMax }, logger);
  const decoder = new SecretDecoder(names, silentLogger, 'ns');
  let bookmarked = 0;
  const cache = new SecretCache({ decoder, feed, clock, bookmarked: () => bookmarked });
  const { ledger, projections } = cache;
  const bookmark = (revision: number): void => void (bookmarked = revision);
  const follow: Harness['follow'] = (after, range = { resource: 'things' }) => {
    const seen: string[] = [];
    feed.subscribe(range, after, {
      event: (event) => void seen.push(lineOf(event)),
      end: () => void seen.push('end'),
    });
    return seen;
  };
  const list: Harness['list'] = (revision, ...secrets) => {
    cache.listStarted({ resourceVersion: '', isRewound: false, isInterrupted: false, requestedAtMs: 0 });
    cache.listPage(secrets);
    cache.listComplete(String(revision));
  };
  return { cache, feed, ledger, projections, clock, list, follow, bookmark };
}

function lineOf({ type, revision, entry, previous }: StoreEvent): string {
  const before = previous === undefined ? '' : ` after ${previous.revision}`;
  return `${type} ${entry.key.name} @${revision}/${entry.revision}${before}`;
}

describe('the cache', () => {
  test('publishes an event for each change, with the previous state', async () => {
    const { cache, list, follow } = prepare();
    list(10, await secret('a', 5));
    const seen = follow(10);
    cache.event('MODIFIED', await secret('a', 11));
    cache.event('ADDED', await secret('b', 12));
    cache.event('DELETED', await secret('a', 13));
    expect(seen).toEqual(['updated a @11/11 after 5', 'created b @12/12', 'deleted a @13/13 after 11']);
    expect(cache.revision).toBe(13);
    expect(follow(11)).toEqual(['created b @12/12', 'deleted a @13/13 after 11']);
  });

  test('publishes nothing for the first list, and nothing twice', async () => {
    const { cache, list, follow } = prepare();
    list(10, await secret('a', 5));
    const seen = follow(10);
    cache.event('ADDED', await secret('a', 5));
    list(12, await secret('a', 5));
    expect(seen).toEqual([]);
  });

  test('publishes changes that a list shows, in the order of revisions', async () => {
    const { cache, feed, list, follow } = prepare();
    list(10, await secret('a', 5), await secret('b', 6), await secret('c', 7), await secret('d', 8));
    const seen = follow(10);
    list(30, await secret('e', 21), await secret('a', 20), await secret('d', 8));
    expect(seen).toEqual([
      'updated a @20/20 after 5',
      'created e @21/21',
      'deleted b @30/30 after 6',
      'deleted c @30/30 after 7',
    ]);
    expect(cache.revision).toBe(30);
    // The revision of these deletions is unknown: watches that are older than the list must list again.
    expect(feed.floor).toBe(30);
    expect(() => follow(20)).toThrow(StoreError);
    cache.event('MODIFIED', await secret('a', 31));
    expect(seen.at(-1)).toBe('updated a @31/31 after 20');
  });

  test('ends watches that began while the list-watch was interrupted: short-lived objects were missed', async () => {
    const { feed, list, follow, bookmark } = prepare();
    list(10, await secret('a', 5));
    bookmark(12);
    const [exact, bookmarked, blind, later] = [follow(10), follow(12), follow(15), follow(40)];
    // A client that listed at 15 saw b, which the cache never saw. It must list again to find that b is deleted.
    list(30, await secret('a', 20));
    expect([exact, bookmarked]).toEqual([['updated a @20/20 after 5'], ['updated a @20/20 after 5']]);
    expect([blind, later]).toEqual([['end'], []]);
    expect(feed.floor).toBe(30);
    expect(() => follow(15)).toThrow(StoreError);
  });

  test('ends no watch when a list shows that nothing was missed', async () => {
    const { feed, list, follow, bookmark } = prepare();
    list(10, await secret('a', 5));
    bookmark(30);
    const seen = follow(20);
    list(30, await secret('a', 5));
    expect([seen, feed.floor]).toEqual([[], 10]);
  });

  test('treats a list with an older state as a restored server, whatever its revision', async () => {
    const { list, follow } = prepare();
    list(100, await secret('a', 90), await secret('b', 50));
    const seen = follow(100);
    // Restored from a backup at 60, with many writes since.
    list(130, await secret('a', 55), await secret('b', 50));
    expect(seen).toEqual(['end']);
    expect(() => follow(120)).toThrow(StoreError);
  });

  test('treats a list that contradicts the known events as a restored server', async () => {
    const deleted = prepare();
    deleted.list(100, await secret('a', 90), await secret('b', 50));
    deleted.cache.event('DELETED', await secret('a', 101));
    const seen = deleted.follow(101);
    deleted.list(130, await secret('a', 90), await secret('b', 50));
    expect(seen).toEqual(['end']);
    const lost = prepare();
    lost.list(100, await secret('a', 90));
    const watched = lost.follow(100);
    lost.list(100);
    expect(watched).toEqual(['end']);
    const other = prepare();
    other.list(100, await secret('a', 90));
    const followed = other.follow(100);
    const rewritten = await secret('a', 90, { value: 2 });
    rewritten.metadata.annotations = { 'endpoint-syncer/write': 'another' };
    other.list(130, rewritten);
    expect(followed).toEqual(['end']);
    expect(other.cache.held(rewritten.metadata.name)?.entry.value).toEqual({ value: 2 });
  });

  test('ignores an incomplete list', async () => {
    const { cache, list, follow } = prepare();
    list(10, await secret('a', 5), await secret('b', 6));
    const seen = follow(10);
    cache.listStarted({ resourceVersion: '', isRewound: false, isInterrupted: false, requestedAtMs: 0 });
    cache.listPage([await secret('a', 20)]);
    list(40, await secret('a', 20), await secret('b', 6));
    expect(seen).toEqual(['updated a @20/20 after 5']);
  });

  test('ends all watches when the revisions restart', async () => {
    const { cache, feed, list, follow } = prepare();
    list(100, await secret('a', 90));
    const seen = follow(100);
    cache.listStarted({ resourceVersion: '50', isRewound: true, isInterrupted: false, requestedAtMs: 0 });
    cache.listPage([await secret('a', 40), await secret('b', 41)]);
    cache.listComplete('50');
    expect(seen).toEqual(['end']);
    expect([cache.revision, feed.floor]).toEqual([50, 50]);
    const next = follow(50);
    cache.event('DELETED', await secret('a', 51));
    expect(next).toEqual(['deleted a @51/51 after 40']);
  });

  test('waits for a condition until a timeout', async () => {
    const { cache, list, clock } = prepare();
    list(10);
    const met = cache.until(() => cache.revision >= 11, 1000);
    const unmet = cache.until(() => cache.revision >= 99, 1000);
    cache.event('ADDED', await secret('a', 11));
    expect(await met).toBe(true);
    clock.advance(1000);
    expect(await unmet).toBe(false);
  });
});

describe('projections', () => {
  /** The names and revisions that a projection shows, after each change. */
  function shownBy({ cache, projections }: Harness): () => string {
    const shown = new Map<string, number>();
    const projection: Projection = {
      reset(entries) {
        shown.clear();
        for (const { key, revision } of entries) shown.set(key.name, revision);
      },
      changed({ name }, entry) {
        if (entry) shown.set(name, entry.revision);
        else shown.delete(name);
      },
    };
    projections.add('things', projection, cache.entries());
    return () => [...shown].map(([name, revision]) => `${name}@${revision}`).join(' ');
  }

  function written({ projections }: Harness, name: string, revision: number, atMs = 0): void {
    const entry = { key: thing(name), value: {}, revision };
    projections.show(names.object(thing(name)), { key: thing(name), entry, revision, atMs });
  }

  function deleted({ projections }: Harness, name: string, removed: number, revision: number): void {
    const key = thing(name);
    projections.show(names.object(key), { key, entry: undefined, revision, removed, atMs: 0 });
  }

  test('show a write before its event, and no earlier event undoes it', async () => {
    const harness = prepare();
    const { cache, list } = harness;
    list(10, await secret('a', 5), await secret('b', 6));
    const shown = shownBy(harness);
    written(harness, 'a', 13);
    deleted(harness, 'b', 6, 14);
    expect(shown()).toBe('a@13');
    cache.event('MODIFIED', await secret('a', 11));
    expect(shown()).toBe('a@13');
    cache.event('MODIFIED', await secret('a', 13));
    cache.event('MODIFIED', await secret('a', 15));
    expect(shown()).toBe('a@15');
    cache.event('ADDED', await secret('b', 16));
    expect(shown()).toBe('a@15 b@16');
  });

  test('show a write although a list from before it arrives later, but none that the list disproves', async () => {
    const harness = prepare();
    const { cache, list } = harness;
    list(10, await secret('a', 5), await secret('b', 6));
    const shown = shownBy(harness);
    written(harness, 'lost', 11, 90);
    deleted(harness, 'a', 5, 14);
    written(harness, 'new', 22, 110);
    cache.listStarted({ resourceVersion: '', isRewound: false, isInterrupted: false, requestedAtMs: 100 });
    cache.listPage([await secret('b', 6)]);
    cache.listComplete('20');
    expect(shown()).toBe('b@6 new@22');
    written(harness, 'b', 30, 210);
    cache.listStarted({ resourceVersion: '8', isRewound: true, isInterrupted: false, requestedAtMs: 200 });
    cache.listPage([await secret('a', 5), await secret('b', 6)]);
    cache.listComplete('8');
    expect(shown()).toBe('a@5 b@30');
  });

  test('tell when the watch has passed a write without its event', async () => {
    const harness = prepare();
    const { cache, list, projections } = harness;
    list(10, await secret('a', 5), await secret('b', 6));
    const shown = shownBy(harness);
    const isUndone = (): boolean => projections.isUndone(cache.revision, (name) => cache.held(name)?.entry);
    written(harness, 'a', 12);
    deleted(harness, 'b', 6, 14);
    expect(isUndone()).toBe(false);
    // The event of the deletion has an earlier revision than its response.
    cache.event('DELETED', await secret('b', 13));
    expect(isUndone()).toBe(true);
    cache.event('MODIFIED', await secret('a', 20));
    expect([isUndone(), shown()]).toEqual([false, 'a@20']);
  });
});

describe('pending writes', () => {
  test('are recognized by their id, even after later writes', async () => {
    const { cache, ledger, list } = prepare();
    list(10);
    const write = ledger.open(names.object(thing('a')), { writeId: 'a-11' });
    cache.event('ADDED', await secret('a', 11));
    cache.event('MODIFIED', await secret('a', 12));
    expect(write.seen?.revision).toBe(11);
  });

  test('recognize only the deletion of their revision', async () => {
    const { cache, ledger, list } = prepare();
    list(10, await secret('a', 5), await secret('b', 6));
    const name = (key: string): string => names.object(thing(key));
    const ours = ledger.open(name('a'), { deletedRevision: 5 });
    const other = ledger.open(name('b'), { deletedRevision: 6 });
    cache.event('DELETED', await secret('a', 11));
    cache.event('MODIFIED', await secret('b', 12));
    cache.event('DELETED', await secret('b', 13));
    expect(ours.seen?.revision).toBe(11);
    expect([other.seen, other.isBlind]).toEqual([undefined, false]);
  });

  test('know when a list may have skipped their event', async () => {
    const { ledger, list } = prepare();
    list(10, await secret('a', 5), await secret('b', 6), await secret('d', 8));
    const name = (key: string): string => names.object(thing(key));
    const lost = ledger.open(name('a'), { writeId: 'elsewhere' });
    const found = ledger.open(name('a'), { writeId: 'a-20' });
    const gone = ledger.open(name('b'), { deletedRevision: 6 });
    // The created object may have been deleted by another client.
    const fleeting = ledger.open(name('c'), { writeId: 'c' });
    const untouched = ledger.open(name('d'), { writeId: 'd' });
    list(30, await secret('a', 20), await secret('d', 8));
    expect([lost.isBlind, found.seen?.revision, gone.isBlind]).toEqual([true, 20, true]);
    expect([fleeting.isBlind, untouched.isBlind]).toEqual([true, false]);
  });
});
