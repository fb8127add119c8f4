/** The proxy that the environment names for a server, as client-go reads it (golang.org/x/net/http/httpproxy). */

import { BlockList, isIP, isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';
import { TerminalError } from '../../base/errors.ts';
import { unmappedAddress } from '../../base/ip-address.ts';
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

/**
 * Entries: `*`, an address, a CIDR, a domain with all below it, or `.domain` and `*.domain` for those below it alone; all but CIDRs with an
 * optional port. Others have no effect, such as an IPv6 address in brackets without a port.
 */
function isExcepted(server: URL, list: string): boolean {
  const entries = list.split(',').map((entry) => entry.trim().toLowerCase());
  return entries.includes('*') || entries.some((entry) => entry !== '' && matches(entry, server));
}

function matches(entry: string, server: URL): boolean {
  const host = unmappedAddress(server.hostname.replace(/^\[|\]$/gu, ''));
  const cidr = cidrOf(entry);
  if (cidr !== undefined) return isInRange(host, cidr);
  const { name, port } = withPort(entry);
  const isPort = port === '' || port === (server.port || (server.protocol === 'https:' ? '443' : '80'));
  if (!isPort || name === '') return false;
  if (isAddress(name)) return host === unmappedAddress(name);
  return isIP(host) === 0 && isInDomain(host, name);
}

function isInDomain(host: string, name: string): boolean {
  const domain = name.replace(/^\*(?=\.)/u, '');
  const below = domain.replace(/^\.?/u, '.');
  const ascii = /^[\0-\x7f]*$/u.test(below) ? below : `.${domainToASCII(below.slice(1)) || below.slice(1)}`;
  return host.endsWith(ascii) || (!domain.startsWith('.') && `.${host}` === ascii);
}

/** As `net.SplitHostPort`. Without a port, '' and the whole text. */
function withPort(entry: string): { readonly name: string; readonly port: string } {
  const parts = /^(?:\[([^[\]]*)\]|([^[\]:]*)):([^[\]:]*)$/u.exec(entry);
  return parts === null
    ? { name: entry, port: '' }
    : { name: parts[1] ?? parts[2] ?? '', port: parts[3] ?? '' };
}

interface Cidr {
  readonly network: string;
  readonly bits: number;
}

/** Of an IPv4 network that is written as an IPv6 one, that of IPv4. Undefined: it is none. */
function cidrOf(entry: string): Cidr | undefined {
  const [network = '', length = '', more] = entry.split('/');
  const bits = Number(length);
  if (more !== undefined || !/^\d+$/u.test(length) || !isAddress(network)) return undefined;
  if (bits > (isIPv6(network) ? 128 : 32)) return undefined;
  const unmapped = unmappedAddress(network);
  return isIPv6(network) && !isIPv6(unmapped) && bits >= 96
    ? { network: unmapped, bits: bits - 96 }
    : { network, bits };
}

function isInRange(host: string, { network, bits }: Cidr): boolean {
  if (isIP(host) === 0 || isIP(host) !== isIP(network)) return false;
  const list = new BlockList();
  const type = isIPv6(host) ? 'ipv6' : 'ipv4';
  list.addSubnet(network, bits, type);
  return list.check(host, type);
}

function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
}
