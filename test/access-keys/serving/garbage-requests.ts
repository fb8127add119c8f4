/** Malformed and hostile requests: invalid HTTP, and unusual URLs, queries and headers. */

import { garbageBody, garbagePatch, type Body } from './garbage-bodies.ts';
import type { Seeded } from './seeded.ts';

export interface Garbage {
  readonly bytes: Buffer;
  /** Nothing can come behind it on a connection: what it says of itself is not true. */
  readonly isLast: boolean;
  /** HTTP that a server may leave without an answer and only close. */
  readonly isBroken: boolean;
  readonly isHead: boolean;
}

const KEYS = '/apis/management.platform.sh/v1/ownedaccesskeys';
const TOKENS = '/apis/management.platform.sh/v1/directclusterendpointtokens';

const REVIEWS = ['selfsubjectaccessreviews', 'selfsubjectrulesreviews', 'subjectaccessreviews'];
/** The key of the rotation does not exist: the state must not change. */
const POST_PATHS = [
  KEYS,
  KEYS,
  KEYS,
  TOKENS,
  TOKENS,
  `${KEYS}/missing/rotate`,
  '/apis/authentication.k8s.io/v1/tokenreviews',
  '/apis/authentication.k8s.io/v1/selfsubjectreviews',
  ...REVIEWS.map((plural) => `/apis/authorization.k8s.io/v1/${plural}`),
];

export function garbage(random: Seeded, token: string): Garbage {
  return random.is(0.15) ? brokenHttp(random, token) : oddRequest(random, token);
}

