/** What happens to a fleet: its vClusters, its replicas and the servers. The order of the draws is part of what a seed means. */

import type { Random } from '../../../src/base/random.ts';
import { seededRandom } from '../../support/random.ts';
import { drawRates } from '../history/draw.ts';
import type { FaultRates } from '../world/faults.ts';

export const MEMBER_NAMES = ['a', 'b', 'c'] as const;
export const OBJECT_NAMES = ['web', 'db'] as const;
export const REPLICAS = 3;

/** `member` and `replica` are indexes. */
export type FleetAction =
  | { readonly kind: 'install'; readonly member: number }
  | { readonly kind: 'uninstall'; readonly member: number; readonly secretsAfterMs: number }
  | { readonly kind: 'select'; readonly member: number; readonly isSelected: boolean }
  | { readonly kind: 'sleep'; readonly member: number }
  | { readonly kind: 'wake'; readonly member: number; readonly afterMs: number }
  | { readonly kind: 'rotate'; readonly member: number }
  | { readonly kind: 'values'; readonly member: number; readonly by: string }
  | { readonly kind: 'invalid'; readonly member: number }
  | { readonly kind: 'workers'; readonly member: number; readonly workers: number }
  | { readonly kind: 'outage'; readonly member: number; readonly forMs: number }
  | { readonly kind: 'put' | 'delete'; readonly member: number; readonly object: string }
  | { readonly kind: 'trouble'; readonly forMs: number; readonly rates: FaultRates }
  | { readonly kind: 'compact' }
  | {
      readonly kind: 'crash';
      readonly replica: number;
      readonly afterWrites: number;
      readonly downMs: number;
    }
  | { readonly kind: 'stop'; readonly replica: number; readonly downMs: number }
  | { readonly kind: 'pause'; readonly replica: number; readonly forMs: number };

export type FleetOperation = FleetAction & { readonly atMs: number };

export interface FleetHistory {
  readonly seed: number;
  /** Replicas that run from the start; the others are started later. */
  readonly replicas: number;
  readonly operations: readonly FleetOperation[];
}

export function fleetHistory(seed: number, steps: number): FleetHistory {
  const draw = new FleetDraw(seededRandom(seed ^ 0xf1ee7));
  const operations: FleetOperation[] = [];
  let atMs = 0;
  while (operations.length < steps) {
    atMs += draw.pauseMs();
    for (const { afterMs, action } of draw.scene()) {
      atMs += afterMs;
      operations.push({ atMs, ...action });
    }
  }
  return { seed, replicas: 1 + (seed % REPLICAS), operations };
}

type Scene = readonly { readonly afterMs: number; readonly action: FleetAction }[];

class FleetDraw {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Mostly soon, sometimes after a Lease has expired. */
  pauseMs(): number {
    const kind = this.#random();
    if (kind < 0.3) return this.#random() * 20;
    if (kind < 0.75) return this.#random() * 1500;
    return this.#random() * 25_000;
  }

  /** Actions that are only together what a program may get wrong; mostly a single one. */
  scene(): Scene {
    return this.#random() < 0.04 ? this.#suspended() : [{ afterMs: 0, action: this.#action() }];
  }

  /** Objects change while a replica continues whose members the others have taken. */
  #suspended(): Scene {
    const replica = this.#below(REPLICAS);
    const forMs = 18_000 + this.#random() * 10_000;
    const edits = MEMBER_NAMES.map((_, member) => {
      const action = { kind: 'put', member, object: this.#one(OBJECT_NAMES) } as const;
      return { afterMs: this.#random() * 300, action };
    });
    return [
      { afterMs: 0, action: { kind: 'pause', replica, forMs } },
      { afterMs: forMs, action: { kind: 'values', member: 0, by: `v${this.#below(3)}` } },
      ...edits,
      ...edits,
    ];
  }

  #action(): FleetAction {
    const roll = this.#random();
    if (roll < 0.35) return this.#edit();
    if (roll < 0.7) return this.#member();
    return roll < 0.9 ? this.#replica() : this.#trouble();
  }

  #edit(): FleetAction {
    const kind = this.#random() < 0.75 ? 'put' : 'delete';
    return { kind, member: this.#below(MEMBER_NAMES.length), object: this.#one(OBJECT_NAMES) };
  }

  #member(): FleetAction {
    const member = this.#below(MEMBER_NAMES.length);
    const roll = this.#random();
    if (roll < 0.2) return { kind: 'install', member };
    if (roll < 0.3) return { kind: 'uninstall', member, secretsAfterMs: this.#random() * 10_000 };
    if (roll < 0.45) return { kind: 'select', member, isSelected: this.#random() < 0.6 };
    if (roll < 0.53) return { kind: 'sleep', member };
    if (roll < 0.64) return { kind: 'wake', member, afterMs: this.#random() * 5000 };
    if (roll < 0.74) return { kind: 'rotate', member };
    if (roll < 0.84) return { kind: 'values', member, by: `v${this.#below(3)}` };
    if (roll < 0.88) return { kind: 'invalid', member };
    if (roll < 0.94) return { kind: 'workers', member, workers: 1 + this.#below(3) };
    return { kind: 'outage', member, forMs: this.#random() * 20_000 };
  }

  #replica(): FleetAction {
    const replica = this.#below(REPLICAS);
    const roll = this.#random();
    // Briefly, or until the others have taken over.
    const downMs = this.#random() * (this.#random() < 0.5 ? 3000 : 40_000);
    if (roll < 0.4) return { kind: 'crash', replica, afterWrites: this.#below(4), downMs };
    if (roll < 0.6) return { kind: 'stop', replica, downMs };
    return { kind: 'pause', replica, forMs: this.#random() * 40_000 };
  }

  #trouble(): FleetAction {
    if (this.#random() < 0.2) return { kind: 'compact' };
    return { kind: 'trouble', forMs: this.#random() * 20_000, rates: drawRates(this.#random) };
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
