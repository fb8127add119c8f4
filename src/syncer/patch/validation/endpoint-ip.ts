/** Validates the IP addresses of endpoints like kube-apiserver 1.36 (strict parsing, no special ranges). */

import { isIPv4, isIPv6 } from 'node:net';

/** The error for an invalid address; undefined for a valid one. */
export function endpointIpProblem(text: string): string | undefined {
  const shown = JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
  if (isIPv4(text)) return rangeProblem(specialIpv4(text), shown);
  // Node accepts a zone (`fe80::1%eth0`), Kubernetes does not.
  if (!isIPv6(text) || text.includes('%')) return `must be an IP address, not ${shown}`;
  return rangeProblem(specialIpv6(groupsOf(text)), shown);
}

function rangeProblem(range: string | undefined, shown: string): string | undefined {
  return range === undefined ? undefined : `must not be ${range}, not ${shown}`;
}

function specialIpv4(text: string): string | undefined {
  if (text === '0.0.0.0') return 'the unspecified address';
  if (text.startsWith('127.')) return 'in the loopback range (127.0.0.0/8)';
  if (text.startsWith('169.254.')) return 'in the link-local range (169.254.0.0/16)';
  return text.startsWith('224.0.0.') ? 'in the link-local multicast range (224.0.0.0/24)' : undefined;
}

function specialIpv6(groups: readonly number[]): string | undefined {
  const [first = 0] = groups;
  const last = groups.at(-1) ?? 0;
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return 'an IPv4-mapped IPv6 address';
  }
  if (groups.slice(0, 7).every((group) => group === 0) && last <= 1) {
    return last === 0 ? 'the unspecified address' : 'the loopback address (::1)';
  }
  if ((first & 0xffc0) === 0xfe80) return 'in the link-local range (fe80::/10)';
  // Scope 2 with any flags: Go checks these bits only.
  return (first & 0xff0f) === 0xff02 ? 'in the link-local multicast range (ff02::/16)' : undefined;
}

/** The eight groups of a valid address. */
function groupsOf(text: string): readonly number[] {
  const [head = '', tail] = withoutIpv4(text).split('::');
  const [front, back] = [groupList(head), groupList(tail ?? '')];
  return tail === undefined
    ? front
    : [...front, ...Array.from({ length: 8 - front.length - back.length }, () => 0), ...back];
}

function groupList(text: string): readonly number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}

/** `::ffff:10.0.0.1` as `::ffff:a00:1`. */
function withoutIpv4(text: string): string {
  const start = text.lastIndexOf(':') + 1;
  const bytes = text.slice(start).split('.').map(Number);
  const [a = 0, b = 0, c = 0, d = 0] = bytes;
  if (bytes.length !== 4) return text;
  return `${text.slice(0, start)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}
