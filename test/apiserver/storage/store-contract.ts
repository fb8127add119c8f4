/** The contract of the store, as tests that every driver passes. */

import { orderedKey } from '../../../src/kube/object.ts';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import {
  type Projection,
  StoreError,
  type Store,
  type StoredEntry,
  type StoreEvent,
  type StoreKey,
  type StoreRange,
} from '../../../src/apiserver/storage/store.ts';

export type NewStore<Driver extends Store = Store> = (historyLimit?: number) => Promise<Driver>;

function key(name: string, namespace = 'ns', resource = 'things'): StoreKey {
  return { resource, namespace, name };
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return error instanceof StoreError ? error.code : 'another error';
  }
  return 'no error';
}

export interface DriverTraits<Driver extends Store = Store> {
  /** Compacts the history up to the current revision. Default: not tested. */
  readonly compact?: (store: Driver) => Promise<void>;
  /** Number of random histories; fewer for a driver with slow writes. Default 60. */
  readonly runs?: number;
  /** Others raise the same counter, so that it may stand higher than the newest write of this store. */
  readonly isCounterShared?: boolean;
}

export function storeContract<Driver extends Store>(
  driver: string,
  open: NewStore<Driver>,
  traits: DriverTraits<Driver>,
): void {
  const counter = counterOf(traits);
  writes(driver, open, counter);
  concurrentWrites(driver, open, counter);
  lists(driver, open, counter);
  if (traits.compact !== undefined) compaction(driver, open, traits.compact);
  watches(driver, open, counter);
  projections(driver, open);
  histories(driver, open, traits.runs ?? 60);
  notes(driver, open, counter);
}

/** What may be expected of the counter. */
interface Counter {
  /** The store is at `revision`, its newest write. */
  stands(actual: number, revision: number): void;
  /** From now to what cannot have happened yet. */
  readonly future: number;
}

function counterOf({ isCounterShared = false }: Pick<DriverTraits, 'isCounterShared'>): Counter {
  return isCounterShared
    ? { stands: (actual, revision) => expect(actual).toBeGreaterThanOrEqual(revision), future: 1_000_000 }
    : { stands: (actual, revision) => expect(actual).toBe(revision), future: 1 };
}

/** Events may arrive after the response to their write. */
async function eventually(check: () => void): Promise<void> {
  await vi.waitFor(check, { timeout: 60_000, interval: 1 });
}

function writes(driver: string, open: NewStore, counter: Counter): void {
  describe(`${driver}: writes`, () => {
    test('a created object is stored at the revision of its creation', async () => {
      await using store = await open();
      const before = await store.revision();
      const entry = await store.create(key('a'), { x: 1 });
      expect(entry.revision).toBeGreaterThan(before);
      counter.stands(await store.revision(), entry.revision);
      expect(await store.get(key('a'))).toEqual({ key: key('a'), value: { x: 1 }, revision: entry.revision });
      expect(await store.get(key('a', 'other'))).toBeUndefined();
    });

    test('a name is unique, and the error has its entry', async () => {
      await using store = await open();
      const first = await store.create(key('a'), { x: 1 });
      const second = store.create(key('a'), { x: 2 });
      await expect(second).rejects.toMatchObject({ code: 'exists', current: { revision: first.revision } });
      await store.create(key('a', 'other'), {});
      await store.create(key('a', 'ns', 'others'), {});
    });

    test('an update or a deletion happens only at the revision that it expects', async () => {
      await using store = await open();
      const { revision } = await store.create(key('a'), { x: 1 });
      const updated = await store.update(key('a'), { x: 2 }, revision);
      expect(updated.revision).toBeGreaterThan(revision);
      expect(await codeOf(store.update(key('a'), { x: 3 }, revision))).toBe('conflict');
      expect(await codeOf(store.delete(key('a'), revision))).toBe('conflict');
      const deleted = await store.delete(key('a'), updated.revision);
      expect(deleted.revision).toBeGreaterThan(updated.revision);
      expect(deleted.value).toEqual({ x: 2 });
      expect(await codeOf(store.update(key('a'), {}, deleted.revision))).toBe('missing');
      expect(await codeOf(store.delete(key('a'), deleted.revision))).toBe('missing');
    });

    test('a rejected write has no effect', async () => {
      await using store = await open();
      const { revision } = await store.create(key('a'), { x: 1 });
      await codeOf(store.create(key('a'), {}));
      await codeOf(store.update(key('a'), {}, revision + 1));
      await codeOf(store.delete(key('b'), revision));
      counter.stands(await store.revision(), revision);
      expect((await store.get(key('a')))?.value).toEqual({ x: 1 });
    });

    test('names that are special in JavaScript are ordinary names', async () => {
      await using store = await open();
      for (const name of ['__proto__', 'constructor', 'toString']) await store.create(key(name), { name });
      expect((await store.get(key('__proto__')))?.value).toEqual({ name: '__proto__' });
      expect((await store.list({ resource: 'things' })).entries).toHaveLength(3);
    });

    test('nothing can be written when it is closed', async () => {
      const store = await open();
      await store[Symbol.asyncDispose]();
      expect(await codeOf(store.create(key('a'), {}))).toBe('closed');
    });
  });
}

