/** IP addresses by their value: one IPv6 address has many texts. */

import { isIPv6 } from 'node:net';
import type { JsonValue } from './json.ts';

/** The canonical text (RFC 5952) of an IPv6 address; any other text as it is. A zone (`fe80::1%eth0`) belongs to no address of Kubernetes. */
export function canonicalAddress(text: string): string {
  return text.includes(':') && !text.includes('%') && isIPv6(text)
    ? new URL(`http://[${text}]`).hostname.slice(1, -1)
    : text;
}

/** The canonical text of an address; of an IPv4 address that is written as an IPv6 one (`::ffff:10.0.0.1`), the IPv4 address. */
export function unmappedAddress(text: string): string {
  const canonical = canonicalAddress(text);
  const groups = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/u.exec(canonical);
  if (groups === null) return canonical;
  const bytes = groups.slice(1).flatMap((group) => [Number(`0x${group}`) >> 8, Number(`0x${group}`) & 0xff]);
  return bytes.join('.');
}

/** Every IP address in a value as {@link canonicalAddress}, to compare what holds addresses, or is one. */
export function withCanonicalAddresses(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withCanonicalAddresses);
  return typeof value === 'string' ? canonicalAddress(value) : value;
}
