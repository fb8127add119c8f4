/** A client on the connections of another one. */

import { sleep, type Clock } from '../base/clock.ts';
import { createSemaphore, type Semaphore } from '../base/semaphore.ts';
import { TokenBucket, type Rate } from '../base/token-bucket.ts';
import { TransportError, type RequestOptions, type WatchClient } from './types.ts';

export interface BorrowedOptions {
  /** Requests in flight, except for watches; the others wait, so that those of other borrowers do not. */
  readonly requestsMax?: number;
  /** Requests that take longer than this are not counted, so that the requests of some, which all hang, do not keep those of others from being sent. */
  readonly hanging?: { readonly afterMs: number; readonly clock: Clock } | undefined;
  /** Of writes. Default: as many as are sent. */
  readonly writeRate?: { readonly rate: Rate; readonly clock: Clock } | undefined;
}

/** Disposing of the result aborts its own requests in flight and rejects later ones; `client` and its connections stay open. */
export function borrowedClient(
  client: WatchClient,
  { requestsMax = Infinity, hanging, writeRate }: BorrowedOptions = {},
): WatchClient {
  const closing = new AbortController();
  const own = <T extends RequestOptions>(options: T | undefined): T & RequestOptions => ({
    ...(options ?? ({} as T)), // every member of T is optional
    signal:
      options?.signal === undefined ? closing.signal : AbortSignal.any([options.signal, closing.signal]),
  });
  const permits = createSemaphore(requestsMax);
  const inFlight = hanging === undefined ? permits : withoutHanging(permits, hanging);
  const turns = createSemaphore(1);
  const bucket = writeRate && new TokenBucket(writeRate.rate, writeRate.clock);
  const turn = async (): Promise<void> => {
    if (bucket === undefined || writeRate === undefined) return;
    for (let ms = bucket.take(); ms > 0 && !closing.signal.aborted; ms = bucket.take())
      await sleep(writeRate.clock, ms, closing.signal);
  };
  // What waits for its turn has no request in flight.
  const write = async <T>(send: () => Promise<T>): Promise<T> => {
    await turns.run(turn);
    return inFlight.run(send);
  };
  return {
    cluster: client.cluster,
    get: (resource, key, options) => inFlight.run(() => client.get(resource, key, own(options))),
    list: (resource, options) => inFlight.run(() => client.list(resource, own(options))),
    watch: (resource, options, handler) => client.watch(resource, own(options), handler),
    create: (resource, object, options) => write(() => client.create(resource, object, own(options))),
    update: (resource, object, options) => write(() => client.update(resource, object, own(options))),
    patch: (resource, key, patch, options) => write(() => client.patch(resource, key, patch, own(options))),
    delete: (resource, key, preconditions, options) =>
      write(() => client.delete(resource, key, preconditions, own(options))),
    request: (method, path, body, options) =>
      inFlight.run(() => client.request(method, path, body, own(options))),
    async [Symbol.asyncDispose]() {
      // As of a connection that is closed: a write may have happened.
      closing.abort(new TransportError('this client is closed'));
    },
  };
}

/** Releases the permit of a task that takes too long before it has ended. */
function withoutHanging(
  permits: Semaphore,
  { afterMs, clock }: { readonly afterMs: number; readonly clock: Clock },
): Semaphore {
  return {
    run<T>(task: () => Promise<T>) {
      const result = Promise.withResolvers<T>();
      void permits.run(async () => {
        const running = task();
        result.resolve(running);
        const released = Promise.withResolvers<void>();
        const timer = clock.schedule(afterMs, released.resolve);
        const end = (): void => released.resolve();
        running.then(end, end);
        await released.promise;
        timer.cancel();
      });
      return result.promise;
    },
  };
}
