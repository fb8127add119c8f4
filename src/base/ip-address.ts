/** IP addresses by their value: one IPv6 address has many texts. */

import { isIPv6 } from 'node:net';
import type { JsonValue } from './json.ts';

/** The canonical text (RFC 5952) of an IPv6 address; any other text as it is. A zone (`fe80::1%eth0`) belongs to no address of Kubernetes. */
export function canonicalAddress(text: string): string {
  return text.includes(':') && !text.includes('%') && isIPv6(text)
    ? new URL(`http://[${text}]`).hostname.slice(1, -1)
    : text;
}

/** Every IP address in a value as {@link canonicalAddress}, to compare what holds addresses, or is one. */
export function withCanonicalAddresses(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withCanonicalAddresses);
  return typeof value === 'string' ? canonicalAddress(value) : value;
}
