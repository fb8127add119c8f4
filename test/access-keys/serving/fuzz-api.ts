/** The whole key and token API under garbage requests: its responses, and a check that its state is unchanged. */

import type { JsonObject } from '../../../src/base/json.ts';
import { garbageCollector } from '../../garbage.ts';
import { KEYS_PATH, startComposed, type Composed } from '../composed-api.ts';
import { runFuzz, type FuzzReport } from './fuzz-run.ts';
import { Peer } from './raw-exchange.ts';

export interface FuzzOutcome extends FuzzReport {
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
  const peer = new Peer(composed.api.url.replace('https://', ''), composed.ca);
  // Code that runs for the first time takes memory of its own.
  await runFuzz({ peer, token, seed: seed + 1, count: 150 });
  const before = await state(composed);
  const bytes = await heldBytes();
  const report = await runFuzz({ peer, token, seed, count });
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
