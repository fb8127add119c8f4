/**
 * A process that opens a store and writes until a test kills it. It waits for two lines: `open`, to which it replies with all objects, and the
 * number of steps that each writer has done. Then it prints `<writer> <revision>` for each acknowledged write.
 */

import { writeSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { createInterface } from 'node:readline';
import { SqliteStore } from '../../src/apiserver/storage/sqlite/sqlite-store.ts';
import { StoreError, type Store, type StoreKey } from '../../src/apiserver/storage/store.ts';
import { deletes, SHARED, stateOf, stepOf, WRITERS } from './store-crash.ts';

const [file = '', historyLimit = ''] = process.argv.slice(2);

function keyOf(name: string): StoreKey {
  return { resource: 'things', namespace: '', name };
}

/** Synchronous instead of a stream: the line must be in the pipe before anything else happens. The pipe is full while its reader has no turn. */
function say(line: string): void {
  const bytes = Buffer.from(`${line}\n`);
  for (let sent = 0; sent < bytes.length;) {
    try {
      sent += writeSync(1, bytes, sent);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

/** The revision of the write. */
async function perform(store: Store, writer: number, number: number): Promise<number> {
  const step = stepOf(writer, number);
  if (step.kind === 'shared') return increment(store, writer);
  const key = keyOf(step.name);
  const current = await store.get(key);
  const state = { ...stateOf(writer, number) };
  if (!current) return (await store.create(key, state)).revision;
  if (deletes(writer, number)) return (await store.delete(key, current.revision)).revision;
  return (await store.update(key, state, current.revision)).revision;
}

/** The counter counts per writer, so that a lost or a repeated step is visible. */
async function increment(store: Store, writer: number): Promise<number> {
  for (;;) {
    const current = await store.get(keyOf(SHARED));
    const counts = current?.value['counts'] as number[] | undefined; // as written below
    const next = Array.from({ length: WRITERS }, (_, i) => (counts?.[i] ?? 0) + (i === writer ? 1 : 0));
    try {
      if (!current) return (await store.create(keyOf(SHARED), { counts: next })).revision;
      return (await store.update(current.key, { counts: next }, current.revision)).revision;
    } catch (error) {
      if (!(error instanceof StoreError) || !['exists', 'conflict'].includes(error.code)) throw error;
    }
  }
}

async function write(store: Store, writer: number, from: number): Promise<never> {
  for (let number = from; ; number++) say(`${writer} ${await perform(store, writer, number)}`);
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
await lines.next();
const store = await SqliteStore.open({ file, historyLimit: Number(historyLimit) });
const { entries, revision } = await store.list({ resource: 'things' });
say(JSON.stringify({ revision, entries }));
const { value = '[]' } = await lines.next();
const done = JSON.parse(value) as number[]; // from our own test
// A killed process writes no compile cache at its end, and the next one would start slowly.
flushCompileCache();
await Promise.all(done.map((from, writer) => write(store, writer, from)));
