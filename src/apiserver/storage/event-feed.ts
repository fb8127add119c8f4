/** Recent events in order, and the watches that receive them. */

import type { Logger } from '../../base/logger.ts';
import { compacted, isInRange, type StoreEvent, type StoreRange, type WatchObserver } from './store.ts';

interface Watcher {
  readonly range: StoreRange;
  readonly afterRevision: number;
  readonly observer: WatchObserver;
  /** Events up to this one were sent by the replay. */
  readonly replayed: number;
}

export interface HistoryLimits {
  readonly eventsMax: number;
  readonly bytesMax: number;
}

interface LoggedEvent {
  readonly event: StoreEvent;
  readonly bytes: number;
}

/** With fewer events than this, the limit of events is exact. */
const EXACT_BELOW = 64;

export class EventFeed {
  readonly #limits: HistoryLimits;
  readonly #logger: Logger;
  /** In the order of their revisions. */
  readonly #events: LoggedEvent[] = [];
  #bytes = 0;
  #removed = 0;
  #floor = 0;
  /** By resource: an event concerns only the watches of its kind. */
  readonly #watchers = new Map<string, Set<Watcher>>();

  constructor({ eventsMax, bytesMax }: HistoryLimits, logger: Logger) {
    this.#limits = { eventsMax: Math.max(1, eventsMax), bytesMax };
    this.#logger = logger;
  }

  /** The history is complete after this revision: a watch can begin there, or later. */
  get floor(): number {
    return this.#floor;
  }

  /** Number of events so far: several deletions that a list has shown have one revision. */
  get #sequence(): number {
    return this.#removed + this.#events.length;
  }

  /** The events after a revision, including those that are published during the iteration. */
  *after(revision: number): Generator<StoreEvent, void> {
    for (let number = this.#removed + this.#firstAfter(revision); ; number++) {
      const logged = this.#events[number - this.#removed];
      if (!logged) return;
      yield logged.event;
    }
  }

  publish(event: StoreEvent, bytes: number): void {
    this.#events.push({ event, bytes });
    this.#bytes += bytes;
    const sequence = this.#sequence;
    this.#shorten();
    for (const watcher of this.#watchers.get(event.entry.key.resource) ?? []) {
      if (watcher.replayed < sequence) this.#send(watcher, event);
    }
  }

  /** Replays the events after `afterRevision`, then sends live ones. Returns a function that ends it. Throws `compacted`. */
  subscribe(range: StoreRange, afterRevision: number, observer: WatchObserver): () => void {
    if (afterRevision < this.floor) throw compacted(afterRevision, this.floor);
    const watcher: Watcher = { range, afterRevision, observer, replayed: this.#sequence };
    for (const event of this.after(afterRevision)) this.#send(watcher, event);
    const watchers = this.#watchers.get(range.resource) ?? new Set();
    this.#watchers.set(range.resource, watchers.add(watcher));
    return () => void watchers.delete(watcher);
  }

  compact(revision: number): void {
    this.#remove(this.#firstAfter(revision));
    this.#floor = Math.max(this.#floor, revision);
  }

  /** The counter has restarted: earlier revisions are meaningless, so all watches end. */
  restart(revision: number): void {
    this.#remove(this.#events.length);
    this.#floor = revision;
    this.endAll();
  }

  endAll(): void {
    this.#end(() => true);
  }

  /** Ends watches that began after `from`, and not after `to`. */
  endBetween(from: number, to: number): void {
    this.#end(({ afterRevision }) => from < afterRevision && afterRevision <= to);
  }

  #end(isEnded: (watcher: Watcher) => boolean): void {
    const ended: Watcher[] = [];
    for (const watchers of this.#watchers.values())
      for (const watcher of watchers)
        if (isEnded(watcher)) {
          watchers.delete(watcher);
          ended.push(watcher);
        }
    for (const { observer } of ended) this.#guard(() => observer.end());
  }

  #send({ range, afterRevision, observer }: Watcher, event: StoreEvent): void {
    if (event.revision <= afterRevision || !isInRange(event.entry.key, range)) return;
    this.#guard(() => observer.event(event));
  }

  /** An error in one observer must neither affect the others nor look like a broken connection. */
  #guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      const stack = error instanceof Error ? error.stack : String(error);
      this.#logger.error({ stack }, 'observer of the store failed');
    }
  }

  /** Removes events in blocks: removing one event per write would move the complete log each time. */
  #shorten(): void {
    const { eventsMax, bytesMax } = this.#limits;
    const slack = eventsMax < EXACT_BELOW ? 0 : eventsMax / 4;
    const surplus = this.#events.length - eventsMax;
    let count = surplus > slack ? surplus : 0;
    if (this.#bytes > bytesMax) {
      let bytes = this.#bytes;
      let first = 0;
      // The newest event stays, however large it is: a watch that is up to date must be able to continue.
      for (; first < this.#events.length - 1 && bytes > bytesMax - bytesMax / 4; first++) {
        bytes -= this.#events[first]?.bytes ?? 0;
      }
      count = Math.max(count, first);
    }
    const last = this.#events[count - 1];
    // Several events may have this revision: the log after it must be complete.
    if (last) this.compact(last.event.revision);
  }

  #remove(count: number): void {
    for (const { bytes } of this.#events.splice(0, count)) this.#bytes -= bytes;
    this.#removed += count;
  }

  #firstAfter(revision: number): number {
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#events[middle]?.event.revision ?? 0) <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
