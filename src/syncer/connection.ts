/** Aborts requests to the clusters: on the signal of the start while the daemon starts, and on {@link Connection.close}. */

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

  /** Ignores the signal of the start from now on, so that requests in flight can be completed when the daemon stops. */
  keep(): void {
    this.#start.removeEventListener('abort', this.#follow);
  }

  close(): void {
    this.#closing.abort();
  }
}
