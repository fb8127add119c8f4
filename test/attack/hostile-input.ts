/** What a hostile API server sends to take the memory or the processor of a fleet: each as an answer of its own to lists and watches. */

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
import { hostileObject, isEndpoints, page } from './hostile-member.ts';

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
  (verdict: Verdict): Answer =>
  (request) => {
    if (!isEndpoints(request)) return PASS;
    return request.isWatch ? { kind: 'refuse', status: 410, reason: 'Expired' } : verdict;
  };

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

/** A large object that changes all the time, as a tenant can write it without any power over the API server. */
function changing(note: string): Answer {
  const addresses = Array.from({ length: 20_000 }, (_, at) => ({
    ip: `10.9.${(at >> 8) & 255}.${at & 255}`,
    hostname: `h${at}`,
  }));
  const object = (version: number): JsonObject => {
    const plain = hostileObject(0, version);
    const metadata = { ...(plain['metadata'] as JsonObject), annotations: { note: `${note}${version}` } };
    return { ...plain, metadata, subsets: [{ addresses, ports: [{ port: 80, protocol: 'TCP' }] }] };
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

function shapes(): string {
  let members = '';
  for (let at = 0; members.length < BYTES; at++) members += `,{"k${at.toString(36)}":0}`;
  return page([{ ...hostileObject(0, 1), x: 0 }]).replace('"x":0', `"x":[${members.slice(1)}]`);
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
  'a list with a long integer': body(listWith(`[${LONG}${fill(',0')}]`)),
  'a list of long integers': body(listWith(`[${LONG}${fill(`,${LONG}`)}]`)),
  'a list of strings with digits': body(listWith(`[""${fill(`,"a,${LONG},"`)}]`)),
  'a list that is nested as deep as it is long': body(nested()),
  'a list of objects of which none has the members of another': body(shapes()),
  'a long message': lists({
    kind: 'flood',
    flood: { first: `HTTP/1.1 500 Error\r\nContent-Length: ${message.length}\r\n\r\n${message}`, more: '' },
  }),
  'a large object that changes': changing('plain'),
  'a large object with digits that changes': changing(`a,${LONG},`),
};
