/** A logger that leaves out lines above a rate, and says how many. */

import type { Clock } from './clock.ts';
import type { LogFields, Logger } from './logger.ts';
import { TokenBucket, type Rate } from './token-bucket.ts';

/** Warnings and errors have the same rate as lines of level `info`, apart from it; those of level `debug` are not limited. */
export function limitedLogger(logger: Logger, rate: Rate, clock: Clock): Logger {
  return wrapped(logger, {
    info: new LineLimit(rate, clock),
    problem: new LineLimit(rate, clock),
  });
}

type Limits = Readonly<Record<'info' | 'problem', LineLimit>>;

function wrapped(logger: Logger, limits: Limits): Logger {
  const limited =
    (level: 'info' | 'warn' | 'error', limit: LineLimit) =>
    (fields: LogFields, message: string): void => {
      const left = limit.take();
      if (left === undefined) return;
      if (left > 0) logger[level]({ lines: left }, 'lines of the log were left out');
      logger[level](fields, message);
    };
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: limited('info', limits.info),
    warn: limited('warn', limits.problem),
    error: limited('error', limits.problem),
    child: (fields) => wrapped(logger.child(fields), limits),
  };
}

class LineLimit {
  readonly #bucket: TokenBucket;
  #left = 0;

  constructor(rate: Rate, clock: Clock) {
    this.#bucket = new TokenBucket(rate, clock);
  }

  /** Undefined: this line is left out; otherwise how many were since the last one. */
  take(): number | undefined {
    if (this.#bucket.take() > 0) {
      this.#left += 1;
      return undefined;
    }
    const left = this.#left;
    this.#left = 0;
    return left;
  }
}
