/** Which synced objects name which other objects: the index compared with a model without an index. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ENDPOINTS, parseKey } from '../../../src/kube/object.ts';
import type { TranslatedReference } from '../../../src/syncer/patch/types.ts';
import {
  parseReferenceId,
  ReferenceIndex,
  type RecordedReferences,
} from '../../../src/syncer/references/reference-index.ts';

const SECRET = 'v1 Secret ns/x';
const key = fc.constantFrom('ns/a', 'ns/b', 'ns/c');
const id = fc.constantFrom(SECRET, 'v1 Secret ns/y', 'v1 ConfigMap ns/x');
const step = fc.record({
  key,
  named: fc.dictionary(id, fc.constantFrom('host/1', 'host/2'), { noNullPrototype: true }),
});

function reference(referenceId: string, written: string): TranslatedReference {
  const { kind: kindId, namespace, name } = parseReferenceId(referenceId);
  const [apiVersion = '', kind = ''] = kindId.split(' ');
  return { patchIndex: 0, path: '', apiVersion, kind, namespace, name, written: parseKey(written) };
}

function referencesTo(named: Readonly<Record<string, string>>): readonly TranslatedReference[] {
  return Object.entries(named).map(([one, written]) => reference(one, written));
}

function observed(index: ReferenceIndex): { recorded: RecordedReferences[]; completed: number } {
  const seen = { recorded: [] as RecordedReferences[], completed: 0 };
  index.observe({
    recorded: (record) => void seen.recorded.push(record),
    completed: () => void (seen.completed += 1),
  });
  return seen;
}

describe('the reference index', () => {
  test('returns the referenced objects of each copy and the copies that reference an object, and reports changes', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const index = new ReferenceIndex();
        const seen = observed(index);
        const model = new Map<string, Map<string, string>>();
        for (const { key: referrer, named } of steps) {
          const before = model.get(referrer) ?? new Map<string, string>();
          const now = new Map(Object.entries(named));
          index.recordReferences(referrer, referencesTo(named));
          const changed = seen.recorded.at(-1)?.changed ?? [];
          const all = new Set([...before.keys(), ...now.keys()]);
          expect([...changed].toSorted()).toEqual(
            [...all].filter((one) => before.get(one) !== now.get(one)).toSorted(),
          );
          model.set(referrer, now);
          for (const one of all) {
            const referrers = [...model].filter(([, names]) => names.has(one)).map(([name]) => name);
            expect([...index.referrersOf(one)].toSorted()).toEqual(referrers.toSorted());
            expect(index.isReferenced(one)).toBe(referrers.length > 0);
            expect(index.writtenBy(referrer, one)).toBe(now.get(one));
          }
        }
        const referenced = new Set([...model.values()].flatMap((names) => [...names.keys()]));
        expect(new Set(index.references())).toEqual(referenced);
      }),
    );
  });

  test('is complete once every object has been decided, reports that once, and lists those that failed', () => {
    const index = new ReferenceIndex();
    const seen = observed(index);
    expect(index.isComplete).toBe(false);
    index.begin(['ns/a', 'ns/b', 'ns/c']);
    index.recordReferences('ns/a', referencesTo({ [SECRET]: 'host/1' }));
    index.markReconciled('ns/a');
    index.markReconciled('ns/b');
    expect({ isComplete: index.isComplete, completed: seen.completed }).toEqual({
      isComplete: false,
      completed: 0,
    });
    index.markReconciled('ns/c');
    index.markReconciled('ns/c');
    expect({ isComplete: index.isComplete, completed: seen.completed }).toEqual({
      isComplete: true,
      completed: 1,
    });
    expect([...index.unknown]).toEqual(['ns/b', 'ns/c']);
    index.recordReferences('ns/b', []);
    expect(seen.recorded.at(-1)?.wasUnknown).toBe(true);
    expect([...index.unknown]).toEqual(['ns/c']);
  });

  test('keeps the references of a copy while its object fails', () => {
    const index = new ReferenceIndex();
    index.begin(['ns/a']);
    index.recordReferences('ns/a', referencesTo({ [SECRET]: 'host/1' }));
    index.markReconciled('ns/a');
    expect(index.isReferenced(SECRET)).toBe(true);
    expect([...index.unknown]).toEqual([]);
  });

  test('distinguishes objects of two kinds with the same key, and keeps stale entries until they are recorded again', () => {
    const index = new ReferenceIndex();
    const records = index.recordsOf(ENDPOINTS);
    index.markStale('endpointslices:ns/a');
    expect(records.isStale('ns/a')).toBe(false);
    index.markStale('endpoints:ns/a');
    expect(records.isStale('ns/a')).toBe(true);
    records.clearReferences('ns/a');
    expect(records.isStale('ns/a')).toBe(false);
  });
});