function oddRequest(random: Seeded, token: string): Garbage {
  const method = random.is(0.93)
    ? random.pick(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
    : random.pick(METHODS);
  const hasBody = ['POST', 'PUT', 'PATCH', 'DELETE'].includes(method) ? random.is(0.95) : random.is(0.05);
  const body = !hasBody ? undefined : method === 'PATCH' ? garbagePatch(random) : garbageBody(random);
  const isWrite = !['GET', 'HEAD'].includes(method);
  const target = `${path(random, method)}${query(random, isWrite)}`;
  const lines = [
    `${method} ${target} HTTP/1.1`,
    'host: x',
    ...headers(random, token),
    ...bodyHeaders(random, body),
  ];
  return {
    bytes: message(lines, bodyBytes(body)),
    isBroken: false,
    isLast: !isTrue(lines, body),
    isHead: method === 'HEAD',
  };
}

const METHODS = [
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'LINK',
  'MKCOL',
  'PURGE',
  'SEARCH',
  'M-SEARCH',
  'QUERY',
  'FOO',
  'get',
];

function path(random: Seeded, method: string): string {
  if (random.is(0.5)) return method === 'POST' ? random.pick(POST_PATHS) : `${KEYS}/k-1`;
  return random.oneOf([
    () => `${KEYS}/k-1${random.pick(['', '/status', '/scale', '/', '//', '/status/x'])}`,
    () => random.pick([KEYS, TOKENS, `${TOKENS}/x`, `${KEYS}/${'n'.repeat(random.integer(3000))}`]),
    () =>
      random.pick([
        '/',
        '/api',
        '/apis',
        '/version',
        '/healthz',
        '/openapi/v3',
        '/openapi/v3/apis/management.platform.sh/v1',
        '/metrics',
        '/favicon.ico',
      ]),
    () =>
      `/kubernetes/${random.pick(['management', 'cluster', 'project', 'x', ''])}/${random.pick(['a', '', '..', '%2e%2e'])}${KEYS}`,
    () =>
      random.pick([
        '/../../etc/passwd',
        '/..%2f..%2f',
        '//evil.example/x',
        '/%',
        '/%zz',
        '/%00',
        '/%ff%fe',
        '/%c0%ae',
        '/a\\b',
        '*',
        '/apis/%2F/v1',
        '/;/x',
        '/__proto__',
        '/apis/__proto__/v1/constructor',
      ]),
    () => `${KEYS}/${encodeURIComponent(random.text(30, 'abc/%.é漢 \u0000~__proto__constructor'))}`,
    () => `/${random.text(60, "abc/%.0123456789-_~:@!$&'()*+,;=")}`,
    () => `/apis/${random.text(10, 'abc.')}/v1/namespaces/${random.text(5, 'ab%/')}/x`,
  ]);
}

const PARAMETERS = [
  'limit',
  'continue',
  'resourceVersion',
  'resourceVersionMatch',
  'labelSelector',
  'fieldSelector',
  'watch',
  'timeoutSeconds',
  'allowWatchBookmarks',
  'sendInitialEvents',
  'pretty',
  'fieldManager',
  'fieldValidation',
  'force',
  'gracePeriodSeconds',
  'propagationPolicy',
  'orphanDependents',
  'includeObject',
  'dryRun',
  '__proto__',
  'constructor',
  'access_token',
  '',
];
const VALUES = [
  '',
  '0',
  '-1',
  '1',
  'true',
  'false',
  '99999999999999999999',
  '1e9',
  'NaN',
  '%00',
  '%ff',
  'Exact',
  'NotOlderThan',
  'Strict',
  'Ignore',
  'All',
  'a=b,c!=d,e in (f,g),!h',
  'a in ((',
  'metadata.name=k-1',
  'metadata.name!=',
  'spec.x=1',
  '=,=',
  '!',
  'a>1',
  'a<x',
  'eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiIn0',
  'e30',
  'Foreground',
  '__proto__',
];

/** Nothing that happens to be right is stored. */
function query(random: Seeded, isWrite: boolean): string {
  const parts = isWrite ? ['dryRun=All'] : [];
  const count = random.integer(4);
  for (let n = 0; n < count; n++) {
    const text = random.is(0.8) ? random.pick(VALUES) : random.text(40);
    parts.push(`${random.pick(PARAMETERS)}=${random.is(0.7) ? encodeURIComponent(text) : urlSafe(text)}`);
  }
  if (random.is(0.02)) parts.push(`labelSelector=${'a,'.repeat(1000)}a`);
  if (random.is(0.02)) parts.push('x'.repeat(7000 + random.integer(12_000)));
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

function urlSafe(text: string): string {
  return text.replaceAll(/[^\x21-\x7e]/g, '+');
}

function headers(random: Seeded, token: string): string[] {
  const lines: string[] = [];
  const authorization = random.is(0.94)
    ? `Bearer ${token}`
    : random.pick([
        '',
        'Bearer',
        'Bearer x',
        `Basic ${token}`,
        `bearer ${token}x`,
        'Bearer eyJhbGciOiJub25lIn0.e30.',
      ]);
  if (random.is(0.98)) lines.push(`authorization: ${authorization}`);
  if (random.is(0.5)) lines.push(`accept: ${random.pick(ACCEPTS)}`);
  if (random.is(0.1)) lines.push(`user-agent: ${random.text(100, 'abc/ ()1.;é')}`);
  if (random.is(0.05)) lines.push(`x-${random.text(5, 'abc')}x: ${random.text(200, 'abc é"%')}`);
  if (random.is(0.02)) for (let n = 0; n < 50 + random.integer(100); n++) lines.push(`x-${n}: ${n}`);
  if (random.is(0.02)) lines.push(`x-long: ${'x'.repeat(5000 + random.integer(25_000))}`);
  if (random.is(0.03))
    lines.push(
      random.pick([
        'expect: 100-continue',
        'expect: x',
        'upgrade: websocket\r\nconnection: upgrade',
        'connection: close',
        'te: trailers',
        'range: bytes=0-',
        'if-none-match: *',
        'content-encoding: gzip',
        'x-forwarded-for: 1.2.3.4',
        'x-http-method-override: DELETE',
        'impersonate-user: root',
        'x-remote-user: root',
      ]),
    );
  return lines;
}

const ACCEPTS = [
  'application/json',
  '*/*',
  'application/yaml',
  'text/html',
  'application/json;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/json;as=__proto__',
  ',,,',
  ';',
  'application/vnd.kubernetes.protobuf',
  'application/json;q=0',
  'a/b,'.repeat(300),
  'application/json;as',
  '=;=',
];

function bodyHeaders(random: Seeded, body: Body | undefined): string[] {
  if (!body) return [];
  const type = body.contentType === '' ? [] : [`content-type: ${body.contentType}`];
  const length = Buffer.byteLength(body.bytes);
  return [
    ...type,
    `content-length: ${random.is(0.98) ? length : Math.max(0, length + random.pick([-1, 1, 1000]))}`,
  ];
}

function bodyBytes(body: Body | undefined): Buffer {
  if (!body) return Buffer.alloc(0);
  return typeof body.bytes === 'string' ? Buffer.from(body.bytes) : body.bytes;
}

/** The length in the headers is the one of the body. */
function isTrue(lines: readonly string[], body: Body | undefined): boolean {
  const length = lines.find((line) => line.startsWith('content-length: '));
  return length === undefined || length === `content-length: ${Buffer.byteLength(body?.bytes ?? '')}`;
}

function message(lines: readonly string[], body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
}

/** What a parser of HTTP must refuse, or at least survive. */
function brokenHttp(random: Seeded, token: string): Garbage {
  const text = random.oneOf<string | Buffer>([
    () => random.bytes(1 + random.integer(300)),
    () =>
      `GET ${KEYS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n`.slice(0, random.integer(120)),
    () =>
      `POST ${KEYS}?dryRun=All HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n${random.pick(SMUGGLING)}`,
    () => random.pick(FRAMES),
    () => `GET /version HTTP/1.1\r\nhost: x\r\n${random.text(40)}\r\n\r\n`,
    () => `${random.text(12)} ${random.text(12)} ${random.text(12)}\r\n\r\n`,
    () => `GET /${'a'.repeat(10_000 + random.integer(60_000))} HTTP/1.1\r\nhost: x\r\n\r\n`,
    () => `GET /version HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(10_000 + random.integer(60_000))}\r\n\r\n`,
    () => `GET /version HTTP/1.1\r\nhost: x\r\n\r\n`.repeat(1 + random.integer(20)),
  ]);
  return {
    bytes: typeof text === 'string' ? Buffer.from(text, 'latin1') : text,
    isBroken: true,
    isLast: true,
    isHead: false,
  };
}

const SMUGGLING = [
  'content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /version HTTP/1.1\r\nhost: x\r\n\r\n',
  'transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n',
  'transfer-encoding: xchunked\r\n\r\n0\r\n\r\n',
  'transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n',
  'transfer-encoding : chunked\r\n\r\n0\r\n\r\n',
  'content-length: 5\r\ncontent-length: 6\r\n\r\nabcdef',
  'content-length: -1\r\n\r\n',
  'content-length: 0x5\r\n\r\nabcde',
  'content-length: 99999999999999999999\r\n\r\n{}',
  'content-length: 4000000\r\n\r\n{}',
  'transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n',
  'transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{}',
  'transfer-encoding: chunked\r\n\r\n2;ext=\u0000\r\n{}\r\n0\r\n\r\n',
  'transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx-trailer: y\r\n\r\n',
  'transfer-encoding: chunked\r\n\r\n2\r\n{}',
  'content-length: 100\r\n\r\n{"kind":',
];

const FRAMES = [
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'GET /\r\n',
  'GET / HTTP/0.9\r\n\r\n',
  'GET / HTTP/1.0\r\n\r\n',
  'GET / HTTP/3.0\r\nhost: x\r\n\r\n',
  'GET / HTTP/1.1\r\n\r\n',
  'GET  /  HTTP/1.1\r\nhost: x\r\n\r\n',
  'GET http://evil.example/version HTTP/1.1\r\nhost: evil.example\r\n\r\n',
  'CONNECT evil.example:443 HTTP/1.1\r\nhost: evil.example:443\r\n\r\n',
  'GET / HTTP/1.1\nhost: x\n\n',
  'GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n',
  'GET / HTTP/1.1\r\nhost: x\r\n folded: y\r\n\r\n',
  'GET / HTTP/1.1\r\nhost: x\r\na\u0000b: c\r\n\r\n',
  'GET / HTTP/1.1\r\n: x\r\n\r\n',
  '\r\n\r\n\r\n',
  '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003',
  'OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n',
  'GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n',
];
