/** Several replicas write the same few keys concurrently, and a checker compares their results with the history. */

import { orderedKey } from '../../../../src/kube/object.ts';
import { expect } from 'vitest';
import { StatusError } from '../../../../src/kube/status-error.ts';
import type { Random } from '../../../../src/base/random.ts';
import {
  StoreError,
  type Store,
  type StoredEntry,
  type StoreEvent,
  type StoreKey,
} from '../../../../src/apiserver/storage/store.ts';

/** The result of one attempt to write. */
export interface Attempt {
  /** Part of the written value, so that each state identifies its write. */
  readonly id: string;
  readonly kind: 'create' | 'update' | 'delete';
  readonly key: string;
  /** For update and delete. */
  readonly expectedRevision: number;
  /** `done`, a `StoreErrorCode`, `in doubt` (504), or the message of any other failure. */
  readonly outcome: string;
  /** Of the response, when it is done. */
  readonly revision: number;
}

const RESOURCE = 'things';
/** Few, so that writers conflict. */
const NAMES = ['a', 'b', 'c'];

export function keyNamed(name: string): StoreKey {
  return { resource: RESOURCE, namespace: '', name };
}

/** One writer: `count` random writes, each based on what it read before. */
export async function write(store: Store, name: string, count: number, random: Random): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  for (let i = 0; i < count; i++) {
    const key = keyNamed(NAMES[Math.floor(random() * NAMES.length)] ?? '');
    const seen = await store.get(key).catch(() => undefined);
    attempts.push(await attempt(store, { id: `${name}-${i}`, key, seen, random }));
  }
  return attempts;
}

async function attempt(
  store: Store,
  { id, key, seen, random }: { id: string; key: StoreKey; seen: StoredEntry | undefined; random: Random },
): Promise<Attempt> {
  const kind = seen === undefined ? 'create' : random() < 0.3 ? 'delete' : 'update';
  const expectedRevision = seen?.revision ?? 0;
  const what = { id, kind, key: key.name, expectedRevision } as const;
  const count = Number(seen?.value['count'] ?? 0) + 1;
  try {
    const { revision } = await run(store, { kind, key, expectedRevision, value: { id, count } });
    return { ...what, outcome: 'done', revision };
  } catch (error) {
    return { ...what, outcome: outcomeOf(error), revision: 0 };
  }
}

function run(
  store: Store,
  write: {
    kind: Attempt['kind'];
    key: StoreKey;
    expectedRevision: number;
    value: { id: string; count: number };
  },
): Promise<StoredEntry> {
  switch (write.kind) {
    case 'create':
      return store.create(write.key, write.value);
    case 'update':
      return store.update(write.key, write.value, write.expectedRevision);
    case 'delete':
      return store.delete(write.key, write.expectedRevision);
  }
}

function outcomeOf(error: unknown): string {
  if (error instanceof StoreError) return error.code;
  if (error instanceof StatusError && error.code === 504) return 'in doubt';
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

/** An event without what it repeats. */
export interface Fact {
  readonly type: StoreEvent['type'];
  readonly key: string;
  readonly revision: number;
  /** The write that created the state: for a deletion, the state that it removed. */
  readonly id: string;
  /** The revision of the state before; 0 when there was none. */
  readonly previous: number;
}

export function factOf({ type, entry, revision, previous }: StoreEvent): Fact {
  return {
    type,
    key: entry.key.name,
    revision,
    id: textOf(entry.value['id']),
    previous: previous?.revision ?? 0,
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Follows everything of the store from now on. */
export async function follow(store: Store): Promise<Fact[]> {
  const facts: Fact[] = [];
  await store.watch({ resource: RESOURCE }, await store.revision(), {
    event: (event) => facts.push(factOf(event)),
    end: () => facts.push({ type: 'deleted', key: 'the watch ended', revision: 0, id: '', previous: 0 }),
  });
  return facts;
}

/**
 * Every response is correct: acknowledged writes happened once and at their revision, failed writes did not happen. With network faults, a
 * deletion may miss its own event and return a later revision.
 */
export function expectHonestAnswers(
  attempts: readonly Attempt[],
  truth: readonly Fact[],
  { hasFaults }: { hasFaults: boolean },
): void {
  const wrong: unknown[] = [];
  for (const attempt of attempts) {
    const { kind, id, key, expectedRevision } = attempt;
    const facts = truth.filter((fact) =>
      kind === 'delete'
        ? fact.type === 'deleted' && fact.key === key && fact.previous === expectedRevision
        : fact.type !== 'deleted' && fact.id === id,
    );
    if (!isTrue(attempt, facts, hasFaults)) wrong.push({ attempt, facts });
  }
  expect(wrong).toEqual([]);
}

function isTrue({ kind, outcome, revision }: Attempt, facts: readonly Fact[], hasFaults: boolean): boolean {
  const [fact] = facts;
  if (fact === undefined) return outcome !== 'done' && OUTCOMES.has(outcome);
  if (facts.length > 1) return false;
  if (outcome === 'done') {
    return revision === fact.revision || (hasFaults && kind === 'delete' && revision > fact.revision);
  }
  // Several writers may have deleted the same state; any other state belongs to one write.
  return outcome === 'in doubt' || (kind === 'delete' && OUTCOMES.has(outcome));
}

const OUTCOMES = new Set(['exists', 'conflict', 'missing', 'unavailable', 'in doubt']);

/**
 * The same without a complete history: after a relist some states are unknown. No two acknowledged writes replaced one state, acknowledged
 * states equal the observed ones at their revision, and no failed write was observed.
 */
export function expectNoContradiction(
  attempts: readonly Attempt[],
  followed: readonly (readonly Fact[])[],
): void {
  const done = attempts.filter(({ outcome }) => outcome === 'done');
  const replaced = done
    .filter(({ kind }) => kind === 'update')
    .map(({ key, expectedRevision }) => `${key} ${expectedRevision}`);
  expect(replaced).toHaveLength(new Set(replaced).size);
  const failed = new Set(
    attempts.filter(({ outcome }) => outcome !== 'done' && outcome !== 'in doubt').map(({ id }) => id),
  );
  for (const facts of followed) {
    const written = facts.filter(({ type }) => type !== 'deleted');
    expect(written.filter(({ id }) => failed.has(id))).toEqual([]);
    const ids = new Map(written.map(({ revision, id }) => [revision, id]));
    const others = done.filter(({ kind, revision, id }) => {
      const seen = ids.get(revision);
      return kind !== 'delete' && seen !== undefined && seen !== id;
    });
    expect(others).toEqual([]);
  }
}

/** Key → the write that created its state, according to the events. */
export function stateOf(facts: readonly Fact[]): ReadonlyMap<string, string> {
  const state = new Map<string, string>();
  for (const { type, key, id } of facts) {
    if (type === 'deleted') state.delete(key);
    else state.set(key, id);
  }
  return state;
}

/** Every replica lists what the events led to. */
export async function expectSameEnd(stores: readonly Store[], truth: readonly Fact[]): Promise<void> {
  const last = new Map<string, Fact>();
  for (const fact of truth) last.set(fact.key, fact);
  const expected = [...last.values()]
    .filter(({ type }) => type !== 'deleted')
    .map(({ key, revision, id }) => ({ key, revision, id }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
  for (const store of stores) {
    const { entries } = await store.list({ resource: RESOURCE });
    const ends = entries.map(({ key, revision, value }) => ({
      key: orderedKey(key).slice(1),
      revision,
      id: value['id'],
    }));
    expect(ends).toEqual(expected);
  }
}
