/** Which synced objects name which other objects: the index compared with a model without an index. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ENDPOINT_SLICES, ENDPOINTS, parseKey, type Resource } from '../../../src/kube/object.ts';
import type { TranslatedReference } from '../../../src/syncer/patch/types.ts';
import { parseReferenceId, ReferenceIndex } from '../../../src/syncer/references/reference-index.ts';

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

/** Of Endpoints and EndpointSlices of these keys. */
function indexOf(...keys: readonly string[]) {
  const enqueued: string[] = [];
  const kindOf = (resource: Resource, known: readonly string[]) => {
    const objectOf = (one: string) => ({ metadata: { ...parseKey(one) } });
    return {
      kind: { resource },
      virtual: {
        get: (one: string) => (known.includes(one) ? objectOf(one) : undefined),
        list: () => known.map(objectOf),
      },
      host: { get: (one: string) => (one.startsWith('host/') ? objectOf(one) : undefined) },
      enqueue: (one: string) => void enqueued.push(`${resource.plural}:${one}`),
    };
  };
  const kinds = [kindOf(ENDPOINTS, keys), kindOf(ENDPOINT_SLICES, [])];
  const toHost = ({ name }: { readonly name: string }) => ({ namespace: 'host', name });
  return { index: new ReferenceIndex(kinds, { toHost }), enqueued };
}

describe('the reference index', () => {
  test('returns the referenced objects of each copy and the copies that reference an object, and reports changes', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const { index } = indexOf();
        const model = new Map<string, Map<string, string>>();
        for (const { key: referrer, named } of steps) {
          const before = model.get(referrer) ?? new Map<string, string>();
          const now = new Map(Object.entries(named));
          const { changed } = index.record(referrer, referencesTo(named));
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

  test('is complete once every object has been decided, and lists those that failed', () => {
    const { index } = indexOf('ns/a', 'ns/b', 'ns/c');
    const [a, b, c] = ['endpoints:ns/a', 'endpoints:ns/b', 'endpoints:ns/c'] as const;
    expect(index.isComplete).toBe(false);
    index.begin();
    expect(index.record(a, referencesTo({ [SECRET]: 'host/1' })).wasUnknown).toBe(false);
    index.markReconciled(a);
    index.markReconciled(b);
    expect(index.isComplete).toBe(false);
    index.markReconciled(c);
    index.markReconciled(c);
    expect(index.isComplete).toBe(true);
    expect([...index.unknown]).toEqual([b, c]);
    expect(index.record(b, []).wasUnknown).toBe(true);
    expect([...index.unknown]).toEqual([c]);
  });

  test('keeps the references of a copy while its object fails', () => {
    const { index } = indexOf('ns/a');
    index.begin();
    index.record('endpoints:ns/a', referencesTo({ [SECRET]: 'host/1' }));
    index.markReconciled('endpoints:ns/a');
    expect(index.isReferenced(SECRET)).toBe(true);
    expect([...index.unknown]).toEqual([]);
  });

  test('distinguishes objects of two kinds with the same key, and keeps stale entries until they are recorded again', () => {
    const { index, enqueued } = indexOf();
    index.decideAgain('endpointslices:ns/a');
    expect(index.isStale('endpoints:ns/a')).toBe(false);
    index.decideAgain('endpoints:ns/a');
    expect(index.isStale('endpoints:ns/a')).toBe(true);
    expect(enqueued).toEqual(['endpointslices:ns/a', 'endpoints:ns/a']);
    index.record('endpoints:ns/a', []);
    expect(index.isStale('endpoints:ns/a')).toBe(false);
  });

  test('knows the objects that have references, and what is at the place of their copies', () => {
    const { index } = indexOf('ns/a');
    expect(index.referrer('endpoints:ns/a')).toEqual({
      object: { metadata: { namespace: 'ns', name: 'a' } },
      resource: ENDPOINTS,
    });
    expect([index.referrer('endpointslices:ns/a'), index.referrer('endpoints:ns/b')]).toEqual([
      undefined,
      undefined,
    ]);
    expect(index.hostCopy('endpoints:ns/a')?.metadata).toEqual({ namespace: 'host', name: 'a' });
  });
});
