/** What a hostile API server sends to take the memory or the processor of a fleet: each as an answer of its own to lists and watches. */

import { setTimeout } from 'node:timers/promises';
import type { JsonObject } from '../../src/base/json.ts';
import type { ProxiedRequest, Verdict } from '../scenarios/api-proxy.ts';
import {
  CHUNKED,
  INFORMATIONAL,
  LONG_EXTENSIONS,
  ONE_BYTE_CHUNKS,
  SILENT_FLOODS,
  type Flood,
} from '../support/flooding-server.ts';
import { flapping, hostileObject, isEndpoints, page } from './hostile-member.ts';

/** Below the limit of a response. */
const BYTES = 3_900_000;
const LONG = '12345678901234567890';
const PASS: Verdict = { kind: 'pass' };

export type Answer = (request: ProxiedRequest) => Verdict;

const watches =
  (flood: Flood): Answer =>
  ({ isWatch }) =>
    isWatch ? { kind: 'flood', flood } : PASS;

/** Every watch is too old, so that the lists come. */
const lists =
  (verdict: Verdict | ((request: ProxiedRequest) => Verdict), isOf = isEndpoints): Answer =>
  (request) => {
    if (!isOf(request)) return PASS;
    if (request.isWatch) return { kind: 'refuse', status: 410, reason: 'Expired' };
    return typeof verdict === 'function' ? verdict(request) : verdict;
  };

function isSynced({ method, path }: ProxiedRequest): boolean {
  return method === 'GET' && /^\/api[^?]*\/(endpoints|endpointslices|services)(\?|$)/u.test(path);
}

const body = (text: string): Answer => lists({ kind: 'pretend', body: text });

/** One chunk over and over. */
function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

function fill(text: string): string {
  return text.repeat(Math.floor(BYTES / text.length));
}

function listWith(member: string): string {
  return page([]).replace(/\}$/u, `,"x":${member}}`);
}

const BEGINNING = '{"type":"ADDED","object":"';
const BOOKMARK = '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1000001"}}}\n';

const LARGE = 20_000;
const PORTS = [{ port: 80, protocol: 'TCP' }];
const addressOf = (at: number) => ({ ip: `10.9.${(at >> 8) & 255}.${at & 255}`, hostname: `h${at}` });
const ofLarge = <T>(one: (at: number) => T): T[] => Array.from({ length: LARGE }, (_, at) => one(at));
const mapOfLarge = (): JsonObject => Object.fromEntries(ofLarge((at) => [`key-${at}`, `value-${at}`]));
const addresses = (): JsonObject => ({ subsets: [{ addresses: ofLarge(addressOf), ports: PORTS }] });

/** A large object that changes all the time, most of which a tenant can write without any power over the API server. */
function changing(large: JsonObject, note = 'plain', members: JsonObject = {}): Answer {
  const object = (version: number): JsonObject => {
    const plain = hostileObject(0, version);
    const annotations = { note: `${note}${version}`, ...(members['annotations'] as JsonObject | undefined) };
    const metadata = { ...(plain['metadata'] as JsonObject), ...members, annotations };
    return { ...plain, metadata, ...large };
  };
  function* events(): Generator<string> {
    for (let version = 1_000_001; ; version++)
      yield `${JSON.stringify({ type: 'MODIFIED', object: object(version) })}\n`;
  }
  return (request) => {
    if (!isEndpoints(request)) return PASS;
    return request.isWatch
      ? { kind: 'stream', texts: events() }
      : { kind: 'pretend', body: page([object(1_000_000)]) };
  };
}

function nested(): string {
  const object = JSON.stringify({ ...hostileObject(0, 1), subsets: 0 });
  const depth = BYTES / 2;
  return page([]).replace(
    '"items":[]',
    `"items":[${object.replace('"subsets":0', `"subsets":${'['.repeat(depth)}${']'.repeat(depth)}`)}]`,
  );
}

let shapeMembers = '';
for (let at = 0; shapeMembers.length < BYTES; at++) shapeMembers += `,{"k${at.toString(36)}":0}`;

/** A page with an object none of whose inner objects has the members of another. */
function shapes(at: number, next = ''): string {
  return page([{ ...hostileObject(at, 1), x: 0 }], next).replace('"x":0', `"x":[${shapeMembers.slice(1)}]`);
}

function endlessShapes({ path }: ProxiedRequest): Verdict {
  const at = Number(new URL(path, 'http://hostile').searchParams.get('continue') ?? 0);
  return { kind: 'pretend', body: shapes(at, String(at + 1)) };
}

