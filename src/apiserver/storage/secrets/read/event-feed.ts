/** Recent events in order, and the watches that receive them. */

import type { Logger } from '../../../../base/logger.ts';
import { compacted, isInRange, type StoreEvent, type StoreRange, type WatchObserver } from '../../store.ts';

export interface EventFeedOptions {
  readonly logger: Logger;
  /** Number of events kept for watches that begin in the past. */
  readonly eventsMax: number;
  /** JSON bytes of the objects in those events. */
  readonly bytesMax: number;
}

interface Logged {
  readonly event: StoreEvent;
  readonly bytes: number;
}

interface Watcher {
  readonly range: StoreRange;
  readonly afterRevision: number;
  readonly observer: WatchObserver;
  /** Events up to this one were sent by the replay. */
  readonly replayed: number;
}

export class EventFeed {
  readonly #options: EventFeedOptions;
  readonly #log: Logged[] = [];
  readonly #watchers = new Set<Watcher>();
  #bytes = 0;
  /** Number of events so far: a relist may find several deletions with one revision. */
  #sequence = 0;
  #floor = 0;

  constructor(options: EventFeedOptions) {
    this.#options = options;
  }

  /** A watch can begin after this revision or any later one. */
  get floor(): number {
    return this.#floor;
  }

  publish(event: StoreEvent, bytes: number): void {
    this.#log.push({ event, bytes });
    this.#bytes += bytes;
    this.#sequence += 1;
    this.#shorten();
    for (const watcher of this.#watchers) {
      if (watcher.replayed < this.#sequence) this.#send(watcher, event);
    }
  }

  /** Replays the events after `afterRevision`, then sends live ones. Returns a function that ends it. Throws `compacted`. */
  subscribe(range: StoreRange, afterRevision: number, observer: WatchObserver): () => void {
    if (afterRevision < this.#floor) throw compacted(afterRevision, this.#floor);
    const watcher: Watcher = { range, afterRevision, observer, replayed: this.#sequence };
    for (const { event } of this.#log.slice(this.#firstAfter(afterRevision))) this.#send(watcher, event);
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** Removes events up to and including `revision`. */
  forget(revision: number): void {
    const count = this.#firstAfter(revision);
    for (const { bytes } of this.#log.splice(0, count)) this.#bytes -= bytes;
    this.#floor = Math.max(this.#floor, revision);
  }

  /** The counter has restarted: earlier revisions are meaningless, so all watches end. */
  restart(revision: number): void {
    this.#log.length = 0;
    this.#bytes = 0;
    this.#floor = revision;
    this.endAll();
  }

  endAll(): void {
    this.#end(() => true);
  }

  /** Ends watches that began after `from` and before `to`. */
  endBetween(from: number, to: number): void {
    this.#end(({ afterRevision }) => from < afterRevision && afterRevision < to);
  }

  #end(isEnded: (watcher: Watcher) => boolean): void {
    const ended = [...this.#watchers].filter(isEnded);
    for (const watcher of ended) this.#watchers.delete(watcher);
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
      this.#options.logger.error({ stack }, 'observer of the store failed');
    }
  }

  #firstAfter(revision: number): number {
    const index = this.#log.findIndex(({ event }) => event.revision > revision);
    return index < 0 ? this.#log.length : index;
  }

  /** Dropped in blocks: a shift for each event would move the whole log each time. */
  #shorten(): void {
    const { eventsMax, bytesMax } = this.#options;
    const slack = eventsMax < 64 ? 0 : Math.floor(eventsMax / 4);
    if (this.#log.length <= eventsMax + slack && this.#bytes <= bytesMax) return;
    let count = Math.max(0, this.#log.length - eventsMax);
    let bytes = this.#bytes;
    for (const [index, logged] of this.#log.entries()) {
      if (index >= count && bytes <= bytesMax) break;
      bytes -= logged.bytes;
      count = Math.max(count, index + 1);
    }
    const last = this.#log[count - 1];
    if (last !== undefined) this.forget(last.event.revision);
  }
}
