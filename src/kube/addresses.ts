/** Which IP addresses and ranges endpoints and Services may have, as kube-apiserver 1.36 decides and says it; undefined: no problem. */

import { isIP, isIPv6 } from 'node:net';

/** Node accepts a zone (`fe80::1%eth0`), Kubernetes does not. */
export function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
}

export function notationProblem(ip: string): string | undefined {
  if (!isAddress(ip) && isAddress(withoutLeadingZeros(ip))) return 'must not have leading 0s';
  if (!isAddress(ip)) return 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
  return /^::ffff:[^:]+:[^:]+$/.test(canonical(ip)) ? 'must not be an IPv4-mapped IPv6 address' : undefined;
}

/** An EndpointSlice needs the canonical form (RFC 5952). */
export function canonicalProblem(ip: string): string | undefined {
  const form = canonical(ip);
  return form === ip ? undefined : `must be in canonical form (${JSON.stringify(form)})`;
}

export function rangeProblem(text: string): string | undefined {
  const ip = withoutLeadingZeros(text);
  if (!isAddress(ip)) return 'must be a valid IP address';
  const form = canonical(ip);
  if (form === '0.0.0.0' || form === '::') return `may not be unspecified (${text})`;
  if (form.startsWith('127.') || form === '::1')
    return 'may not be in the loopback range (127.0.0.0/8, ::1/128)';
  if (form.startsWith('169.254.') || /^fe[89ab][0-9a-f]:/.test(form))
    return 'may not be in the link-local range (169.254.0.0/16, fe80::/10)';
  // Scope 2 with any flags: Go checks these bits only.
  if (form.startsWith('224.0.0.') || /^ff[0-9a-f]2:/.test(form))
    return 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)';
  return undefined;
}

/** Of a range such as `10.0.0.0/8`. */
export function networkProblem(range: string): string | undefined {
  const [, ip = '', digits = ''] = /^([^/]*)\/(\d{1,3})$/u.exec(range) ?? [];
  const bits = isIPv6(ip) ? 128 : 32;
  if (!isAddress(ip) || Number(digits) > bits)
    return 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
  if (digits !== String(Number(digits))) return 'must not have leading 0s in IP or prefix length';
  if (notationProblem(ip) !== undefined) return 'must not have an IPv4-mapped IPv6 address';
  const hostBits = BigInt(bits) - BigInt(digits);
  return (addressBits(ip) & ((1n << hostBits) - 1n)) === 0n
    ? undefined
    : 'must not have bits set beyond the prefix length';
}

function addressBits(ip: string): bigint {
  if (!isIPv6(ip)) return ip.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n);
  const [left = '', right] = canonical(ip).split('::');
  const groups = (text: string | undefined): string[] => (text ? text.split(':') : []);
  const [first, last] = [groups(left), groups(right)];
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0');
  return [...first, ...zeros, ...last].reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}

/** Of the numbers of an IPv4 address, which old API servers ignored. */
function withoutLeadingZeros(text: string): string {
  return /^[\d.]+$/u.test(text) ? text.replace(/(^|\.)0+(?=\d)/gu, '$1') : text;
}

function canonical(ip: string): string {
  return isIPv6(ip) && isAddress(ip) ? new URL(`http://[${ip}]`).hostname.slice(1, -1) : ip;
}
