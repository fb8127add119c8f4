/** A bounded log of events, in the order of their revisions. */

import type { StoreEvent } from './store.ts';

/** The log is shortened when it exceeds either limit. */
export interface HistoryLimits {
  readonly eventsMax: number;
  /** Total of the sizes that are passed with the events. */
  readonly bytesMax: number;
}

interface LoggedEvent {
  readonly event: StoreEvent;
  readonly bytes: number;
}

/** With fewer events than this, the limit of events is exact. */
const EXACT_BELOW = 64;

export class EventLog {
  readonly #limits: HistoryLimits;
  readonly #events: LoggedEvent[] = [];
  #bytes = 0;
  /** Number of events that were removed so far. */
  #removed = 0;
  #floor = 0;

  constructor(limits: HistoryLimits) {
    this.#limits = { ...limits, eventsMax: Math.max(1, limits.eventsMax) };
  }

  /** The log is complete after this revision. */
  get floor(): number {
    return this.#floor;
  }

  append(event: StoreEvent, bytes: number): void {
    this.#events.push({ event, bytes });
    this.#bytes += bytes;
    this.#shorten();
  }

  /** The events after a revision, including those that are appended during the iteration. */
  *after(revision: number): Generator<StoreEvent, void> {
    for (let number = this.#removed + this.#firstAfter(revision); ; number++) {
      const logged = this.#events[number - this.#removed];
      if (!logged) return;
      yield logged.event;
    }
  }

  /** Removes events up to and including `revision`. */
  compact(revision: number): void {
    this.#remove(this.#firstAfter(revision));
    this.#floor = Math.max(this.#floor, revision);
  }

  /** Removes all events; the log begins after `revision`. */
  reset(revision: number): void {
    this.#remove(this.#events.length);
    this.#floor = revision;
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

  /** Index of the first event after a revision. */
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
