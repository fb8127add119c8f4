/** Which IP addresses endpoints may have, as kube-apiserver 1.36 decides and says it; undefined: no problem. */

import { isIP, isIPv6 } from 'node:net';

/** Node accepts a zone (`fe80::1%eth0`), Kubernetes does not. */
export function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
}

export function notationProblem(ip: string): string | undefined {
  if (!isAddress(ip)) return 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
  return /^::ffff:[^:]+:[^:]+$/.test(canonical(ip)) ? 'must not be an IPv4-mapped IPv6 address' : undefined;
}

/** An EndpointSlice needs the canonical form (RFC 5952). */
export function canonicalProblem(ip: string): string | undefined {
  const form = canonical(ip);
  return form === ip ? undefined : `must be in canonical form (${JSON.stringify(form)})`;
}

export function rangeProblem(ip: string): string | undefined {
  if (!isAddress(ip)) return 'must be a valid IP address';
  const form = canonical(ip);
  if (form === '0.0.0.0' || form === '::') return `may not be unspecified (${ip})`;
  if (form.startsWith('127.') || form === '::1')
    return 'may not be in the loopback range (127.0.0.0/8, ::1/128)';
  if (form.startsWith('169.254.') || /^fe[89ab][0-9a-f]:/.test(form))
    return 'may not be in the link-local range (169.254.0.0/16, fe80::/10)';
  // Scope 2 with any flags: Go checks these bits only.
  if (form.startsWith('224.0.0.') || /^ff[0-9a-f]2:/.test(form))
    return 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)';
  return undefined;
}

function canonical(ip: string): string {
  return isIPv6(ip) && isAddress(ip) ? new URL(`http://[${ip}]`).hostname.slice(1, -1) : ip;
}
