/**
 * On which objects an expression had to be stopped. An object waits longer after each stop; nothing about one object delays another one.
 * It also decides which of the two sandbox processes runs an expression on an object: the fast one, which serves everything else, or the
 * slow one, which has a bounded share of time.
 */

import type { Clock } from '../../../base/clock.ts';
import { backoffDelayMs } from '../../../base/backoff.ts';
import type { ObjectIdentity } from '../types.ts';

export type Lane = 'fast' | 'slow';

const WAIT_FIRST_MS = 1000;
const WAIT_MAX_MS = 5 * 60_000;
/** After so long without a stop, an object or a namespace counts as any other. */
const FORGET_MS = 10 * 60_000;
/** So many objects of one namespace that had succeeded before and had to be stopped now: success there proves nothing any more. */
const PROVEN_STOPS_MAX = 3;
/** Stops in so many namespaces: the expression, or a tenant with many namespaces, is the reason, so an unknown namespace is no better. */
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
  /** By namespace and name, the one that was stopped last at the end. */
  readonly #entries = new Map<string, QuarantineEntry>();
  readonly #namespaces = new Map<string, SuspectNamespace>();
  /** Names of the objects that the expression ran on without a stop, by namespace. */
  readonly #proven = new Map<string, Set<string>>();
  #provenCount = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Nothing was stopped lately: every object may run in the fast lane. */
  get isEmpty(): boolean {
    return this.#namespaces.size === 0;
  }

  /** Until when the object waits; undefined when the expression may run on it. */
  waitUntil(object: ObjectIdentity): number | undefined {
    if (!this.#namespaces.has(object.namespace)) return undefined;
    const untilMs = this.#entry(object)?.untilMs ?? 0;
    return untilMs > this.#clock.now() ? untilMs : undefined;
  }

  wasStopped(object: ObjectIdentity): boolean {
    return this.#entry(object) !== undefined;
  }

  laneOf(object: ObjectIdentity): Lane {
    // Nearly always this is the answer, on the path that every evaluation takes.
    if (!this.#isSuspect(object.namespace)) return 'fast';
    if (this.#entry(object) !== undefined) return 'slow';
    if (this.#isProven(object)) return 'fast';
    this.#forgetNamespaces();
    return this.#isSuspect(object.namespace) ? 'slow' : 'fast';
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

  /** Returns until when the object waits from now on. */
  recordStop(object: ObjectIdentity): number {
    const now = this.#clock.now();
    const stops = this.#entry(object)?.stops ?? 0;
    const untilMs = now + backoffDelayMs(stops, WAIT_FIRST_MS, WAIT_MAX_MS);
    const key = keyOf(object);
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
    const key = keyOf(object);
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

function keyOf({ namespace, name }: ObjectIdentity): string {
  return `${namespace}/${name}`;
}
