/** Colours and progress, for terminals only. */

import type { WriteStream } from 'node:tty';
import { systemClock } from '../../base/clock.ts';

/** Standard output or standard error, a terminal or not. */
export type Output = Pick<WriteStream, 'write'> & { readonly isTTY?: boolean };

export interface Paint {
  readonly red: (text: string) => string;
  readonly green: (text: string) => string;
  readonly yellow: (text: string) => string;
  readonly dim: (text: string) => string;
}

/** Colours on a terminal, unless NO_COLOR is set (no-color.org); plain text everywhere else. */
export function paintFor(output: Pick<Output, 'isTTY'>, env: NodeJS.ProcessEnv = process.env): Paint {
  const isColoured = output.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
  const paint = (code: number) => (text: string) => (isColoured ? `\u001b[${code}m${text}\u001b[0m` : text);
  return { red: paint(31), green: paint(32), yellow: paint(33), dim: paint(2) };
}

export interface Progress extends Disposable {
  /** `done` of `total` items are finished. */
  update(done: number, total: number): void;
  /** Shows the label alone, immediately: for work of unknown length that blocks the process. */
  announce(): void;
}

/** Progress of a command, on standard error. */
export function showProgress(what: string): Progress {
  return progressOn(process.stderr, what, () => systemClock.monotonicMs());
}

/** No progress is shown before this time has passed. */
const SILENT_MS = 1000;
const INTERVAL_MS = 100;
const WIDTH = 24;

/** A bar on one line, removed at the end. Writes nothing if the output is not a terminal. */
export function progressOn(output: Output, what: string, monotonicMs: () => number): Progress {
  if (output.isTTY !== true)
    return { update: () => undefined, announce: () => undefined, [Symbol.dispose]: () => undefined };
  const startMs = monotonicMs();
  let shownMs: number | undefined;
  return {
    update(done, total) {
      const now = monotonicMs();
      if (now - startMs < SILENT_MS || now - (shownMs ?? 0) < INTERVAL_MS) return;
      shownMs = now;
      const filled = total === 0 ? WIDTH : Math.floor((WIDTH * done) / total);
      output.write(`\r${what} [${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}] ${done}/${total}\u001b[K`);
    },
    announce() {
      shownMs = monotonicMs();
      output.write(`\r${what} …\u001b[K`);
    },
    [Symbol.dispose]() {
      if (shownMs !== undefined) output.write('\r\u001b[K');
      shownMs = undefined;
    },
  };
}
