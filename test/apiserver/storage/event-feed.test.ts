/** Watches get each event of their range once, in order, whatever other observers do. */

import { describe, expect, test } from 'vitest';
import { EventFeed } from '../../../src/apiserver/storage/event-feed.ts';
import type { StoreEvent, StoreRange, WatchObserver } from '../../../src/apiserver/storage/store.ts';
import { silentLogger, type Logger } from '../../../src/base/logger.ts';

const THINGS: StoreRange = { resource: 'things' };

function feedOf({ eventsMax = 100, bytesMax = 1_000_000, logger = silentLogger } = {}): EventFeed {
  return new EventFeed({ eventsMax, bytesMax }, logger);
}

function created(revision: number): StoreEvent {
  const key = { resource: 'things', namespace: '', name: `n${revision}` };
  return { type: 'created', revision, entry: { key, value: {}, revision } };
}

/** The revisions that an observer sees from now on, and `end`. */
function follow(feed: EventFeed, after: number, range = THINGS): (number | string)[] {
  const seen: (number | string)[] = [];
  feed.subscribe(range, after, {
    event: ({ revision }) => void seen.push(revision),
    end: () => void seen.push('end'),
  });
  return seen;
}

function publish(feed: EventFeed, first: number, last: number, bytes = 0): void {
  for (let revision = first; revision <= last; revision++) feed.publish(created(revision), bytes);
}

describe('a watch', () => {
  test('gets only events after the requested revision, and of its range', () => {
    const feed = feedOf();
    // A client wrote and read at revision 12, which the store has not published yet.
    const seen = follow(feed, 12);
    publish(feed, 11, 13);
    expect(seen).toEqual([13]);
    expect(follow(feed, 11)).toEqual([12, 13]);
    expect(follow(feed, 10, { resource: 'others' })).toEqual([]);
    expect(follow(feed, 10, { resource: 'things', namespace: 'x' })).toEqual([]);
  });

  test('ends where its start is in a range of revisions whose events were missed', () => {
    const feed = feedOf();
    const watches = [3, 4, 5, 6].map((after) => follow(feed, after));
    feed.endBetween(3, 5);
    publish(feed, 7, 7);
    expect(watches).toEqual([[7], ['end'], ['end'], [7]]);
  });
});

describe('the history', () => {
  test('is limited in its number of events', () => {
    const feed = feedOf({ eventsMax: 3 });
    publish(feed, 11, 20);
    expect(feed.floor).toBe(17);
    expect(follow(feed, 17)).toEqual([18, 19, 20]);
  });

  test('is limited in its bytes, and keeps the newest event however large it is', () => {
    const feed = feedOf({ bytesMax: 300 });
    publish(feed, 11, 20, 100);
    expect(follow(feed, feed.floor)).toEqual([19, 20]);
    feed.publish(created(21), 1000);
    expect(follow(feed, feed.floor)).toEqual([21]);
  });
});

describe('an observer', () => {
  test('is isolated from an error in another', () => {
    const errors: string[] = [];
    const logger: Logger = { ...silentLogger, error: (_, message) => void errors.push(message) };
    const feed = feedOf({ logger });
    const bug = (): void => {
      throw new Error('bug');
    };
    feed.subscribe(THINGS, 10, { event: bug, end: bug });
    const seen = follow(feed, 10);
    publish(feed, 11, 11);
    expect(seen).toEqual([11]);
    expect(errors).toEqual(['observer of the store failed']);
  });

  test('may subscribe and end while an event is published', () => {
    const feed = feedOf();
    const [first, late]: [number[], number[]] = [[], []];
    const observer = (seen: number[], next = (): void => undefined): WatchObserver => ({
      event({ revision }) {
        seen.push(revision);
        next();
      },
      end: () => undefined,
    });
    const stop = feed.subscribe(
      THINGS,
      10,
      observer(first, () => {
        stop();
        feed.subscribe(THINGS, 10, observer(late));
      }),
    );
    publish(feed, 11, 12);
    expect([first, late]).toEqual([[11], [11, 12]]);
  });
});
