/** Pages of entries, now and at an earlier revision, compared with sorting all of them. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { orderedKey } from '../../../src/kube/object.ts';
import { OrderedEntries } from '../../../src/apiserver/storage/ordered-entries.ts';
import type { StoredEntry } from '../../../src/apiserver/storage/store.ts';

// Characters before and after `/`: a namespace is one range of keys although other namespaces begin with its name.
const names = fc.constantFrom('a', 'a-', 'a0', '');
const keys = fc.record({ namespace: names, name: names });

function entryOf(key: { namespace: string; name: string }, revision: number): StoredEntry {
  return { key: { resource: 'things', ...key }, value: {}, revision };
}

const edits = fc.array(fc.record({ key: keys, isDeleted: fc.boolean(), lists: fc.boolean() }), {
  minLength: 5,
  maxLength: 25,
});

test('a page is a part of the sorted entries of its range, at any revision', () => {
  fc.assert(
    fc.property(
      edits,
      fc.option(names, { nil: undefined }),
      fc.option(keys, { nil: undefined }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 0, max: 25 }),
      (all, namespace, afterKey, limit, moment) => {
        const range = namespace === undefined ? { resource: 'things' } : { resource: 'things', namespace };
        const after = afterKey && orderedKey(afterKey);
        const entries = new OrderedEntries();
        const model = new Map<string, StoredEntry>();
        const others = new Map<string, StoredEntry | undefined>();
        let past = new Map<string, StoredEntry>();
        for (const [at, { key, isDeleted, lists }] of all.entries()) {
          const id = orderedKey(key);
          if (at === moment) past = new Map(model);
          if (at >= moment && !others.has(id)) others.set(id, model.get(id));
          // The first list sorts the entries; later edits keep their order.
          if (lists) entries.page(range, undefined, 1);
          if (isDeleted) entries.delete(id);
          else entries.set(id, entryOf(key, at + 1));
          if (isDeleted) model.delete(id);
          else model.set(id, entryOf(key, at + 1));
        }
        if (moment >= all.length) past = model;
        const page = (of: ReadonlyMap<string, StoredEntry>): [StoredEntry[], number] => {
          const found = [...of]
            .filter(([id]) => after === undefined || id > after)
            .filter(([, { key }]) => namespace === undefined || key.namespace === namespace)
            .toSorted(([a], [b]) => (a < b ? -1 : 1))
            .map(([, entry]) => entry);
          return [found.slice(0, limit), Math.max(0, found.length - limit)];
        };
        expect(entries.page(range, after, limit)).toEqual(page(model));
        expect(entries.page(range, after, limit, others)).toEqual(page(past));
        expect(entries.size).toBe(model.size);
      },
    ),
    { numRuns: 1000 },
  );
});
