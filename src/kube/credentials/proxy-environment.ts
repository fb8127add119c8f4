/** The proxy that the environment names for a server, as client-go reads it (golang.org/x/net/http/httpproxy). */

import { BlockList, isIP } from 'node:net';
import { TerminalError } from '../../base/errors.ts';
import { canonicalAddress } from '../../base/ip-address.ts';
import { isLoopback } from '../access.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Undefined: the server is reached directly. Throws `TerminalError` if the proxy is of another kind than HTTP. */
export function proxyFromEnvironment(server: URL, env: Environment): string | undefined {
  const variable = server.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const proxy = valueOf(env, variable);
  if (proxy === '' || isLoopback(server) || isExcepted(server, valueOf(env, 'NO_PROXY'))) return undefined;
  return httpProxy(proxy.includes('://') ? proxy : `http://${proxy}`, `${variable} of the environment:`);
}

/** The URL, which `setting` names. Throws `TerminalError` as above. */
export function httpProxy(proxyUrl: string, setting: string): string {
  if (/^https?:\/\//u.test(proxyUrl) && URL.canParse(proxyUrl)) return proxyUrl;
  throw new TerminalError(
    `${setting} ${JSON.stringify(proxyUrl)} is not supported; use an http or https proxy`,
  );
}

function valueOf(env: Environment, name: string): string {
  return (env[name] || env[name.toLowerCase()] || '').trim();
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/gu, '').toLowerCase();
}

/** Entries: `*`, an address, a CIDR, a domain with all below it, or `.domain` and `*.domain` for those below it alone; each with an optional port. */
function isExcepted(server: URL, list: string): boolean {
  return list
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry !== '' && matches(entry, server));
}

function matches(entry: string, server: URL): boolean {
  if (entry === '*') return true;
  const host = hostOf(server);
  if (entry.includes('/')) return isInRange(host, entry);
  const { name, port } = withPort(entry);
  if (port !== undefined && port !== (server.port || (server.protocol === 'https:' ? '443' : '80')))
    return false;
  if (isIP(name) !== 0) return host === canonicalAddress(name);
  const domain = name.replace(/^\*(?=\.)/u, '');
  if (domain.startsWith('.')) return host.endsWith(domain);
  return host === domain || host.endsWith(`.${domain}`);
}

function withPort(entry: string): { readonly name: string; readonly port: string | undefined } {
  if (isIP(entry) === 6) return { name: entry, port: undefined };
  const colon = entry.lastIndexOf(':');
  const bracketed = entry.startsWith('[') ? entry.slice(1, entry.indexOf(']')) : undefined;
  if (colon < 0 || entry.endsWith(']')) return { name: bracketed ?? entry, port: undefined };
  return { name: bracketed ?? entry.slice(0, colon), port: entry.slice(colon + 1) };
}

function isInRange(host: string, cidr: string): boolean {
  const [network = '', bits = ''] = cidr.split('/');
  const [family, networkFamily] = [isIP(host), isIP(network)];
  if (family === 0 || family !== networkFamily || !/^\d{1,3}$/u.test(bits)) return false;
  if (Number(bits) > (family === 4 ? 32 : 128)) return false;
  const list = new BlockList();
  const type = family === 4 ? 'ipv4' : 'ipv6';
  list.addSubnet(network, Number(bits), type);
  return list.check(host, type);
}
