/** What goes wrong, and how often. All draws come from one seeded source, so a seed repeats a run. */

import type { Random } from '../../../src/base/random.ts';
import { MalformedResponseError } from '../../../src/kube/types.ts';
import { refusal } from './sim-cluster.ts';
import { lostAnswer } from './wire.ts';

/** Probabilities of one period of trouble; 0 is never. */
export interface FaultRates {
  /** Of a request that is refused or lost before it is done. */
  readonly refused: number;
  /** Of a write that is done although its answer is lost. */
  readonly lostAnswers: number;
  /** Of a 200 that holds something else than the object. */
  readonly garbled: number;
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
}

const REFUSALS: readonly (() => Error)[] = [
  () => refusal(500, 'InternalError', 'internal error'),
  () => refusal(503, 'ServiceUnavailable', 'unavailable'),
  () => refusal(503, 'ServiceUnavailable', 'unavailable', 999_999_999_000),
  () => refusal(429, 'TooManyRequests', 'slow down', 0),
  () => refusal(429, 'TooManyRequests', 'slow down', 1000),
  () => lostAnswer(),
];

export class Faults {
  readonly #random: Random;
  rates: FaultRates = CALM;

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
    return this.#is(this.rates.staleLists);
  }

  isEventTwice(): boolean {
    return this.#is(this.rates.eventsTwice);
  }

  isEventReplayed(): boolean {
    return this.#is(this.rates.eventsReplayed);
  }

  isSandboxStopped(): boolean {
    return this.#is(this.rates.sandboxStops);
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
  refusalOf(): Error | undefined {
    if (!this.#is(this.rates.refused)) return undefined;
    const draw = REFUSALS[this.between(0, REFUSALS.length - 1)];
    return (draw ?? lostAnswer)();
  }

  requestFault(kind: 'read' | 'list' | 'write'): RequestFault | undefined {
    const error = this.refusalOf();
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

  #is(probability: number): boolean {
    return probability > 0 && this.#random() < probability;
  }
}
