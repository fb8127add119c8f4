/** The whole key and token API under garbage requests: its responses, and a check that its state is unchanged. */

import { type JsonObject, isJsonObject } from '../../../src/base/json.ts';
import { garbageCollector } from '../../support/garbage.ts';
import { KEYS_PATH, startComposed, type Composed } from '../composed-api.ts';
import { Line, parseResponses, tlsConnector, type Connect, type RawResponse } from './raw-exchange.ts';
import { garbage, type Garbage } from './garbage-requests.ts';
import { Seeded } from './seeded.ts';

interface FuzzOutcome extends FuzzReport {
  /** Of the heap, after all garbage of the collector's kind is gone. */
  readonly grownBytes: number;
  readonly before: JsonObject | null;
  readonly after: JsonObject | null;
}

export async function fuzzApi(seed: number, count: number): Promise<FuzzOutcome> {
  await using composed = await startComposed();
  const spec = { user: 'ann', groups: ['platform:admins'] };
  const { text: token } = await composed.key('fuzz', spec);
  await composed.key('k-1', { user: 'bob', groups: ['a'] });
  const connect = tlsConnector(composed.api.url.replace('https://', ''), composed.ca);
  // Code that runs for the first time takes memory of its own.
  await runFuzz({ connect, token, seed: seed + 1, count: 150 });
  const before = await state(composed);
  const bytes = await heldBytes();
  const report = await runFuzz({ connect, token, seed, count });
  const grownBytes = (await heldBytes()) - bytes;
  return { ...report, grownBytes, before, after: await state(composed) };
}

/** Every key there is, and the revision, but for the times of last use. */
async function state({ administrator }: Composed): Promise<JsonObject | null> {
  const { json, text } = await administrator.send({ method: 'GET', path: KEYS_PATH });
  return (
    json &&
    (JSON.parse(text.replaceAll(/"lastActivity":"[^"]*"/g, '"lastActivity":"some time"')) as JsonObject)
  ); // it is JSON
}

async function heldBytes(): Promise<number> {
  const collect = garbageCollector();
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

// Sends garbage to a server and checks the responses.

interface FuzzOptions {
  readonly connect: Connect;
  /** A bearer token that may do everything. */
  readonly token: string;
  readonly seed: number;
  readonly count: number;
}

interface FuzzReport {
  /** How often which code was answered; 0: a broken request was only closed. */
  readonly codes: ReadonlyMap<number, number>;
  /** What a server must not do, with the number of the request to do it again. */
  readonly faults: readonly string[];
}

const AT_ONCE = 24;
/** A stack trace, or where the program lies. */
const INSIDES =
  /\bat .{1,200}:\d+:\d+|node:internal|node_modules|file:\/\/|\.ts:\d|\/src\/|\/work\/|\/home\/|process\.|TypeError|RangeError|ReferenceError/;

/** Request `n` of a seed is always the same bytes, alone or among others. */
async function runFuzz({ connect, token, seed, count }: FuzzOptions): Promise<FuzzReport> {
  const codes = new Map<number, number>();
  const faults: string[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    const line = new Line(connect);
    for (let n = next++; n < count; n = next++) {
      const request = garbage(new Seeded(Math.imul(seed, 1_000_003) + n), token);
      const problem = await check(line, request, codes).catch((error: unknown) => String(error));
      if (problem !== '') faults.push(`seed ${seed}, request ${n}: ${problem}\n  ${shown(request.bytes)}`);
    }
    line.close();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return { codes, faults };
}

function shown(bytes: Buffer): string {
  return JSON.stringify(bytes.toString('latin1', 0, 600));
}

async function check(line: Line, request: Garbage, codes: Map<number, number>): Promise<string> {
  // What is broken gets a connection of its own, which its sender ends: another request behind it could be taken for a part of it.
  if (request.isLast) line.close();
  const bytes = await line.send(request.bytes, request.isHead, request.isLast);
  const leaked = INSIDES.exec(bytes.toString('latin1'));
  if (leaked) return `the answer shows the insides of the program: ${leaked[0]}`;
  const responses = parseResponses(bytes, request.isHead);
  if (responses.length === 0) count(codes, 0);
  if (responses.length === 0 && !request.isBroken) return 'no answer';
  for (const response of responses) {
    count(codes, response.status);
    const problem = problemOf(response, request);
    if (problem !== '') return problem;
  }
  return '';
}

function count(codes: Map<number, number>, code: number): void {
  codes.set(code, (codes.get(code) ?? 0) + 1);
}

function problemOf({ status, headers, body, isStream }: RawResponse, { isHead }: Garbage): string {
  // The only 5xx is the one for a resourceVersion of the future.
  if (status >= 500 && status !== 504) return `status ${status}: ${body.slice(0, 200)}`;
  if (isHead || isStream || status === 304) return '';
  if (status < 400) return '';
  if (headers.get('content-type') !== 'application/json')
    return `status ${status} is no JSON: ${body.slice(0, 200)}`;
  const document: unknown = JSON.parse(body);
  if (!isJsonObject(document)) return `status ${status} is no document: ${body.slice(0, 200)}`;
  const { kind, apiVersion, code, message } = document;
  const isStatus =
    kind === 'Status' && apiVersion === 'v1' && code === status && document['status'] === 'Failure';
  return isStatus && typeof message === 'string' && message !== ''
    ? ''
    : `status ${status} is no Status: ${body.slice(0, 200)}`;
}
