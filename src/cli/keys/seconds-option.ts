/** Durations on the command line that the API counts in seconds: Go style, or whole days. */

import { InvalidArgumentError } from 'commander';
import { parseDuration } from '../../config/values/duration.ts';

export const DAY_SECONDS = 86_400;

/** `90d`, `720h`, `30m`, `0`. */
export function secondsIn(text: string): number {
  if (text === '0') return 0;
  const days = /^(\d{1,5})d$/u.exec(text)?.[1];
  const durationMs = days === undefined ? parseDuration(text) : Number(days) * DAY_SECONDS * 1000;
  if (durationMs === undefined) throw new InvalidArgumentError('Write a duration such as 90d, 720h or 30m.');
  const seconds = Math.floor(durationMs / 1000);
  if (seconds === 0) throw new InvalidArgumentError('It is shorter than a second; write 0 for none.');
  return seconds;
}
