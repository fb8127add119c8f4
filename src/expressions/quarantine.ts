/** Records on which objects an expression had to be stopped. The delay of an object grows with each stop and never affects other objects.
 * It also decides which sandbox process runs an expression on an object: the main one, or the throttled one, which has a bounded share of time. */

import type { Clock } from '../base/clock.ts';
import { backoffDelayMs } from '../base/retry.ts';
import type { ObjectIdentity } from './types.ts';

export type Route = 'main' | 'throttled';

const WAIT_FIRST_MS = 1000;
const WAIT_MAX_MS = 5 * 60_000;
/** After this long without a stop, an object or a namespace is forgotten. */
const FORGET_MS = 10 * 60_000;
/** After this many stops of objects that had succeeded before, all objects of their namespace count as unproven. */
const PROVEN_STOPS_MAX = 3;
/** After stops in this many namespaces, unknown objects of every namespace are suspect. */
const SUSPECT_NAMESPACES_MAX = 3;
const ENTRIES_MAX = 10_000;
const PROVEN_MAX = 100_000;

interface QuarantineEntry {
  stops: number;
  untilMs: number;
  lastStopMs: number;
}

interface SuspectNamespace {
  lastStopMs: number;
  provenStops: number;
}

/** The record of one expression. Times are the clock's `now()`. */
export class Quarantine {
  readonly #clock: Clock;
  /** By namespace and name, ordered by last stop. */
  readonly #entries = new Map<string, QuarantineEntry>();
  readonly #namespaces = new Map<string, SuspectNamespace>();
  /** Names of the objects on which the expression ran without a stop, by namespace. */
  readonly #proven = new Map<string, Set<string>>();
  #provenCount = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** No recent stops: every object runs in the main process. */
  get isEmpty(): boolean {
    return this.#namespaces.size === 0;
  }

  waitUntil(object: ObjectIdentity): number | undefined {
    if (!this.#namespaces.has(object.namespace)) return undefined;
    const untilMs = this.#entry(object)?.untilMs ?? 0;
    return untilMs > this.#clock.now() ? untilMs : undefined;
  }

  wasStopped(object: ObjectIdentity): boolean {
    return this.#entry(object) !== undefined;
  }

  routeOf(object: ObjectIdentity): Route {
    // The usual case, on the hot path.
    if (!this.#isSuspect(object.namespace)) return 'main';
    if (this.#entry(object) !== undefined) return 'throttled';
    if (this.#isProven(object)) return 'main';
    this.#forgetNamespaces();
    return this.#isSuspect(object.namespace) ? 'throttled' : 'main';
  }

  recordSuccess({ namespace, name }: ObjectIdentity): void {
    const names = this.#proven.get(namespace);
    if (names === undefined) this.#proven.set(namespace, new Set([name]));
    else if (names.has(name)) return;
    else names.add(name);
    this.#provenCount += 1;
    if (this.#provenCount <= PROVEN_MAX) return;
    this.#proven.clear();
    this.#provenCount = 0;
  }

  recordStop(object: ObjectIdentity): number {
    const now = this.#clock.now();
    const stops = this.#entry(object)?.stops ?? 0;
    const untilMs = now + backoffDelayMs(stops, WAIT_FIRST_MS, WAIT_MAX_MS);
    const key = identityKey(object);
    this.#entries.delete(key);
    this.#entries.set(key, { stops: stops + 1, untilMs, lastStopMs: now });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= ENTRIES_MAX) break;
      this.#entries.delete(oldest);
    }
    this.#suspect(object, now);
    return untilMs;
  }

  #suspect({ namespace, name }: ObjectIdentity, now: number): void {
    const suspect = this.#namespaces.get(namespace) ?? { lastStopMs: now, provenStops: 0 };
    suspect.lastStopMs = now;
    this.#namespaces.set(namespace, suspect);
    const names = this.#proven.get(namespace);
    if (names?.delete(name) !== true) return;
    this.#provenCount -= 1;
    suspect.provenStops += 1;
    if (suspect.provenStops < PROVEN_STOPS_MAX) return;
    suspect.provenStops = 0;
    this.#provenCount -= names.size;
    this.#proven.delete(namespace);
  }

  #isSuspect(namespace: string): boolean {
    return this.#namespaces.has(namespace) || this.#namespaces.size >= SUSPECT_NAMESPACES_MAX;
  }

  #isProven({ namespace, name }: ObjectIdentity): boolean {
    return this.#proven.get(namespace)?.has(name) === true;
  }

  #entry(object: ObjectIdentity): QuarantineEntry | undefined {
    if (this.#entries.size === 0) return undefined;
    const key = identityKey(object);
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#clock.now() - entry.lastStopMs <= FORGET_MS) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  #forgetNamespaces(): void {
    const now = this.#clock.now();
    for (const [namespace, { lastStopMs }] of this.#namespaces) {
      if (now - lastStopMs > FORGET_MS) this.#namespaces.delete(namespace);
    }
  }
}

function identityKey({ namespace, name }: ObjectIdentity): string {
  return `${namespace}/${name}`;
}
