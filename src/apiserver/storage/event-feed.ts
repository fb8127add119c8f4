/** Recent events in order, and the watches that receive them. */

import type { Logger } from '../../base/logger.ts';
import { EventLog, type HistoryLimits } from './event-log.ts';
import { compacted, isInRange, type StoreEvent, type StoreRange, type WatchObserver } from './store.ts';

interface Watcher {
  readonly range: StoreRange;
  readonly afterRevision: number;
  readonly observer: WatchObserver;
  /** Events up to this one were sent by the replay. */
  readonly replayed: number;
}

export class EventFeed {
  readonly #logger: Logger;
  readonly #log: EventLog;
  /** By resource: an event concerns only the watches of its kind. */
  readonly #watchers = new Map<string, Set<Watcher>>();
  /** Number of events so far: several deletions that a list has shown have one revision. */
  #sequence = 0;

  constructor(limits: HistoryLimits, logger: Logger) {
    this.#log = new EventLog(limits);
    this.#logger = logger;
  }

  /** A watch can begin after this revision or any later one. */
  get floor(): number {
    return this.#log.floor;
  }

  /** The events after a revision. */
  after(revision: number): Iterable<StoreEvent> {
    return this.#log.after(revision);
  }

  /** `bytes`: the size of the event in the history. */
  publish(event: StoreEvent, bytes: number): void {
    this.#log.append(event, bytes);
    const sequence = ++this.#sequence;
    for (const watcher of this.#watchers.get(event.entry.key.resource) ?? []) {
      if (watcher.replayed < sequence) this.#send(watcher, event);
    }
  }

  /** Replays the events after `afterRevision`, then sends live ones. Returns a function that ends it. Throws `compacted`. */
  subscribe(range: StoreRange, afterRevision: number, observer: WatchObserver): () => void {
    if (afterRevision < this.floor) throw compacted(afterRevision, this.floor);
    const watcher: Watcher = { range, afterRevision, observer, replayed: this.#sequence };
    for (const event of this.#log.after(afterRevision)) this.#send(watcher, event);
    const watchers = this.#watchers.get(range.resource) ?? new Set();
    this.#watchers.set(range.resource, watchers.add(watcher));
    return () => void watchers.delete(watcher);
  }

  /** Removes events up to and including `revision`. */
  forget(revision: number): void {
    this.#log.compact(revision);
  }

  /** The counter has restarted: earlier revisions are meaningless, so all watches end. */
  restart(revision: number): void {
    this.#log.reset(revision);
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
}
