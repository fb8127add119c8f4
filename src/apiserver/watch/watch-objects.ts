/** WATCH: the events after a revision, first from history, then as they happen. */

import type { Clock, Timer } from '../../base/clock.ts';
import { isTransient } from '../../kube/status-error.ts';
import { StoreError, type Store, type StoreEvent, type StoreWatch } from '../storage/store.ts';
import { ITEMS_PER_TURN, nextTurn } from '../objects/list-objects.ts';
import type { ListQuery } from '../objects/query-options.ts';
import { expired } from '../status.ts';
import { errorLine, type WatchConnection, type WatchForm } from './watch-connection.ts';

export interface WatchOptions {
  readonly query: ListQuery;
  readonly timeoutMs: number;
  readonly hasBookmarks: boolean;
  readonly bookmarkIntervalMs: number;
  /** True: send the current objects first, then a bookmark. False: do not send them. Undefined: the resourceVersion decides. */
  readonly sendsInitialEvents: boolean | undefined;
}

/** Current objects that are sent before the client must have read them: few, because one may have 3 MiB. */
const ENTRIES_PER_WRITE = 4;

/** Ends by timeout, by `close()`, or when the store ends it; nothing is sent afterwards. */
export class ObjectWatch {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #connection: WatchConnection;
  readonly #form: WatchForm;
  readonly #options: WatchOptions;
  readonly #timers = new Set<Timer>();
  #watch: StoreWatch | undefined;
  #isEnded = false;

  constructor(
    store: Store,
    clock: Clock,
    connection: WatchConnection,
    form: WatchForm,
    options: WatchOptions,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#connection = connection;
    this.#form = form;
    this.#options = options;
  }

  async start(): Promise<void> {
    if (this.#isEnded) return;
    const { query } = this.#options;
    this.#schedule(this.#options.timeoutMs, () => {
      this.#bookmark();
      this.#end();
    });
    try {
      const after = await this.#initial();
      // It may have ended while the client read the current objects.
      if (this.#isEnded) return;
      const requested = Number(query.resourceVersion || 0);
      const watch = await this.#store.watch(query.range, after, {
        // The requested revision may be in the future: events up to it are not sent.
        event: (event) => (event.revision > requested ? this.#event(event) : undefined),
        end: () => this.#end(),
      });
      if (this.#isEnded) watch.close();
      else this.#watch = watch;
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#bookmarkLater();
  }

  /** Ends the watch once `check` rejects. A check that fails for the moment (5xx, 429) is repeated at its next turn. */
  every(intervalMs: number, check: () => Promise<void>): void {
    this.#schedule(intervalMs, () => {
      check().then(
        () => this.every(intervalMs, check),
        (error: unknown) => (isTransient(error) ? this.every(intervalMs, check) : this.#end()),
      );
    });
  }

  /** Sends the current objects if requested. Returns the revision after which the events begin. */
  async #initial(): Promise<number> {
    const { query, sendsInitialEvents, hasBookmarks } = this.#options;
    const requested = Number(query.resourceVersion || 0);
    if (sendsInitialEvents === false && requested === 0) return this.#store.revision();
    if (requested > 0 && !sendsInitialEvents) return Math.min(requested, await this.#store.revision());
    const { entries, revision } = await this.#store.list(query.range);
    for (const [index, entry] of entries.entries()) {
      // At the client's pace: all objects at once may be more bytes than a client may leave unread.
      if (index % ENTRIES_PER_WRITE === 0) await this.#connection.drained();
      if (index % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) await nextTurn();
      if (this.#isEnded) return revision;
      if (query.matches(entry)) this.#connection.send(this.#form.event('ADDED', entry));
    }
    if (sendsInitialEvents && hasBookmarks) this.#connection.send(this.#form.bookmark(revision, true));
    return revision;
  }

  #event(event: StoreEvent): void {
    if (this.#isEnded) return;
    const { query } = this.#options;
    const { entry, previous, revision } = event;
    const matched = previous !== undefined && query.matches(previous);
    const matches = event.type !== 'deleted' && query.matches(entry);
    if (!matches && !matched) return;
    const type = matches ? (matched ? 'MODIFIED' : 'ADDED') : 'DELETED';
    // The object no longer matches: the client gets the state that it knows, at the revision of the change.
    const shown = matches || event.type === 'deleted' ? entry : { ...(previous ?? entry), revision };
    this.#connection.send(this.#form.event(type, shown));
  }

  #bookmarkLater(): void {
    if (!this.#options.hasBookmarks || this.#isEnded) return;
    this.#schedule(this.#options.bookmarkIntervalMs, () => {
      this.#bookmark();
      this.#bookmarkLater();
    });
  }

  #bookmark(): void {
    if (this.#options.hasBookmarks && this.#watch && !this.#isEnded) {
      this.#connection.send(this.#form.bookmark(this.#watch.revision, false));
    }
  }

  #schedule(delayMs: number, callback: () => void): void {
    if (this.#isEnded) return;
    const timer = this.#clock.schedule(delayMs, () => {
      this.#timers.delete(timer);
      callback();
    });
    this.#timers.add(timer);
  }

  #fail(error: unknown): void {
    const { resourceVersion } = this.#options.query;
    if (!this.#isEnded && error instanceof StoreError && error.code === 'compacted') {
      this.#connection.send(errorLine(expired(`too old resource version: ${resourceVersion}`).status));
    }
    this.#end();
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#watch?.close();
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#connection.end();
  }

  close(): void {
    this.#end();
  }
}
