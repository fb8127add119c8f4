/** Functions that the realm provides. Tests compare them with those of the platform and of the daemon. Runs inside the isolate: only imports of
 * types and of files beside it. */

import type { NamingRules } from '../types.ts';

interface Base64 {
  readonly atob: (text: unknown) => string;
  readonly btoa: (text: unknown) => string;
  readonly base64: {
    readonly encode: (text: unknown) => string;
    readonly decode: (text: unknown) => string;
  };
}

/** `atob` and `btoa` as in browsers, one character for each byte; `base64` for text in UTF-8. */
export function createBase64(): Base64 {
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const values = new Map(Array.from(digits, (digit, i) => [digit, i]));
  const { fromCharCode } = String;

  const btoa = (text: unknown): string => {
    const input = `${text as string}`;
    let output = '';
    for (let i = 0; i < input.length; i += 3) {
      const [a, b, c] = [input.charCodeAt(i), input.charCodeAt(i + 1), input.charCodeAt(i + 2)];
      if (a > 255 || b > 255 || c > 255) throw new RangeError('btoa takes characters up to U+00FF only');
      const bits = (a << 16) | ((b || 0) << 8) | (c || 0);
      output += digits.charAt(bits >> 18) + digits.charAt((bits >> 12) & 63);
      output += i + 1 < input.length ? digits.charAt((bits >> 6) & 63) : '=';
      output += i + 2 < input.length ? digits.charAt(bits & 63) : '=';
    }
    return output;
  };

  const bytesOf = (text: string, caller: string): string => {
    let input = text.replace(/[\t\n\f\r ]/g, '');
    if (input.length % 4 === 0) input = input.replace(/={1,2}$/, '');
    if (input.length % 4 === 1) throw new RangeError(`${caller} was given text that is not base64`);
    let [output, bits, count] = ['', 0, 0];
    for (let i = 0; i < input.length; i++) {
      const digit = values.get(input.charAt(i));
      if (digit === undefined) throw new RangeError(`${caller} was given text that is not base64`);
      bits = ((bits << 6) | digit) & 0xffffff;
      count += 6;
      if (count >= 8) {
        count -= 8;
        output += fromCharCode((bits >> count) & 255);
      }
    }
    return output;
  };
  const atob = (text: unknown): string => bytesOf(`${text as string}`, 'atob');

  const encode = (text: unknown): string => {
    const input = textFor('base64.encode', text);
    if (!input.isWellFormed()) {
      throw new RangeError('base64.encode was given half of a surrogate pair, which UTF-8 does not have');
    }
    return btoa(
      encodeURIComponent(input).replace(/%(..)/g, (_, hex: string) => fromCharCode(parseInt(hex, 16))),
    );
  };

  const decode = (text: unknown): string => {
    const bytes = bytesOf(textFor('base64.decode', text), 'base64.decode');
    const escaped = bytes.replace(
      /[^a-zA-Z0-9]/g,
      (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`,
    );
    try {
      return decodeURIComponent(escaped);
    } catch {
      throw new RangeError(
        'base64.decode was given bytes that are not UTF-8; atob returns them as characters',
      );
    }
  };
  return { atob, btoa, base64: { encode, decode } };
}

function textFor(caller: string, value: unknown): string {
  if (typeof value === 'string') return value;
  throw new TypeError(`${caller} takes text, not ${value === null ? 'null' : typeof value}`);
}

/** ISO 8601: a date alone, or a date and a time with an optional offset. */
const ISO_TEXT =
  /^(?:[+-]\d{6}|\d{4})(?:-\d\d(?:-\d\d)?)?(T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/;

/** As `toUTCString` writes it, and HTTP. The day of the week is not compared with the date. */
const HTTP_TEXT =
  /^(?:Sun|Mon|Tue|Wed|Thu|Fri|Sat), (\d\d) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (-?)(\d{4,6}) (\d\d:\d\d:\d\d) GMT$/;
const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec';

/** The same time in ISO 8601: V8 does not read all that it writes. Undefined: the text is no HTTP date. */
function isoOfHttpDate(text: string): string | undefined {
  const match = HTTP_TEXT.exec(text);
  if (match === null) return undefined;
  const [, day = '', month = '', sign = '', year = '', time = ''] = match;
  const monthNumber = `${MONTHS.indexOf(month) / 3 + 1}`.padStart(2, '0');
  return `${sign === '' ? '+' : '-'}${year.padStart(6, '0')}-${monthNumber}-${day}T${time}Z`;
}

/** Everything is UTC and depends only on the input. */
export function createDate(): unknown {
  const Native = Date;
  const { construct } = Reflect;

  const parse = (text: unknown): number => {
    const given = `${text as string}`;
    const input = isoOfHttpDate(given) ?? given;
    const match = ISO_TEXT.exec(input);
    if (match === null) return NaN;
    return Native.parse(match[1] !== undefined && match[2] === undefined ? `${input}Z` : input);
  };
  const timeOf = (input: unknown): number => {
    if (typeof input === 'string') return parse(input);
    return input instanceof Native ? input.getTime() : Number(input);
  };
  const SafeDate = function (...parts: number[]): unknown {
    if (new.target === undefined || parts.length === 0)
      throw new TypeError('there is no clock: Date needs an input');
    const [first = NaN, ...rest] = parts;
    const time = rest.length === 0 ? timeOf(first) : Native.UTC(first, ...rest);
    return construct(Native, [time], new.target) as unknown;
  };
  Object.defineProperty(SafeDate, 'name', { value: 'Date' });
  Object.defineProperty(SafeDate, 'prototype', { value: Native.prototype });
  Object.defineProperty(SafeDate, 'parse', { value: parse });
  Object.defineProperty(SafeDate, 'UTC', { value: Native.UTC });
  const shown = {
    toString(this: Date): string {
      return Native.prototype.toISOString.call(this);
    },
  };
  Object.defineProperty(Native.prototype, 'constructor', { value: SafeDate });
  addMethods(Native.prototype, shown);
  return SafeDate;
}

export function addMethods(prototype: object, methods: object): void {
  for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(methods))) {
    Object.defineProperty(prototype, name, { ...(descriptor as PropertyDescriptor), enumerable: false });
  }
}

/** Compares by code point: there is no locale data. */
export const byCodePoint = {
  localeCompare(this: string, other: unknown): number {
    const [a, b] = [`${this}`, `${other as string}`];
    if (a === b) return 0;
    let at = 0;
    while (at < a.length && a.charCodeAt(at) === b.charCodeAt(at)) at++;
    return (a.codePointAt(at) ?? -1) < (b.codePointAt(at) ?? -1) ? -1 : 1;
  },
};

const NAME_BYTES_MAX = 63;
const KEPT_BYTES = 52;
const DNS_NAME_CHARS_MAX = 253;
const PORT_MAX = 65_535;
const SHOWN_CHARS_MAX = 80;

/** Scheme and user info, host, port, and what follows them. */
const AROUND_HOST =
  /^([a-zA-Z][a-zA-Z0-9+.-]*:\/\/(?:[^\s\\/?#]*@)?)?([^\s\\/?#:@]*)(?::([^\s\\/?#:@]*))?([/?#][^]*)?$/;
const DNS_FORMS =
  'a Service is name.namespace, name.namespace.svc or hostname.name.namespace.svc, with or without a domain after svc, in lower case';

/** Computed here, because the isolate cannot call the daemon. The hostname of an address is the same in the copy, so it stays in the name. */
export function createVirtualToHostDNS(naming: NamingRules): (dnsName: unknown) => string {
  const hostServiceOf = createHostServiceOf(naming);

  return (dnsName) => {
    const text = textFor('virtualToHostDNS', dnsName);
    const refuse = (reason: string): never => {
      throw new RangeError(`virtualToHostDNS cannot translate ${shownName(text)}: ${reason}`);
    };
    const [, before = '', host = '', port, after = ''] = AROUND_HOST.exec(text) ?? refuse(DNS_FORMS);
    if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) > 0 && Number(port) <= PORT_MAX)) {
      refuse(`a port is a number from 1 to ${PORT_MAX}`);
    }
    const { name, namespace, withService } = parseServiceDnsName(host) ?? refuse(DNS_FORMS);
    const service =
      hostServiceOf(name, namespace) ??
      refuse(`sync.toHost.namespaces.mappings.byName does not map the namespace "${namespace}"`);
    const hostDnsName = withService(service);
    if (hostDnsName.replace(/\.$/, '').length > DNS_NAME_CHARS_MAX) {
      refuse(`on the host it would be longer than ${DNS_NAME_CHARS_MAX} characters`);
    }
    return `${before}${hostDnsName}${port === undefined ? '' : `:${port}`}${after}`;
  };
}

// The DNS name of a Service, taken apart. The daemon uses it too.

export interface ServiceDnsName {
  readonly name: string;
  readonly namespace: string;
  /** `svc` follows the namespace; without it, the name has two parts and may as well be a domain of the internet. */
  readonly hasSvc: boolean;
  /** The DNS name of another Service, given as `name.namespace`. The hostname of an address, the domain and the last dot stay. */
  readonly withService: (service: string) => string;
}

const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** Undefined: a Service has no such DNS name. */
export function parseServiceDnsName(dnsName: string): ServiceDnsName | undefined {
  const dot = dnsName.endsWith('.') ? '.' : '';
  const labels = dnsName.slice(0, dnsName.length - dot.length).split('.');
  // The fourth label first: a Service may be in a namespace that is called svc, no domain begins with it.
  const end = labels[3] === 'svc' ? 3 : 2;
  const hasSvc = labels[end] === 'svc';
  const isService = hasSvc || labels.length === 2;
  if (!isService || !labels.every((label) => DNS_LABEL.test(label))) return undefined;
  const [name = '', namespace = ''] = labels.slice(end - 2, end);
  const withService = (service: string): string =>
    [...labels.slice(0, end - 2), service, ...labels.slice(end)].join('.') + dot;
  return { name, namespace, hasSvc, withService };
}

/** Without user info and query, which may hold a password: the text becomes part of Events and logs. */
function shownName(dnsName: string): string {
  const [shown = ''] = dnsName.slice(dnsName.lastIndexOf('@') + 1).split(/[?#]/, 1);
  return JSON.stringify(shown.length > SHOWN_CHARS_MAX ? `${shown.slice(0, SHOWN_CHARS_MAX)}…` : shown);
}

/** `name.namespace` of a virtual Service on the host. Undefined: its namespace is not synced. */
function createHostServiceOf(naming: NamingRules): (name: string, namespace: string) => string | undefined {
  const sha256 = createSha256();
  const digest8 = (text: string): string => sha256(text).slice(0, 8);
  const { exact, patterns } = splitMappings(naming.byName);

  /** Undefined: names are rewritten into the virtual cluster's own namespace. */
  const hostNamespaceOf = (namespace: string): string | undefined => {
    if (naming.mode === 'single') return undefined;
    if (naming.mode === 'legacy-multi') {
      return `vcluster-${digest8(namespace)}-${digest8(`${naming.hostNamespace}x${naming.vcluster}`)}`;
    }
    const found = patterns.find(([prefix]) => namespace.startsWith(prefix));
    return exact.get(namespace) ?? (found && found[1] + namespace.slice(found[0].length));
  };
  const shorten = (full: string): string => {
    // DNS labels are ASCII, so characters are bytes.
    if (full.length <= NAME_BYTES_MAX) return full;
    return `${full.slice(0, KEPT_BYTES)}-${sha256(full).slice(0, 10)}`.replaceAll('.-', '-');
  };

  return (name, namespace) => {
    if (name === 'kubernetes' && namespace === 'default') return `${naming.vcluster}.${naming.hostNamespace}`;
    const kept = hostNamespaceOf(namespace);
    if (kept !== undefined) return `${name}.${kept}`;
    if (naming.mode === 'mappings' && naming.mappingsOnly) return undefined;
    return `${shorten(`${name}-x-${namespace}-x-${naming.vcluster}`)}.${naming.hostNamespace}`;
  };
}

function splitMappings(byName: Readonly<Record<string, string>>): {
  exact: ReadonlyMap<string, string>;
  patterns: readonly (readonly [virtualPrefix: string, hostPrefix: string])[];
} {
  const exact = new Map<string, string>();
  const patterns: (readonly [string, string])[] = [];
  for (const [from, to] of Object.entries(byName)) {
    const isPattern = from.indexOf('*') === from.length - 1 && to.indexOf('*') === to.length - 1;
    if (isPattern && from !== '' && to !== '') patterns.push([from.slice(0, -1), to.slice(0, -1)]);
    else if (!from.includes('*') && !to.includes('*')) exact.set(from, to);
  }
  patterns.sort((a, b) => b[0].length - a[0].length);
  return { exact, patterns };
}

/** FIPS 180-4, hexadecimal, of ASCII text. */
export function createSha256(): (text: string) => string {
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  const fraction = (root: number): number => ((root - Math.floor(root)) * 0x100000000) | 0;
  const constants = primes.map((prime) => fraction(Math.cbrt(prime)));
  const start = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
  const rotate = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));

  const schedule = (blocks: readonly number[], from: number): number[] => {
    const words = blocks.slice(from, from + 16);
    for (let i = 16; i < 64; i++) {
      const [a = 0, b = 0] = [words[i - 15], words[i - 2]];
      const s0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3);
      const s1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10);
      words.push(((words[i - 16] ?? 0) + s0 + (words[i - 7] ?? 0) + s1) | 0);
    }
    return words;
  };
  const compress = (state: readonly number[], words: readonly number[]): number[] => {
    let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
    for (let i = 0; i < 64; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (constants[i] ?? 0) + (words[i] ?? 0)) | 0;
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
    }
    return [a, b, c, d, e, f, g, h].map((word, i) => ((state[i] ?? 0) + word) | 0);
  };

  return (text) => {
    const blocks: number[] = [];
    for (let i = 0; i < text.length; i++) {
      blocks[i >> 2] = (blocks[i >> 2] ?? 0) | (text.charCodeAt(i) << (24 - (i % 4) * 8));
    }
    blocks[text.length >> 2] = (blocks[text.length >> 2] ?? 0) | (0x80 << (24 - (text.length % 4) * 8));
    while (blocks.length % 16 !== 14) blocks.push(0);
    blocks.push(0, text.length * 8);
    let state: number[] = start;
    for (let at = 0; at < blocks.length; at += 16) state = compress(state, schedule(blocks, at));
    return state.map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  };
}
