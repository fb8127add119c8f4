/** Watches as HTTP streams, limited in number and in unread bytes. */

import type { ServerResponse } from 'node:http';
import { WATCHES_MAX, WATCHES_PER_USER_MAX } from '../limits.ts';
import { parseListQuery, integerIn, isTrue } from '../objects/query-options.ts';
import { withWarnings, plainHeaders } from '../request/api-response.ts';
import type { ObjectRegistry } from '../objects/object-registry.ts';
import { type ObjectViews, includeObject } from '../objects/object-view.ts';
import type { WatchResponse } from '../request/resource-handler.ts';
import { tooManyRequests } from '../status.ts';
import type { UserInfo } from '../user.ts';
import { ObjectWatch, WatchConnection, WatchForm, WatchLines, type WatchOptions } from './watch-objects.ts';

export interface WatchStreamsOptions {
  readonly registry: Pick<ObjectRegistry, 'store' | 'clock' | 'random'>;
  readonly views: ObjectViews;
  /** Default 1 minute. */
  readonly bookmarkIntervalMs?: number;
  /** No event tells that these users have lost their rights: their watches are authorized again and again. Default: none. */
  readonly rechecksWatchesOf?: (user: UserInfo) => boolean;
  /** Default {@link WATCHES_MAX}. */
  readonly watchesMax?: number;
  /** Default {@link WATCHES_PER_USER_MAX}. */
  readonly watchesPerUserMax?: number;
}

const BOOKMARK_INTERVAL_MS = 60_000;
/** Without `timeoutSeconds` a watch lasts between this long and twice as long. */
const TIMEOUT_MIN_MS = 30 * 60_000;
const TIMEOUT_MAX_MS = 60 * 60_000;
const RECHECK_INTERVAL_MS = 10_000;

export class WatchStreams {
  readonly #options: WatchStreamsOptions;
  readonly #watches = new Map<ObjectWatch, UserInfo>();
  /** Number of open watches by user name. */
  readonly #byUser = new Map<string, number>();
  readonly #lines: WatchLines;

  constructor(options: WatchStreamsOptions) {
    this.#options = options;
    this.#lines = new WatchLines(options.views);
  }

  /**
   * Sends the head of the stream on `response`; `start()` of the result starts the events. `ended` is called when the connection has
   * closed. Throws `StatusError` before anything is sent.
   */
  open(
    response: ServerResponse,
    query: URLSearchParams,
    answer: WatchResponse,
    ended: () => void,
  ): ObjectWatch {
    const { user } = answer;
    this.#rejectTooMany(user.name);
    const options = this.#optionsOf(query, answer);
    const { store, clock } = this.#options.registry;
    const form = new WatchForm(this.#lines, answer, includeObject(query), clock);
    const connection = new WatchConnection(response, () => {
      this.#forget(watch, user.name);
      watch.close();
      ended();
    });
    const watch = new ObjectWatch(store, clock, connection, form, options);
    if (this.#options.rechecksWatchesOf?.(user) === true) watch.every(RECHECK_INTERVAL_MS, answer.recheck);
    this.#watches.set(watch, user);
    this.#byUser.set(user.name, (this.#byUser.get(user.name) ?? 0) + 1);
    const { headers } = withWarnings({ code: 200, headers: {}, body: '' }, answer.warnings);
    connection.start({
      'content-type': 'application/json',
      'cache-control': 'no-cache, private',
      ...plainHeaders(headers),
    });
    return watch;
  }

  closeAll(): void {
    for (const watch of this.#watches.keys()) watch.close();
  }

  /** Ends the watches of users whose rights have changed. */
  closeOf(isAffected: (user: UserInfo) => boolean): void {
    for (const [watch, user] of this.#watches) if (isAffected(user)) watch.close();
  }

  #rejectTooMany(user: string): void {
    const { watchesMax = WATCHES_MAX, watchesPerUserMax = WATCHES_PER_USER_MAX } = this.#options;
    if (this.#watches.size >= watchesMax) throw tooManyRequests('too many watches are open, try again later');
    if ((this.#byUser.get(user) ?? 0) >= watchesPerUserMax) {
      throw tooManyRequests('this user has too many watches open, close some or try again later');
    }
  }

  #forget(watch: ObjectWatch, user: string): void {
    if (!this.#watches.delete(watch)) return;
    const left = (this.#byUser.get(user) ?? 1) - 1;
    if (left > 0) this.#byUser.set(user, left);
    else this.#byUser.delete(user);
  }

  #optionsOf(query: URLSearchParams, answer: WatchResponse): WatchOptions {
    const { bookmarkIntervalMs } = this.#options;
    const listQuery = parseListQuery(answer.target, query, true);
    const initialEvents = query.get('sendInitialEvents');
    const timeoutMs = this.#timeoutMs(integerIn(query, 'timeoutSeconds') ?? 0);
    return {
      query: listQuery,
      timeoutMs,
      hasBookmarks: isTrue(query.get('allowWatchBookmarks')),
      bookmarkIntervalMs: bookmarkIntervalMs ?? BOOKMARK_INTERVAL_MS,
      sendsInitialEvents: initialEvents === null ? undefined : isTrue(initialEvents),
    };
  }

  /** 0: the client requests no timeout. */
  #timeoutMs(seconds: number): number {
    if (seconds === 0) return TIMEOUT_MIN_MS * (1 + this.#options.registry.random());
    return Math.min(Math.max(0, seconds * 1000), TIMEOUT_MAX_MS);
  }
}
