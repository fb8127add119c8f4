/** Matching and replacing values by path, compared with jsonpath-plus. */

import fc from 'fast-check';
import { JSONPath } from 'jsonpath-plus';
import { describe, expect, test } from 'vitest';
import { cloneJson, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import { parsePath, printPath } from '../../../src/syncer/patch/path-syntax.ts';
import type { ConcretePath } from '../../../src/syncer/translate/types.ts';
import { isProtected } from '../../../src/syncer/patch/protect.ts';
import { change, locate, overlay, replace, valuesOf, type Path } from '../../../src/syncer/patch/walk.ts';

function pathOf(text: string): Path {
  const parsed = parsePath(text);
  if (!parsed.ok) throw new Error(parsed.problem.message);
  return { segments: parsed.segments, isProtected };
}

function matchesOf(text: string, root: JsonValue): [string, JsonValue | undefined][] {
  const places = locate(pathOf(text), root).map(printPath);
  return valuesOf(pathOf(text), root).map((value, at) => [places[at] ?? '', value]);
}

/** Puts `map(value)` in the place of every match. */
function mapped(text: string, root: JsonValue, map: (value: JsonValue) => JsonValue | undefined): unknown {
  const path = pathOf(text);
  return replace(
    path,
    root,
    valuesOf(path, root).map((value) => map(value ?? null)),
  );
}

/** Like JSON.parse of any API server's answer: `__proto__` is an own key. */
function json(text: string): JsonObject {
  return JSON.parse(text) as JsonObject;
}

const ENDPOINTS = {
  metadata: { name: 'web', namespace: 'default', annotations: { a: '1', 'example.com/key': '2' } },
  subsets: [
    { addresses: [{ ip: '10.0.0.1', hostname: 'h' }, { ip: '10.0.0.2' }], ports: [{ port: 80 }] },
    { addresses: [{ ip: '10.0.0.3', hostname: 'i' }] },
  ],
};

describe('matching', () => {
  test.each<[string, [string, JsonValue][]]>([
    [
      'subsets[*].addresses[*].hostname',
      [
        ['subsets.0.addresses.0.hostname', 'h'],
        ['subsets.1.addresses.0.hostname', 'i'],
      ],
    ],
    [
      'metadata.annotations[*]',
      [
        ['metadata.annotations.a', '1'],
        ['metadata.annotations."example.com/key"', '2'],
      ],
    ],
    ['subsets[7]', []],
    ['subsets.addresses', []],
    ['subsets["0"]', []],
    ['metadata[0]', []],
    ['metadata.name[0]', []],
    ['metadata.name.length', []],
    ['subsets.length', []],
    ['toString', []],
    ['metadata.hasOwnProperty', []],
    ['subsets.0.addresses.0.ip.x', []],
  ])('%s', (path, expected) => {
    expect(matchesOf(path, ENDPOINTS)).toEqual(expected);
  });

  test('a plain number is also a key of an object; only own properties match', () => {
    expect(matchesOf('a.0', { a: { '0': 'x' } })).toEqual([['a.0', 'x']]);
    expect(matchesOf('a[0]', { a: { '0': 'x' } })).toEqual([]);
    expect(matchesOf('a.toString', { a: { toString: 'x' } })).toEqual([['a.toString', 'x']]);
  });

  test('the whole object', () => {
    expect(matchesOf('', { a: 1 })).toEqual([['', { a: 1 }]]);
  });

  test('wildcards never match identity and bookkeeping', () => {
    const object = {
      kind: 'Endpoints',
      metadata: {
        name: 'n',
        namespace: 's',
        uid: 'u',
        annotations: { 'vcluster.loft.sh/object-name': 'n', 'endpoint-syncer/last-synced': '{}', own: 'x' },
        labels: { 'vcluster.loft.sh/managed-by': 'v', 'vcluster.loft.sh/namespace': 's', own: 'y' },
      },
    };
    expect(matchesOf('metadata.annotations.*', object)).toEqual([['metadata.annotations.own', 'x']]);
    expect(matchesOf('metadata.labels[*]', object)).toEqual([['metadata.labels.own', 'y']]);
    expect(matchesOf('*.*.*', object).map(([path]) => path)).toEqual([
      'metadata.annotations.own',
      'metadata.labels.own',
    ]);
    expect(matchesOf('metadata.*', object).map(([path]) => path)).toEqual([
      'metadata.annotations',
      'metadata.labels',
    ]);
    expect(matchesOf('*', object).map(([path]) => path)).toEqual(['kind', 'metadata']);
  });

  test('wildcards skip keys that cannot be segments', () => {
    const object = json('{"a":{"__proto__":"p","constructor":"c","b":"x"}}');
    const found = [
      ['a.constructor', 'c'],
      ['a.b', 'x'],
    ];
    expect(matchesOf('a.*', object)).toEqual(found);
    expect(mapped('a.*', object, () => 'y')).toEqual(
      json('{"a":{"__proto__":"p","constructor":"y","b":"y"}}'),
    );
  });
});

describe('replacing', () => {
  test('copies only the ancestors of a change, and nothing without a change', () => {
    const before = cloneJson(ENDPOINTS);
    const after = mapped('subsets[1].addresses[*].ip', ENDPOINTS, () => '1.1.1.1') as typeof ENDPOINTS;
    expect(after.subsets[1]?.addresses[0]?.ip).toBe('1.1.1.1');
    expect(after.metadata).toBe(ENDPOINTS.metadata);
    expect(after.subsets[0]).toBe(ENDPOINTS.subsets[0]);
    expect(ENDPOINTS).toEqual(before);
    expect(mapped('subsets[*].addresses[*].ip', ENDPOINTS, (value) => value)).toBe(ENDPOINTS);
  });

  test('own __proto__ members are data', () => {
    const object = json('{"a":{"__proto__":{"polluted":1},"b":"x"},"__proto__":{"c":1}}');
    expect(JSON.stringify(mapped('a.b', object, () => 'y'))).toBe(
      '{"a":{"__proto__":{"polluted":1},"b":"y"},"__proto__":{"c":1}}',
    );
    expect(JSON.stringify(mapped('a.b', object, () => undefined))).toBe(
      '{"a":{"__proto__":{"polluted":1}},"__proto__":{"c":1}}',
    );
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

describe('overlaying the other side', () => {
  const overlaid = (path: string, own: JsonValue, other?: JsonValue): unknown =>
    overlay(pathOf(path), own, other);

  test.each<[string, JsonValue, JsonValue | undefined, JsonValue]>([
    ['a.b', { a: { b: 1, c: 2 } }, undefined, { a: { c: 2 } }],
    ['a.b', { a: { b: 1 } }, { a: { b: 9 } }, { a: { b: 9 } }],
    ['a.b', { a: {} }, { a: { b: 9 } }, { a: { b: 9 } }],
    ['a.b', {}, { a: { b: 9 } }, {}],
    ['a.*', { a: { b: 1, c: 2 } }, { a: { c: 3, d: 4 } }, { a: { c: 3, d: 4 } }],
    [
      'l[*].x',
      { l: [{ x: 1 }, { x: 2 }, {}] },
      { l: [{ x: 7 }, {}, { x: 9 }] },
      { l: [{ x: 7 }, {}, { x: 9 }] },
    ],
    ['l[*]', { l: [1, 2] }, { l: [3] }, { l: [3] }],
    ['l[*]', { l: [1, 2] }, undefined, { l: [] }],
    ['l[0]', { l: [1, 2] }, undefined, { l: [2] }],
    ['l[2]', { l: [1, 2] }, { l: [7, 8, 9] }, { l: [1, 2, 9] }],
    ['l[5]', { l: [1, 2] }, { l: [0, 0, 0, 0, 0, 5] }, { l: [1, 2] }],
    ['a', { a: 1 }, 'text', {}],
    ['a.b', { a: { b: 1 } }, { a: null }, { a: {} }],
    ['a.b', { a: { b: 1 } }, { a: { b: null } }, { a: { b: null } }],
  ])('%s of %j by %j', (path, own, other, expected) => {
    expect(overlaid(path, own, other)).toEqual(expected);
  });
});

describe('against jsonpath-plus', () => {
  const name = fc.constantFrom('a', 'b', 'c.d', 'e f', 'g/h');
  const leaf = fc.oneof(fc.constant(null), fc.boolean(), fc.integer(), fc.constantFrom('', 'text'));
  const tree: fc.Arbitrary<JsonValue> = fc.letrec<{ node: JsonValue }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      leaf,
      fc.array(tie('node'), { maxLength: 4 }),
      fc.dictionary(name, tie('node'), { maxKeys: 4 }),
    ),
  })).node;
  const step = fc.oneof(name, fc.nat(3), fc.constant(null));

  test('has the same matches in the same order, and replaces exactly these', () => {
    fc.assert(
      fc.property(tree, fc.array(step, { minLength: 1, maxLength: 4 }), (root, steps) => {
        const text = steps
          .map((one) =>
            one === null ? '[*]' : typeof one === 'number' ? `[${one}]` : `[${JSON.stringify(one)}]`,
          )
          .join('');
        const places = oracle(root, steps);
        expect(matchesOf(text, root).map(([path]) => path)).toEqual(places.map(printPath));
        expect(locate(pathOf(text), root)).toEqual(places);
        const expected = cloneJson(root);
        for (const place of places) setAt(expected, place, 'new');
        expect(mapped(text, root, () => 'new')).toEqual(expected);
        const emptied = cloneJson(root);
        for (const place of places.toReversed()) deleteAt(emptied, place);
        expect(mapped(text, root, () => undefined)).toEqual(emptied);
        // In one walk, with and without the places of the matches.
        const before = cloneJson(root);
        const path = { segments: pathOf(text).segments };
        for (const hasPlaces of [true, false]) {
          const seen: [ConcretePath, JsonValue | undefined][] = [];
          const use = (result: string | undefined) => (value: JsonValue | undefined, place: ConcretePath) => {
            seen.push([hasPlaces ? place.slice() : [], value]);
            return result;
          };
          expect(change(path, root, use('new'), hasPlaces)).toEqual(expected);
          const values = valuesOf(path, root);
          expect(seen).toEqual(places.map((place, at) => [hasPlaces ? place : [], values[at]]));
          expect(change(path, root, use(undefined), hasPlaces)).toEqual(emptied);
        }
        expect(root).toEqual(before);
      }),
      { numRuns: 1500 },
    );
  });

  function oracle(root: JsonValue, steps: readonly (string | number | null)[]): ConcretePath[] {
    if (typeof root !== 'object' || root === null) return [];
    const found: unknown = JSONPath({
      path: ['$', ...steps.map((one) => (one === null ? '*' : String(one)))],
      json: root,
      resultType: 'path',
      eval: false,
      wrap: true,
    });
    if (!Array.isArray(found)) return [];
    return found
      .map((path) => JSONPath.toPathArray(String(path)).slice(1))
      .map((keys) => concrete(root, keys))
      .filter((path) => path !== undefined);
  }

  /** jsonpath-plus writes indices as text; ours are numbers, and only in arrays. */
  function concrete(root: JsonValue, keys: readonly string[]): ConcretePath | undefined {
    let node: JsonValue | undefined = root;
    const path: (string | number)[] = [];
    for (const key of keys) {
      if (typeof node === 'string') return undefined; // it looks into strings, a patch never does
      const isArray = Array.isArray(node);
      path.push(isArray ? Number(key) : key);
      node = isArray ? (node as JsonValue[])[Number(key)] : (node as JsonObject)[key];
    }
    return path;
  }

  function parentOf(root: JsonValue, path: ConcretePath): Record<string | number, JsonValue> {
    let node: unknown = root;
    for (const step of path.slice(0, -1)) node = (node as Record<string | number, unknown>)[step];
    return node as Record<string | number, JsonValue>;
  }

  function setAt(root: JsonValue, path: ConcretePath, value: JsonValue): void {
    parentOf(root, path)[path.at(-1) ?? ''] = value;
  }

  function deleteAt(root: JsonValue, path: ConcretePath): void {
    const parent = parentOf(root, path);
    const last = path.at(-1) ?? '';
    if (Array.isArray(parent)) parent.splice(Number(last), 1);
    else delete parent[last];
  }
});
