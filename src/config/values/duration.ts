/** Go's duration text (`100ms`, `1m30s`, `1.5h`) to milliseconds and back. */

const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3], // micro sign
  ['μs', 1e-3], // Greek mu, which Go accepts too
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** The pattern for editors: a bare zero, or numbers that each have a unit. */
export const DURATION_PATTERN = '^(0|(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$';

const WHOLE = new RegExp(DURATION_PATTERN, 'u');
const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/gu;
/** Longer text is rejected, also as a quantity. */
export const TEXT_MAX = 64;

/** Milliseconds, possibly fractional; undefined when the text is not a duration of zero or more. */
export function parseDuration(text: string): number | undefined {
  if (text.length > TEXT_MAX || !WHOLE.test(text)) return undefined;
  let totalMs = 0;
  for (const [, amount = '0', unit = ''] of text.matchAll(PART)) {
    totalMs += Number(amount) * (UNIT_MS.get(unit) ?? 0);
  }
  return Number.isFinite(totalMs) ? totalMs : undefined;
}

/** The shortest text that {@link parseDuration} reads back as the same whole number of milliseconds. */
export function formatDuration(durationMs: number): string {
  if (durationMs === 0) return '0s';
  const whole = Math.round(durationMs);
  const hours = Math.floor(whole / 3_600_000);
  const minutes = Math.floor((whole % 3_600_000) / 60_000);
  const seconds = Math.floor((whole % 60_000) / 1_000);
  const rest = whole % 1_000;
  const part = (amount: number, unit: string): string => (amount === 0 ? '' : `${amount}${unit}`);
  return `${part(hours, 'h')}${part(minutes, 'm')}${part(seconds, 's')}${part(rest, 'ms')}`;
}
