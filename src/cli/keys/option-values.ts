/** Parsers for the values of options. */

import { InvalidArgumentError } from 'commander';
import { parseDuration } from '../../config/units.ts';

/** Throws for anything but an https URL. */
export function httpsUrl(text: string): string {
  if (text.startsWith('https://') && URL.canParse(text)) return text;
  throw new InvalidArgumentError('It must be an https:// URL such as https://127.0.0.1:8443.');
}

export const DAY_SECONDS = 86_400;

/** A Go duration or whole days, in seconds: `90d`, `720h`, `30m`, `0`. */
export function secondsIn(text: string): number {
  if (text === '0') return 0;
  if (/^\d+$/u.test(text)) throw new InvalidArgumentError(`Add a unit: ${text}s is this number of seconds.`);
  const days = /^(\d{1,5})d$/u.exec(text)?.[1];
  const durationMs = days === undefined ? parseDuration(text) : Number(days) * DAY_SECONDS * 1000;
  if (durationMs === undefined) throw new InvalidArgumentError('Use a duration such as 90d, 720h or 30m.');
  const seconds = Math.floor(durationMs / 1000);
  if (seconds === 0) throw new InvalidArgumentError('It is shorter than a second; use 0 for none.');
  return seconds;
}