function concurrentWrites(driver: string, open: NewStore, counter: Counter): void {
  describe(`${driver}: writes at the same time`, () => {
    test('are all stored, with increasing revisions', async () => {
      await using store = await open();
      const names = Array.from({ length: 40 }, (_, i) => `n${i}`);
      const entries = await Promise.all(names.map((name) => store.create(key(name), { name })));
      expect(new Set(entries.map(({ revision }) => revision)).size).toBe(names.length);
      counter.stands(await store.revision(), Math.max(...entries.map(({ revision }) => revision)));
      for (const { key: at, value, revision } of entries) {
        expect(await store.get(at)).toEqual({ key: at, value, revision });
      }
    });

    test('of one object at one revision: exactly one succeeds, the others get its entry', async () => {
      await using store = await open();
      const created = await Promise.allSettled([1, 2, 3, 4].map((x) => store.create(key('a'), { x })));
      const [winner] = created.filter((result) => result.status === 'fulfilled').map(({ value }) => value);
      expect(created.filter(({ status }) => status === 'rejected')).toHaveLength(3);
      const revision = winner?.revision ?? 0;
      const writes = [
        ...[5, 6, 7].map((x) => store.update(key('a'), { x }, revision)),
        store.delete(key('a'), revision),
      ];
      const results = await Promise.allSettled(writes);
      const won = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      expect(won).toHaveLength(1);
      for (const result of results) {
        if (result.status === 'fulfilled') continue;
        const { code, current } = result.reason as StoreError;
        expect(code === 'conflict' ? current?.revision : code).toBe(
          code === 'conflict' ? won[0]?.revision : 'missing',
        );
      }
      counter.stands(await store.revision(), won[0]?.revision ?? 0);
    });
  });
}

function lists(driver: string, open: NewStore, counter: Counter): void {
  describe(`${driver}: lists`, () => {
    async function filled(): Promise<Store> {
      const store = await open();
      for (const [namespace, name] of [
        ['b', 'x'],
        ['a', 'y'],
        ['a-b', 'z'],
        ['a', 'x'],
      ] as const) {
        await store.create(key(name, namespace), {});
      }
      return store;
    }

    const names = (entries: readonly { key: StoreKey }[]): string[] =>
      entries.map(({ key: { namespace, name } }) => `${namespace}/${name}`);

    test('are in the order of their keys, in one namespace or in all', async () => {
      await using store = await filled();
      const all = await store.list({ resource: 'things' });
      expect(names(all.entries)).toEqual(['a-b/z', 'a/x', 'a/y', 'b/x']);
      const some = await store.list({ resource: 'things', namespace: 'a' });
      expect(names(some.entries)).toEqual(['a/x', 'a/y']);
      expect(names((await store.list({ resource: 'others' })).entries)).toEqual([]);
    });

    test('have pages that show one revision', async () => {
      await using store = await filled();
      const first = await store.list({ resource: 'things' }, { limit: 2 });
      expect([names(first.entries), first.remaining]).toEqual([['a-b/z', 'a/x'], 2]);
      await store.create(key('xx', 'a'), {});
      const gone = await store.get(key('x', 'b'));
      await store.delete(key('x', 'b'), gone?.revision ?? 0);
      const page = { atRevision: first.revision, after: 'a/x', limit: 2 };
      const second = await store.list({ resource: 'things' }, page);
      expect([names(second.entries), second.remaining, second.revision]).toEqual([
        ['a/y', 'b/x'],
        0,
        first.revision,
      ]);
    });

    test('of a future revision fail', async () => {
      await using store = await filled();
      const atRevision = (await store.revision()) + counter.future;
      expect(await codeOf(store.list({ resource: 'things' }, { atRevision }))).toBe('future');
    });
  });
}

