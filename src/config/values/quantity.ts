/** Kubernetes quantities (`128Mi`, `1G`, `1e6`) as whole bytes. */

import { TEXT_MAX } from './duration.ts';

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
export const QUANTITY_PATTERN =
  '^([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E|[eE][0-9]{1,2})?$';

const QUANTITY = /^(\d+(?:\.\d*)?|\.\d+)(?:([kMGTPE]|[KMGTPE]i)|[eE](\d{1,2}))?$/u;

/** Bytes, rounded up as Kubernetes does; undefined when the text is not a size of zero or more, or too large to count. */
export function parseBytes(text: string): number | undefined {
  if (text.length > TEXT_MAX) return undefined;
  const [, amount, suffix = '', exponent = '0'] = QUANTITY.exec(text) ?? [];
  const factor = FACTORS.get(suffix);
  if (amount === undefined || factor === undefined) return undefined;
  const bytes = Math.ceil(Number(amount) * factor * 10 ** Number(exponent));
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
