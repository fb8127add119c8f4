/**
 * What a member may use over time: lines of the log, bytes of its API server, starts. It belongs to the namespace and is passed on when a member ends:
 * a namespace with one short-lived vCluster after the other gets no more than with one that stays.
 */

import type { Clock } from '../base/clock.ts';
import { Expiring } from '../base/expiring.ts';
import { limitedLogger, type Logger } from '../base/logger.ts';
import { TokenBucket, type Rate } from '../base/token-bucket.ts';
import type { TransportLimits } from '../kube/client/transport.ts';
import { inputBudget, loopShare, virtualLimits } from './member-limits.ts';

export interface Allowance {
  /** Lines about the state are not left out because the sync writes many. */
  readonly logger: Logger;
  readonly syncLogger: Logger;
  readonly virtualClient: TransportLimits;
  /** Starts and reloads, each of which reads all objects: values that change all the time are applied now and then. */
  readonly changes: TokenBucket;
}

const LOG_RATE: Rate = { burst: 500, perSecond: 20 };
const CHANGES: Rate = { burst: 5, perSecond: 0.1 };
/** Longer than any of them takes until it is whole again: a new one is the same then. Who may create namespaces chooses their names. */
const UNUSED_MS = 10 * 60_000;

export class Allowances {
  readonly #options: { readonly clock: Clock; readonly logger: Logger };
  /** By namespace: those that no member has, of which there are as many as there were members at a time. */
  readonly #free: Expiring<string, Allowance[]>;
  readonly #loggers: Expiring<string, Logger>;
  /** By namespace with members, of what all of them share. */
  readonly #loops = new Map<string, { readonly loop: TokenBucket; members: number }>();
  readonly #freeLoops: Expiring<string, TokenBucket>;
  /** Of all members. */
  readonly #input = inputBudget();

  constructor(options: { readonly clock: Clock; readonly logger: Logger }) {
    this.#options = options;
    this.#free = new Expiring(options.clock, () => UNUSED_MS);
    this.#loggers = new Expiring(options.clock, () => UNUSED_MS);
    this.#freeLoops = new Expiring(options.clock, () => UNUSED_MS);
  }

  /** For what is about no member. */
  logger({ namespace }: { readonly namespace: string }): Logger {
    const logger = this.#loggers.get(namespace) ?? this.#limitedLogger();
    this.#loggers.set(namespace, logger);
    return logger;
  }

  take(namespace: string): Allowance {
    const { clock } = this.#options;
    const shared = this.#loops.get(namespace) ?? {
      loop: this.#freeLoops.get(namespace) ?? loopShare(clock),
      members: 0,
    };
    shared.members += 1;
    this.#loops.set(namespace, shared);
    return (
      this.#free.get(namespace)?.shift() ?? {
        logger: this.#limitedLogger(),
        syncLogger: this.#limitedLogger(),
        virtualClient: virtualLimits(clock, this.#input, shared.loop),
        changes: new TokenBucket(CHANGES, clock),
      }
    );
  }

  giveBack(namespace: string, allowance: Allowance): void {
    this.#free.set(namespace, [...(this.#free.get(namespace) ?? []), allowance]);
    const shared = this.#loops.get(namespace);
    if (shared === undefined || (shared.members -= 1) > 0) return;
    this.#loops.delete(namespace);
    this.#freeLoops.set(namespace, shared.loop);
  }

  #limitedLogger(): Logger {
    return limitedLogger(this.#options.logger, LOG_RATE, this.#options.clock);
  }
}
