/** Faults at the HTTP boundary, for tests: what a network and an overloaded server do to their clients. */

import type { Verb } from './resource-definition.ts';

export interface InterceptedRequest {
  readonly method: string;
  /** Path and query as the client sent them. */
  readonly url: string;
  /** Empty for what is no request for objects. */
  readonly verb: Verb | '';
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly body: string;
}

export type Fault =
  /** Answers at once with a Status; nothing is done. */
  | {
      readonly status: number;
      readonly reason?: string;
      readonly message?: string;
      readonly retryAfterSeconds?: number;
    }
  /** Closes the connection; nothing is done. */
  | 'drop'
  /** Does what was asked, then resets the connection: the answer is lost. */
  | 'reset-after-commit'
  /** Waits, then goes on as if nothing had been. */
  | { readonly delayMs: number };

/** Asked before every request; undefined lets it pass. */
export type Interceptor = (request: InterceptedRequest) => Fault | undefined;