/** Each request needs a connection of its own. */
function closing(request: ProxiedRequest): Verdict {
  if (!isSynced(request)) return PASS;
  if (request.isWatch) return { kind: 'stream', texts: afterASecond() };
  const body = page([]);
  const head = `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`;
  return { kind: 'flood', flood: { first: `${head}${body}`, more: '' } };
}

/** Nothing. */
async function* afterASecond(): AsyncGenerator<string> {
  await setTimeout(1100);
  yield* [];
}

const message = JSON.stringify({
  kind: 'Status',
  apiVersion: 'v1',
  code: 500,
  message: 'm'.repeat(1_000_000),
});

export const HOSTILE_INPUTS: Readonly<Record<string, Answer>> = {
  'watches in chunks of one byte': watches({
    first: `${CHUNKED}${chunk(BEGINNING)}`,
    more: ONE_BYTE_CHUNKS.more,
  }),
  'lists in chunks of one byte': lists({ kind: 'flood', flood: ONE_BYTE_CHUNKS }),
  'informational responses': () => ({ kind: 'flood', flood: INFORMATIONAL }),
  ...Object.fromEntries(Object.entries(SILENT_FLOODS).map(([name, flood]) => [name, watches(flood)])),
  'long extensions': watches(LONG_EXTENSIONS),
  'empty lines': watches({ first: CHUNKED, more: chunk('\n'.repeat(65_536)) }),
  bookmarks: watches({ first: CHUNKED, more: chunk(BOOKMARK.repeat(900)) }),
  'streams that end at once': watches({ first: `${CHUNKED}0\r\n\r\n`, more: '' }),
  'streams that end after a second, and responses that close their connections': closing,
  'a list with a long integer': body(listWith(`[${LONG}${fill(',0')}]`)),
  'lists of every kind with a long integer': lists(
    { kind: 'pretend', body: listWith(`[${LONG}${fill(',0')}]`) },
    isSynced,
  ),
  'a list of long integers': body(listWith(`[${LONG}${fill(`,${LONG}`)}]`)),
  'a list of strings with digits': body(listWith(`[""${fill(`,"a,${LONG},"`)}]`)),
  'a list that is nested as deep as it is long': body(nested()),
  'a list of objects of which none has the members of another': body(shapes(0)),
  'endless pages of such objects': lists(endlessShapes),
  'a long message': lists({
    kind: 'flood',
    flood: { first: `HTTP/1.1 500 Error\r\nContent-Length: ${message.length}\r\n\r\n${message}`, more: '' },
  }),
  'a large object that changes': changing(addresses()),
  'a large object with digits that changes': changing(addresses(), `a,${LONG},`),
  'an object of many subsets that changes': changing({
    subsets: ofLarge((at) => ({ addresses: [addressOf(at)], ports: PORTS })),
  }),
  'an object of many ports that changes': changing({
    subsets: [{ addresses: [addressOf(0)], ports: ofLarge((at) => ({ name: `p${at}`, port: 1 + at })) }],
  }),
  'an object of many annotations that changes': changing({}, 'plain', { annotations: mapOfLarge() }),
  'an object of many labels that changes': changing({}, 'plain', { labels: mapOfLarge() }),
  'an object of many unknown members that changes': changing({ x: ofLarge((at) => ({ [`k${at}`]: 0 })) }),
  '10 000 objects that change all the time': flapping(10_000),
  'a list of many objects': body(page(ofLarge((at) => hostileObject(at, 1)).slice(0, 12_000))),
};

/** Of these, lists that take longer to parse than their bytes of addresses, by far: they are not parsed. */
export const TOO_COSTLY: ReadonlySet<string> = new Set([
  'a list that is nested as deep as it is long',
  'a list of objects of which none has the members of another',
  'endless pages of such objects',
]);

/** What patches do with each address of a large object. */
export const LARGE_OBJECT: Answer = changing(addresses());
const HOSTNAMES = 'subsets[*].addresses[*].hostname';
export const PATCHES_OF_LARGE: Readonly<Record<string, JsonObject>> = {
  'an expression': { path: HOSTNAMES, expression: 'value + "x"' },
  'an expression and its reverse': {
    path: HOSTNAMES,
    expression: 'value + "x"',
    reverseExpression: 'value.slice(0, -1)',
  },
  'a filter': { path: 'subsets[*].addresses[?(@.hostname != "h5")].hostname', expression: 'value + "x"' },
};
