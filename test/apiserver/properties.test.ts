/** Properties for any input: field sets, patches, parsers. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  emptySet,
  FieldSetBuilder,
  fromFieldsV1,
  toFieldsV1,
  type FieldSet,
  compare,
  fieldsOf,
  mergeApplied,
  removeFields,
} from '../../src/apiserver/patch/field-set.ts';
import { builtInTypes } from '../../src/embedded-cluster/kinds/built-in-kinds.ts';
import { strategicMerge } from '../../src/apiserver/patch/strategic-merge.ts';
import { decodeObject } from '../../src/apiserver/schema/decode.ts';
import { duplicateFields } from '../../src/apiserver/schema/json-text.ts';
import { parseFieldSelector } from '../../src/apiserver/objects/query-options.ts';
import { parseLabelSelector } from '../../src/kube/label-selector.ts';
import { decodeContinue, encodeContinue } from '../../src/apiserver/objects/list-objects.ts';
import { jsonEquals, mergePatch, type JsonObject, type JsonValue } from '../../src/base/json.ts';

const types = builtInTypes();
const SERVICE = types.get('Service');
const ENDPOINTS = types.get('Endpoints');

const path = fc.array(fc.constantFrom('f:a', 'f:b', 'k:{"name":"x"}', 'v:1'), { minLength: 1, maxLength: 4 });
const fieldSet = fc.array(path, { maxLength: 8 }).map((paths) => {
  const builder = new FieldSetBuilder();
  for (const each of paths) builder.insert(each);
  return builder.build();
});

const label = fc.constantFrom('a', 'b', 'c');
const labels = fc.dictionary(label, fc.constantFrom('1', '2'), { maxKeys: 3 });
const port = fc.record(
  {
    port: fc.constantFrom(80, 81, 82),
    name: fc.constantFrom('x', 'y'),
    protocol: fc.constantFrom('TCP', 'UDP'),
  },
  { requiredKeys: ['port', 'protocol'] },
);
const service = fc
  .record({
    labels,
    selector: labels,
    ports: fc.uniqueArray(port, { maxLength: 3, selector: ({ port: n, protocol }) => `${n}${protocol}` }),
  })
  .map(({ labels: metadataLabels, selector, ports }): JsonObject => ({
    metadata: { name: 's', labels: metadataLabels },
    spec: { selector, ports },
  }));

function decoded(object: JsonObject): JsonObject {
  return decodeObject(SERVICE, object).value;
}

/** `fine`, or what kind of error it was. */
function outcome(run: () => unknown): string {
  try {
    run();
    return 'fine';
  } catch (error) {
    return error instanceof Error ? error.name : 'no error';
  }
}

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
            same(a.difference(b).intersection(b), emptySet()) &&
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

describe('patches', () => {
  test('strategic merge of fields without a merge strategy is a merge patch', () => {
    fc.assert(
      fc.property(labels, fc.dictionary(label, fc.option(fc.constantFrom('1', '2'))), (before, change) => {
        const target = { metadata: { labels: before } };
        const patch = { metadata: { labels: change } };
        expect(jsonEquals(strategicMerge(SERVICE, target, patch), mergePatch(target, patch))).toBe(true);
      }),
    );
  });

  test('strategic merge keeps one item per merge key, in the order of the patch', () => {
    const items = fc.uniqueArray(port, { maxLength: 4, selector: (item) => item.port });
    fc.assert(
      fc.property(items, items, (before, change) => {
        const result = strategicMerge(SERVICE, { spec: { ports: before } }, { spec: { ports: change } });
        const { ports } = result['spec'] as { ports: { port: number }[] }; // the patch has ports
        const numbers = ports.map((item) => item.port);
        const asked: number[] = change.map((item) => item.port);
        expect(
          new Set(numbers).size === numbers.length &&
            numbers.length === new Set([...before, ...change].map((item) => item.port)).size &&
            jsonEquals(
              numbers.filter((number) => asked.includes(number)),
              asked,
            ),
        ).toBe(true);
      }),
    );
  });

  test('never reach a prototype', () => {
    const evil = JSON.parse(
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
    ) as JsonObject; // our own text
    mergePatch({}, evil);
    strategicMerge(SERVICE, {}, evil);
    mergeApplied(SERVICE, {}, evil);
    expect(Object.prototype).not.toHaveProperty('polluted');
    expect(Object.keys(mergePatch({}, evil))).toEqual(['__proto__', 'constructor']);
  });
});

describe('decoding', () => {
  const anything = fc.jsonValue({ maxDepth: 4 }).map((value) => value as JsonValue);

  test('returns an object or throws an error, for any input', () => {
    fc.assert(
      fc.property(fc.record({ metadata: anything, subsets: anything }), (input) => {
        expect(outcome(() => decodeObject(ENDPOINTS, input))).toMatch(/^(fine|DecodeError)$/);
      }),
    );
  });

  test('decodes its own result to itself', () => {
    fc.assert(
      fc.property(service, (object) => {
        const once = decoded(object);
        expect(JSON.stringify(decoded(once))).toBe(JSON.stringify(once));
      }),
    );
  });

  test('reports exactly the duplicate keys', () => {
    fc.assert(fc.property(fc.json({ maxDepth: 4 }), (text) => duplicateFields(text).length === 0));
    expect(duplicateFields('{"a":1, "b":{"c":[{"d":1,"d":2}]}, "a":{}}')).toEqual(['b.c[0].d', 'a']);
    expect(duplicateFields('{"a\\"b":1,"a\\"b":2,"\\u0061":1,"a":2}')).toEqual(['a"b', 'a']);
  });
});

describe('queries', () => {
  test('selectors are parsed or rejected, for any input', () => {
    const text = fc.oneof(
      fc.string(),
      fc
        .array(fc.constantFrom('a', '=', '==', '!=', '!', 'in', 'notin', '(', ')', ',', ' ', '>', '1'))
        .map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(text, (selector) => {
        expect([
          outcome(() => parseLabelSelector(selector)({ a: '1' })),
          outcome(() => parseFieldSelector(selector, ['a'])),
        ]).toEqual([
          expect.stringMatching(/^(fine|SelectorError)$/),
          expect.stringMatching(/^(fine|StatusError)$/),
        ]);
      }),
    );
  });

  test.each([
    ['a=1', true],
    ['a==1,b!=2', true],
    ['a!=1', false],
    ['a in (1,2)', true],
    ['a notin (1,2)', false],
    ['c notin (1)', true],
    ['a', true],
    ['!a', false],
    ['!c', true],
    ['c', false],
    ['a>0', true],
    ['a<1', false],
    ['n>9', true],
    ['', true],
  ])('the label selector %s', (selector, isMatching) => {
    expect(parseLabelSelector(selector)({ a: '1', n: '10' })).toBe(isMatching);
  });

  test('continue tokens survive a round trip', () => {
    fc.assert(
      fc.property(fc.nat(), fc.string(), (revision, after) => {
        expect(decodeContinue(encodeContinue({ revision, after }))).toEqual({ revision, after });
      }),
    );
  });
});
