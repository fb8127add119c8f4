/** What happens from outside in one history: users and other clients on both sides, trouble, crashes. Data, so that a history can be shrunk. */

import type { Random } from '../../../src/base/random.ts';
import { VIRTUAL_NAMES } from '../world/names.ts';
import { FORWARD, TEAM } from '../daemon/sim-config.ts';
import type { FaultRates } from '../world/faults.ts';

export type Operation = { readonly atMs: number } & (
  | {
      readonly kind: 'put';
      readonly object: number;
      readonly ips: number;
      readonly annotations: StringMap;
      readonly labels: StringMap;
    }
  | {
      readonly kind: 'annotate';
      readonly side: Side;
      readonly object: number;
      readonly key: string;
      readonly value: string | null;
    }
  | {
      readonly kind: 'label';
      readonly side: Side;
      readonly object: number;
      readonly key: string;
      readonly value: string | null;
    }
  | { readonly kind: 'addresses'; readonly side: Side; readonly object: number; readonly ips: number }
  | { readonly kind: 'delete'; readonly side: Side; readonly object: number }
  | {
      readonly kind: 'service';
      readonly side: Side;
      readonly object: number;
      readonly form: 'selector' | 'plain' | 'absent';
    }
  | { readonly kind: 'foreign'; readonly object: number }
  | { readonly kind: 'damage'; readonly object: number; readonly key: string; readonly value: string | null }
  | { readonly kind: 'optOut'; readonly side: Side; readonly object: number; readonly isOut: boolean }
  | { readonly kind: 'trouble'; readonly forMs: number; readonly rates: FaultRates }
  | { readonly kind: 'compact'; readonly side: Side }
  | { readonly kind: 'crash'; readonly daemon: number; readonly afterWrites: number; readonly downMs: number }
  | { readonly kind: 'pause'; readonly daemon: number; readonly forMs: number }
  | { readonly kind: 'configure'; readonly isPatched: boolean }
);

export type Side = 'virtual' | 'host';
type StringMap = Readonly<Record<string, string>>;

/** An operation without its time. */
type Action = Operation extends infer O ? (O extends Operation ? Omit<O, 'atMs'> : never) : never;

const KEYS = [TEAM, FORWARD, 'example.com/plain', 'note'];
const LABELS = ['app', 'release', 'tier'];
const DAMAGED = [
  'vcluster.loft.sh/object-name',
  'vcluster.loft.sh/object-uid',
  'vcluster.loft.sh/object-imported',
  'endpoint-syncer/last-synced',
  'vcluster.loft.sh/managed-annotations',
];

export interface HistoryOptions {
  readonly steps: number;
  readonly daemons: number;
}

/** A history from a seed; the order of the draws is part of what a seed means. */
export function createHistory(random: Random, { steps, daemons }: HistoryOptions): readonly Operation[] {
  const draw = new Draw(random);
  const operations: Operation[] = [];
  let atMs = 0;
  for (let step = 0; step < steps; step++) {
    atMs += draw.pauseMs();
    operations.push({ atMs, ...draw.action(daemons) });
  }
  return operations;
}

class Draw {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Mostly at once or soon, sometimes after everything has settled. */
  pauseMs(): number {
    const kind = this.#random();
    if (kind < 0.3) return this.#random() * 20;
    if (kind < 0.8) return this.#random() * 500;
    return kind < 0.97 ? this.#random() * 10_000 : this.#random() * 700_000;
  }

  action(daemons: number): Action {
    const object = this.#below(VIRTUAL_NAMES.length);
    const side: Side = this.#random() < 0.5 ? 'virtual' : 'host';
    const roll = this.#random();
    if (roll < 0.2) return this.#put(object);
    if (roll < 0.45)
      return { kind: 'annotate', side, object, key: this.#one(KEYS), value: this.#valueOrNull() };
    if (roll < 0.55)
      return { kind: 'label', side, object, key: this.#one(LABELS), value: this.#valueOrNull() };
    if (roll < 0.63) return { kind: 'addresses', side, object, ips: 1 + this.#below(3) };
    if (roll < 0.71) return { kind: 'delete', side, object };
    if (roll < 0.78)
      return { kind: 'service', side, object, form: this.#one(['selector', 'plain', 'absent'] as const) };
    if (roll < 0.81) return { kind: 'foreign', object };
    if (roll < 0.84) return { kind: 'damage', object, key: this.#one(DAMAGED), value: this.#valueOrNull() };
    if (roll < 0.86) return { kind: 'optOut', side, object, isOut: this.#random() < 0.5 };
    if (roll < 0.91) return { kind: 'trouble', forMs: this.#random() * 20_000, rates: this.#rates() };
    if (roll < 0.93) return { kind: 'compact', side };
    if (roll < 0.97) return this.#crash(daemons);
    if (roll < 0.99) return { kind: 'pause', daemon: this.#below(daemons), forMs: this.#random() * 60_000 };
    return { kind: 'configure', isPatched: this.#random() < 0.7 };
  }

  #put(object: number): Action {
    const annotations = Object.fromEntries(
      KEYS.filter(() => this.#random() < 0.5).map((key) => [key, this.#value()]),
    );
    const labels = Object.fromEntries(
      LABELS.filter(() => this.#random() < 0.4).map((key) => [key, this.#value()]),
    );
    return { kind: 'put', object, ips: 1 + this.#below(3), annotations, labels };
  }

  #crash(daemons: number): Action {
    const downMs = this.#random() * 5000;
    return { kind: 'crash', daemon: this.#below(daemons), afterWrites: this.#below(4), downMs };
  }

  #rates(): FaultRates {
    const rate = (max: number): number => (this.#random() < 0.4 ? this.#random() * max : 0);
    return {
      refused: rate(0.4),
      lostAnswers: rate(0.5),
      garbled: rate(0.3),
      staleLists: rate(0.5),
      eventsTwice: rate(0.3),
      eventsReplayed: rate(0.3),
      briefWatches: rate(0.8),
      stalledWatches: rate(0.5),
      sandboxStops: rate(0.2),
      latencyMaxMs: 10 + this.#random() * 500,
    };
  }

  #value(): string {
    return `v${this.#below(1000)}`;
  }

  #valueOrNull(): string | null {
    return this.#random() < 0.3 ? null : this.#value();
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #one<T>(items: readonly T[]): T {
    const item = items[this.#below(items.length)];
    if (item === undefined) throw new Error('there is nothing to choose from');
    return item;
  }
}
