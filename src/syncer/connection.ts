/** Ends requests to the clusters: with the signal of the start while the daemon starts, and by {@link Connection.close}. */

export class Connection {
  readonly #closing = new AbortController();
  readonly #start: AbortSignal;
  readonly #follow = (): void => this.close();

  constructor(start: AbortSignal) {
    this.#start = start;
    start.addEventListener('abort', this.#follow);
    if (start.aborted) this.close();
  }

  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  /** The start is over: requests in flight may be finished when the daemon stops. */
  keep(): void {
    this.#start.removeEventListener('abort', this.#follow);
  }

  close(): void {
    this.#closing.abort();
  }
}