function compaction<Driver extends Store>(
  driver: string,
  open: NewStore<Driver>,
  compact: (store: Driver) => Promise<void>,
): void {
  describe(`${driver}: compaction`, () => {
    test('keeps the current revision, and no earlier one', async () => {
      await using store = await open();
      for (const name of ['a', 'b', 'c']) await store.create(key(name), {});
      const now = await store.revision();
      await compact(store);
      expect(await codeOf(store.list({ resource: 'things' }, { atRevision: now - 1 }))).toBe('compacted');
      expect((await store.list({ resource: 'things' }, { atRevision: now })).entries).toHaveLength(3);
    });
  });
}

function watches(driver: string, open: NewStore, counter: Counter): void {
  describe(`${driver}: watches`, () => {
    test('replay missed events and continue without a gap', async () => {
      await using store = await open();
      const a = await store.create(key('a'), { x: 1 });
      const b = await store.update(key('a'), { x: 2 }, a.revision);
      const seen: StoreEvent[] = [];
      const watch = await store.watch({ resource: 'things' }, a.revision, {
        event: (event) => seen.push(event),
        end: () => undefined,
      });
      await store.create(key('other', 'ns', 'others'), {});
      const { revision } = await store.delete(key('a'), b.revision);
      await eventually(() => expect(seen).toHaveLength(2));
      expect(seen.map(({ type, entry, previous }) => [type, entry.value, previous?.value])).toEqual([
        ['updated', { x: 2 }, { x: 1 }],
        ['deleted', { x: 2 }, { x: 2 }],
      ]);
      counter.stands(watch.revision, revision);
      watch.close();
      await store.create(key('b'), {});
      expect(seen).toHaveLength(2);
    });

    test('show one namespace or all', async () => {
      await using store = await open();
      const seen: string[] = [];
      const observer = {
        event: ({ entry }: StoreEvent) => void seen.push(entry.key.name),
        end: () => undefined,
      };
      await store.watch({ resource: 'things', namespace: 'a' }, await store.revision(), observer);
      await store.create(key('no', 'b'), {});
      await store.create(key('yes', 'a'), {});
      await eventually(() => expect(seen).toEqual(['yes']));
    });

    test('before the history fail', async () => {
      await using store = await open(4);
      const { revision } = await store.create(key('first'), {});
      const seen: StoreEvent[] = [];
      const observer = { event: (event: StoreEvent) => void seen.push(event), end: () => undefined };
      const watch = await store.watch({ resource: 'things' }, revision, observer);
      for (let i = 0; i < 20; i++) await store.create(key(`n${i}`), {});
      await eventually(() => expect(seen).toHaveLength(20));
      watch.close();
      expect(await codeOf(store.watch({ resource: 'things' }, revision, observer))).toBe('compacted');
      const now = await store.revision();
      expect(await codeOf(store.watch({ resource: 'things' }, now - 1, observer))).toBe('no error');
      expect(await codeOf(store.watch({ resource: 'things' }, now + counter.future, observer))).toBe(
        'future',
      );
    });

    test('end when the store closes, once', async () => {
      const store = await open();
      let ends = 0;
      await store.watch({ resource: 'things' }, await store.revision(), {
        event: () => undefined,
        end: () => void ends++,
      });
      await store[Symbol.asyncDispose]();
      expect(ends).toBe(1);
    });
  });
}

function notes(driver: string, open: NewStore, counter: Counter): void {
  describe(`${driver}: notes`, () => {
    test('have the last written values per table, and do not increase the revision', async () => {
      await using store = await open();
      const before = await store.revision();
      const seen = store.notes('seen');
      await seen.write(
        new Map([
          ['a', '1'],
          ['b', '1'],
        ]),
      );
      await seen.write(
        new Map([
          ['a', '2'],
          ['b', undefined],
          ['__proto__', '3'],
        ]),
      );
      await store.notes('other').write(new Map([['a', 'x']]));
      const expected = new Map([
        ['a', '2'],
        ['__proto__', '3'],
      ]);
      expect(await store.notes('seen').read()).toEqual(expected);
      expect(await store.notes('nothing').read()).toEqual(new Map());
      counter.stands(await store.revision(), before);
    });
  });
}

