/** Scalars of Kubernetes without a JSON type: times, quantities, base64. */

const TIME = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** RFC 3339 in UTC with the precision of the field; undefined when `text` is not a time. */
export function canonicalTime(text: string, precision: 'time' | 'microtime'): string | undefined {
  const match = TIME.exec(text);
  if (!match) return undefined;
  const millis = Date.parse(text.replace(/\.\d+/, ''));
  if (Number.isNaN(millis)) return undefined;
  const iso = new Date(millis).toISOString();
  // A sign precedes years of more or fewer than four digits, which RFC 3339 does not have.
  if (!/^\d/.test(iso)) return undefined;
  const seconds = iso.slice(0, 19);
  if (precision === 'time') return `${seconds}Z`;
  // Exactly six digits, as a kube-apiserver requires.
  return match[7]?.length === 7 ? `${seconds}${match[7]}Z` : undefined;
}

/** A time as the server writes it into fields. */
export function timeText(nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
}

const QUANTITY = /^[+-]?(\d+|\d+\.\d*|\.\d+)([eE][+-]?\d+|Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)?$/;

export function checkQuantity(text: string): boolean {
  return QUANTITY.test(text);
}

/** Base64 may have line breaks. A loop, because replacing a million of them by a regular expression takes 0.1 s. */
export function withoutLineBreaks(text: string): string {
  if (!/[\r\n]/.test(text)) return text;
  const bytes = Buffer.allocUnsafe(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    // A character of more than one byte must stay invalid.
    if (code !== 0x0a && code !== 0x0d) bytes[length++] = code > 0x7f ? 0x7f : code;
  }
  return bytes.toString('latin1', 0, length);
}

/** The index of the first byte that is not standard base64 with padding, or undefined. */
export function illegalBase64At(text: string): number | undefined {
  const wrong = text.search(/[^A-Za-z0-9+/=]/);
  if (wrong >= 0) return wrong;
  const padding = text.indexOf('=');
  const end = padding < 0 ? text.length : padding;
  if (padding >= 0 && !/^={1,2}$/.test(text.slice(padding))) return padding + 1;
  if (text.length % 4 !== 0) return text.length - (text.length % 4);
  if (end % 4 === 1) return end;
  return undefined;
}
