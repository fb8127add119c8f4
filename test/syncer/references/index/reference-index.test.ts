/** Which Endpoints name which objects: the index against a model that looks everything up. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ReferenceIndex } from '../../../../src/syncer/references/index/reference-index.ts';

const key = fc.constantFrom('ns/a', 'ns/b', 'ns/c');
const id = fc.constantFrom('v1 Secret ns/x', 'v1 Secret ns/y', 'v1 ConfigMap ns/x');
const step = fc.record({
  key,
  named: fc.dictionary(id, fc.constantFrom('host/1', 'host/2'), { noNullPrototype: true }),
});

describe('the reference index', () => {
  test('knows forward and back what every Endpoints named last, and tells what changed', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const index = new ReferenceIndex();
        const model = new Map<string, Map<string, string>>();
        for (const { key: endpoints, named } of steps) {
          const before = model.get(endpoints) ?? new Map<string, string>();
          const now = new Map(Object.entries(named));
          const changed = index.set(endpoints, now);
          const all = new Set([...before.keys(), ...now.keys()]);
          expect([...changed].toSorted()).toEqual(
            [...all].filter((one) => before.get(one) !== now.get(one)).toSorted(),
          );
          model.set(endpoints, now);
          for (const one of all) {
            const namers = [...model].filter(([, names]) => names.has(one)).map(([name]) => name);
            expect([...index.namersOf(one)].toSorted()).toEqual(namers.toSorted());
            expect(index.isReferenced(one)).toBe(namers.length > 0);
            expect(index.writtenBy(endpoints, one)).toBe(now.get(one));
          }
        }
        const referenced = new Set([...model.values()].flatMap((names) => [...names.keys()]));
        expect(new Set(index.references())).toEqual(referenced);
      }),
    );
  });

  test('is complete once every Endpoints has been looked at, and remembers which of them it knows nothing of', () => {
    const index = new ReferenceIndex();
    expect(index.isComplete).toBe(false);
    index.begin(['ns/a', 'ns/b', 'ns/c']);
    index.set('ns/a', new Map([['v1 Secret ns/x', 'host/1']]));
    index.settle('ns/a');
    index.settle('ns/b');
    expect(index.isComplete).toBe(false);
    index.settle('ns/c');
    expect(index.isComplete).toBe(true);
    expect([...index.unknown]).toEqual(['ns/b', 'ns/c']);
    index.set('ns/b', new Map());
    expect([...index.unknown]).toEqual(['ns/c']);
  });

  test('keeps what an Endpoints named while it fails', () => {
    const index = new ReferenceIndex();
    index.begin(['ns/a']);
    index.set('ns/a', new Map([['v1 Secret ns/x', 'host/1']]));
    index.settle('ns/a');
    expect(index.isReferenced('v1 Secret ns/x')).toBe(true);
    expect([...index.unknown]).toEqual([]);
  });
});
