/** The logger interface: constant messages, values in fields, never a secret. */

import { pino, type DestinationStream } from 'pino';
import type { Clock } from './clock.ts';
import { isDefect } from './errors.ts';
import { withPlainTexts } from './excerpt.ts';
import { TokenBucket, type Rate } from './token-bucket.ts';

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  trace(fields: LogFields, message: string): void;
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  child(fields: LogFields): Logger;
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

export interface LoggerOptions {
  level: LogLevel;
  /** `auto`: `pretty` on a terminal, else `json`. */
  format: 'auto' | 'json' | 'pretty';
  /** Where lines go; standard error when absent. */
  destination?: DestinationStream;
}

/** A pino logger that writes to standard error by default, because standard output is for data. */
export async function createLogger(options: LoggerOptions): Promise<Logger> {
  const settings = {
    level: options.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: {
      level: (label: string) => ({ level: label }),
      log: withPlainTexts<Record<string, unknown>>,
    },
    serializers: { err: (error: Error) => withPlainTexts(serialized(error)) },
  };
  const destination = options.destination ?? pino.destination({ fd: 2, sync: true });
  const { format } = options;
  if (format === 'json' || (format === 'auto' && !process.stderr.isTTY))
    return asLogger(pino(settings, destination));
  // Loaded only when it is used, to keep the JSON format cheap.
  const { PinoPretty } = await import('pino-pretty');
  const stream = PinoPretty({
    colorize: process.stderr.isTTY && !process.env['NO_COLOR'],
    destination: 2,
    sync: true,
  });
  return asLogger(pino(settings, options.destination ?? stream));
}

/** A stack is that of a bug of this program. */
function serialized(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { type, message, stack, ...rest } = pino.stdSerializers.err(error);
  return isDefect(error) ? { type, message, stack, ...rest } : { type, message };
}

/** Narrows pino's logger, whose open-ended type an async function cannot return. */
function asLogger(logger: Logger): Logger {
  return logger;
}

/** A logger that discards everything. */
export const silentLogger: Logger = {
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};

/** Which repetitions of a failure are logged: true for 1, 2, 4, 8, … */
export function isReported(count: number): boolean {
  return count > 0 && Number.isInteger(Math.log2(count));
}

/** Leaves out lines above a rate, and says how many. Warnings and errors have the same rate as lines of level `info`, apart from it; those below it are not limited. */
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
    trace: (fields, message) => logger.trace(fields, message),
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
