/** One line of the log for one outage, however many attempts fail while it lasts. */

import type { LogFields, Logger } from './logger.ts';

/** Logs the first failure, and those that follow at level `debug`, until `ended` is called. */
export class OutageLog {
  readonly #logger: Logger;
  readonly #message: string;
  readonly #level: 'warn' | 'error';
  #hasBegun = false;

  constructor(logger: Logger, message: string, level: 'warn' | 'error' = 'warn') {
    this.#logger = logger;
    this.#message = message;
    this.#level = level;
  }

  failed(fields: LogFields): void {
    this.#logger[this.#hasBegun ? 'debug' : this.#level](fields, this.#message);
    this.#hasBegun = true;
  }

  ended(): void {
    this.#hasBegun = false;
  }
}
