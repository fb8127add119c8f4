/** Durations and sizes as text: Go's durations (`100ms`, `1m30s`, `1.5h`) as milliseconds, Kubernetes' quantities (`128Mi`, `1G`, `1e6`) as bytes. */

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

const AMOUNT = String.raw`([0-9]+(\.[0-9]*)?|\.[0-9]+)`;
const PART = `${AMOUNT}(${[...UNIT_MS.keys()].join('|')})`;

export const DURATION_PATTERN = `^(0|(${PART})+)$`;
/** Longer text is rejected, also as a quantity. */
export const TEXT_MAX = 64;

/** Milliseconds, possibly fractional; undefined when the text is not a duration of zero or more. */
export function parseDuration(text: string): number | undefined {
  if (text.length > TEXT_MAX || !new RegExp(DURATION_PATTERN, 'u').test(text)) return undefined;
  let totalMs = 0;
  for (const [, amount = '0', , unit = ''] of text.matchAll(new RegExp(PART, 'gu')))
    totalMs += Number(amount) * (UNIT_MS.get(unit) ?? 0);
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

const FACTORS: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['k', 1e3],
  ['M', 1e6],
  ['G', 1e9],
  ['T', 1e12],
  ['P', 1e15],
  ['E', 1e18],
  ['Ki', 2 ** 10],
  ['Mi', 2 ** 20],
  ['Gi', 2 ** 30],
  ['Ti', 2 ** 40],
  ['Pi', 2 ** 50],
  ['Ei', 2 ** 60],
]);

/** The pattern for editors. Fractions of a byte (`m`, `u`, `n`) make no sense for a size. */
export const QUANTITY_PATTERN = `^${AMOUNT}(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E|[eE][0-9]{1,2})?$`;

/** Bytes, rounded up as Kubernetes does; undefined when the text is not a size of zero or more, or too large to count. */
export function parseBytes(text: string): number | undefined {
  if (text.length > TEXT_MAX) return undefined;
  const [, amount, , suffix = ''] = new RegExp(QUANTITY_PATTERN, 'u').exec(text) ?? [];
  const factor = FACTORS.get(suffix) ?? 10 ** Number(suffix.slice(1));
  if (amount === undefined) return undefined;
  const bytes = Math.ceil(Number(amount) * factor);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** The largest binary unit that divides the size: 134217728 is `128Mi`. */
export function formatBytes(bytes: number): string {
  for (const unit of ['Gi', 'Mi', 'Ki']) {
    const factor = FACTORS.get(unit) ?? 1;
    if (bytes > 0 && bytes % factor === 0) return `${bytes / factor}${unit}`;
  }
  return String(bytes);
}
