/** The faults and their probabilities. All draws come from one seeded source, so a seed repeats a run. */

import type { Random } from '../../../src/base/random.ts';
import { MalformedResponseError } from '../../../src/kube/types.ts';
import { failure } from '../../../src/kube/status-error.ts';
import { lostAnswer } from './sim-watch.ts';

/** Probabilities of one period of trouble; 0 is never. */
export interface FaultRates {
  /** Of a request that is refused or lost before it is done. */
  readonly refused: number;
  /** Of a write that is done although its answer is lost. */
  readonly lostAnswers: number;
  /** Of a 200 that holds something else than the object. */
  readonly garbled: number;
  /** Of a request whose answer does not come before its timeout. */
  readonly hung: number;
  /** Of a write that is rejected by 409 or 422 although nothing is wrong with it. */
  readonly rejected: number;
  readonly staleLists: number;
  readonly eventsTwice: number;
  readonly eventsReplayed: number;
  /** Of a watch that breaks off soon. */
  readonly briefWatches: number;
  readonly stalledWatches: number;
  /** Of an evaluation that the sandbox's watchdog stops. */
  readonly sandboxStops: number;
  readonly latencyMaxMs: number;
}

export const CALM: FaultRates = {
  refused: 0,
  lostAnswers: 0,
  garbled: 0,
  hung: 0,
  rejected: 0,
  staleLists: 0,
  eventsTwice: 0,
  eventsReplayed: 0,
  briefWatches: 0,
  stalledWatches: 0,
  sandboxStops: 0,
  latencyMaxMs: 10,
};

export interface RequestFault {
  /** Before or after the server has done what was asked. */
  readonly when: 'before' | 'after';
  readonly error: Error;
  /** The error comes only when the request times out. */
  readonly isHung?: boolean;
}

const REFUSALS: readonly (() => Error)[] = [
  () => failure(500, 'InternalError', 'internal error'),
  () => failure(503, 'ServiceUnavailable', 'unavailable'),
  () => failure(503, 'ServiceUnavailable', 'unavailable', undefined, 999_999_999_000),
  () => failure(429, 'TooManyRequests', 'slow down', undefined, 0),
  () => failure(429, 'TooManyRequests', 'slow down', undefined, 1000),
  () => failure(504, 'Timeout', 'etcd did not answer'),
  () => lostAnswer(),
];

const REJECTIONS: readonly (() => Error)[] = [
  () => failure(409, 'Conflict', 'the object has been modified'),
  () => failure(422, 'Invalid', 'an admission webhook rejected it'),
];

/** `unrejected`: an Event, as a recorder drops those that are rejected for what is in them; and what the end of its namespace rejects first. */
export type RequestKind = 'read' | 'list' | 'write' | 'unrejected';

export interface SandboxFault {
  readonly kind: 'timeout' | 'memory' | 'killed';
  /** Until the response comes: a program that hangs is stopped by the watchdog. */
  readonly delayMs: number;
  readonly retryAfterMs?: number;
}

const SANDBOX_FAULTS: readonly SandboxFault[] = [
  { kind: 'timeout', delayMs: 2000 },
  { kind: 'timeout', delayMs: 2000, retryAfterMs: 10_000 },
  { kind: 'memory', delayMs: 300 },
  { kind: 'killed', delayMs: 1 },
];

export class Faults {
  readonly #random: Random;
  rates: FaultRates = CALM;
  /** A list has shown an earlier state. */
  hasListedPast = false;

  constructor(random: Random) {
    this.#random = random;
  }

  latencyMs(): number {
    return 1 + this.#random() * this.rates.latencyMaxMs;
  }

  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.#random() * (high - low + 1));
  }

  isListStale(): boolean {
    const isStale = this.#is(this.rates.staleLists);
    this.hasListedPast ||= isStale;
    return isStale;
  }

  isEventTwice(): boolean {
    return this.#is(this.rates.eventsTwice);
  }

  isEventReplayed(): boolean {
    return this.#is(this.rates.eventsReplayed);
  }

  isWatchCut(): boolean {
    return this.#is(0.5);
  }

  watchLifeMs(): number {
    return this.#is(this.rates.briefWatches) ? this.#random() * 5000 : Infinity;
  }

  stallAfterMs(): number | undefined {
    return this.#is(this.rates.stalledWatches) ? this.#random() * 5000 : undefined;
  }

  /** Why a request is refused or lost before it is done; undefined: it is done. */
  refusalOf(kind: RequestKind = 'read'): Error | undefined {
    if (kind === 'write' && this.#is(this.rates.rejected)) return this.#one(REJECTIONS);
    return this.#is(this.rates.refused) ? this.#one(REFUSALS) : undefined;
  }

  requestFault(kind: RequestKind): RequestFault | undefined {
    if (this.#is(this.rates.hung))
      return { when: this.#is(0.5) ? 'before' : 'after', error: lostAnswer(), isHung: true };
    const error = this.refusalOf(kind);
    if (error !== undefined) return { when: 'before', error };
    if (kind === 'list') return undefined;
    if (this.#is(this.rates.lostAnswers)) return { when: 'after', error: lostAnswer() };
    if (kind === 'write' && this.#is(this.rates.garbled))
      return {
        when: 'after',
        error: new MalformedResponseError('the answer is not the object that was asked for'),
      };
    return undefined;
  }

  /** How the sandbox fails to evaluate; undefined: it does not fail. */
  sandboxFault(): SandboxFault | undefined {
    if (!this.#is(this.rates.sandboxStops)) return undefined;
    return SANDBOX_FAULTS[this.between(0, SANDBOX_FAULTS.length - 1)];
  }

  #one(errors: readonly (() => Error)[]): Error {
    const draw = errors[this.between(0, errors.length - 1)] ?? lostAnswer;
    return draw();
  }

  #is(probability: number): boolean {
    return probability > 0 && this.#random() < probability;
  }
}
