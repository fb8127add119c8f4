/** Properties of field sets, and of the fields of typed objects, for any input. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  FieldSet,
  compare,
  fieldsOf,
  fromFieldsV1,
  mergeApplied,
  removeFields,
  toFieldsV1,
} from '../../../src/apiserver/patch/field-set.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { SERVICE, decoded, service } from '../random-services.ts';

const path = fc.array(fc.constantFrom('f:a', 'f:b', 'k:{"name":"x"}', 'v:1'), { minLength: 1, maxLength: 4 });

const fieldSet = fc.array(path, { maxLength: 8 }).map((paths) => {
  const set = new FieldSet();
  for (const each of paths) set.insert(each);
  return set;
});

describe('field sets', () => {
  test('survive a round trip through managedFields', () => {
    fc.assert(
      fc.property(fieldSet, (set) => {
        expect(fromFieldsV1(toFieldsV1(set))?.equals(set)).toBe(true);
      }),
    );
  });

  test('are sets', () => {
    fc.assert(
      fc.property(fieldSet, fieldSet, fieldSet, (a, b, c) => {
        const same = (x: FieldSet, y: FieldSet): boolean => x.equals(y);
        expect(
          same(a.union(b), b.union(a)) &&
            same(a.intersection(b), b.intersection(a)) &&
            same(a.union(b).union(c), a.union(b.union(c))) &&
            same(a.difference(b).union(a.intersection(b)), a) &&
            same(a.difference(b).intersection(b), new FieldSet()) &&
            a.difference(a).isEmpty,
        ).toBe(true);
      }),
    );
  });
});

describe('typed fields', () => {
  test('of equal objects do not differ', () => {
    fc.assert(
      fc.property(service, (object) => {
        const { added, removed, modified } = compare(SERVICE, object, structuredClone(object));
        expect(added.isEmpty && removed.isEmpty && modified.isEmpty).toBe(true);
      }),
    );
  });

  test('that are applied exist, and applying again changes nothing', () => {
    fc.assert(
      fc.property(service, service, (live, config) => {
        const merged = mergeApplied(SERVICE, live, config);
        const { added, modified } = compare(SERVICE, merged, mergeApplied(SERVICE, merged, config));
        const missing = fieldsOf(SERVICE, config).difference(fieldsOf(SERVICE, merged));
        // An applied empty map has no effect on a map with members, and is not a member of the set.
        expect(missing.paths().filter((each) => each !== '.metadata.labels')).toEqual([]);
        expect([added.paths(), modified.paths()]).toEqual([[], []]);
      }),
    );
  });

  test('that an apply added are removed with it', () => {
    fc.assert(
      fc.property(service, service, (live, config) => {
        const base = decoded(live);
        const merged = mergeApplied(SERVICE, base, decoded(config)) as JsonObject; // an object merges to an object
        const { added } = compare(SERVICE, base, merged);
        const left = removeFields(SERVICE, merged, added, fieldsOf(SERVICE, base)) as JsonObject; // as above
        const rest = compare(SERVICE, base, decoded(left));
        expect(rest.added.isEmpty && rest.removed.isEmpty).toBe(true);
      }),
    );
  });
});