/** A random history of writes, then reads at every revision of it. */
function histories(driver: string, open: NewStore, runs: number): void {
  const operation = fc.record({
    name: fc.constantFrom('a', 'b', 'c'),
    namespace: fc.constantFrom('n', 'm'),
    deletes: fc.boolean(),
    value: fc.nat(9),
  });

  describe(`${driver}: any history`, () => {
    test('a list at a revision is the replay of all events up to it', async () => {
      await using store = await open();
      let run = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(operation, { maxLength: 30 }), async (operations) => {
          // A resource of its own for each run: what the others did must not show.
          const resource = `things${++run}`;
          const model = new Map<string, number>();
          const moments: { revision: number; state: string }[] = [];
          const seen: StoreEvent[] = [];
          const watch = await store.watch({ resource }, await store.revision(), {
            event: (event) => seen.push(event),
            end: () => undefined,
          });
          for (const { name, namespace, deletes, value } of operations) {
            const at = key(name, namespace, resource);
            const current = await store.get(at);
            const write = (): Promise<StoredEntry> => {
              if (!current) return store.create(at, { value });
              if (deletes) return store.delete(at, current.revision);
              return store.update(at, { value }, current.revision);
            };
            const { revision } = await write();
            const id = `${namespace}/${name}`;
            if (current && deletes) model.delete(id);
            else model.set(id, value);
            moments.push({
              revision,
              state: JSON.stringify([...model].toSorted(([a], [b]) => (a < b ? -1 : 1))),
            });
          }
          const revisions = moments.map(({ revision }) => revision);
          await eventually(() => expect(seen.map(({ revision }) => revision)).toEqual(revisions));
          for (const { revision, state } of moments) {
            const { entries } = await store.list({ resource }, { atRevision: revision });
            const listed = entries.map((entry) => [
              `${entry.key.namespace}/${entry.key.name}`,
              entry.value['value'],
            ]);
            expect(JSON.stringify(listed)).toBe(state);
            const ofOne = listed.filter(([id]) => typeof id === 'string' && id.startsWith('n/'));
            expect(await walk(store, { resource, namespace: 'n' }, revision)).toEqual(ofOne);
          }
          watch.close();
        }),
        { numRuns: runs },
      );
    });
  });
}

function projections(driver: string, open: NewStore): void {
  describe(`${driver}: projections`, () => {
    test('are complete when they begin, and show each write when it resolves', async () => {
      await using store = await open();
      await store.create(key('before'), {});
      await store.create(key('other', 'ns', 'others'), {});
      const shown = new Shown();
      const projected = store.project('things', shown);
      await projected.catchUp();
      expect(shown.names).toBe('before');
      for (let round = 1; round <= 20; round++) {
        const { revision } = await store.create(key('a'), { round });
        expect(shown.values.get('a')).toEqual({ round });
        const updated = await store.update(key('a'), { round: -round }, revision);
        expect(shown.values.get('a')).toEqual({ round: -round });
        await store.delete(key('a'), updated.revision);
        expect(shown.values.get('a')).toBeUndefined();
      }
      await store.create(key('more', 'ns', 'others'), {});
      expect([shown.names, shown.resets, projected.confirmed(), projected.unconfirmedMs]).toEqual([
        'before',
        1,
        undefined,
        0,
      ]);
      projected.close();
      await store.create(key('b'), {});
      expect(shown.names).toBe('before');
    });

    test('show the last of concurrent writes, and no write that failed', async () => {
      await using store = await open();
      const shown = new Shown();
      store.project('things', shown);
      const { revision } = await store.create(key('a'), { x: 0 });
      const outcomes = await Promise.allSettled(
        Array.from({ length: 8 }, (_, x) => store.update(key('a'), { x }, revision)),
      );
      const written = outcomes.findIndex(({ status }) => status === 'fulfilled');
      expect(shown.values.get('a')).toEqual({ x: written });
      expect((await store.get(key('a')))?.value).toEqual({ x: written });
    });
  });
}

class Shown implements Projection {
  readonly values = new Map<string, JsonObject>();
  resets = 0;

  get names(): string {
    return [...this.values.keys()].join(' ');
  }

  reset(entries: readonly StoredEntry[]): void {
    this.resets++;
    this.values.clear();
    for (const { key: at, value } of entries) this.values.set(at.name, value);
  }

  changed({ name }: StoreKey, entry: StoredEntry | undefined): void {
    if (entry) this.values.set(name, entry.value);
    else this.values.delete(name);
  }
}

/** A list at a revision, in pages of two. */
async function walk(store: Store, range: StoreRange, atRevision: number): Promise<unknown[]> {
  const listed: unknown[] = [];
  for (let after: string | undefined; ;) {
    const page = { atRevision, limit: 2, ...(after === undefined ? {} : { after }) };
    const { entries, remaining } = await store.list(range, page);
    listed.push(...entries.map((entry) => [orderedKey(entry.key), entry.value['value']]));
    const last = entries.at(-1);
    if (remaining === 0 || !last) return listed;
    after = orderedKey(last.key);
  }
}
