/** Translation of the Pod references in Endpoints, in both directions. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cloneJson, type JsonObject, type JsonValue, valueAt } from '../../../src/base/json.ts';
import { isCopiedByKind } from '../../../src/syncer/kinds/synced-kinds.ts';
import { createNameTranslator } from '../../../src/syncer/translate/names.ts';
import { LEGACY, mappings, translators } from '../translate/setup.ts';
import { subsetsToHost, subsetsToVirtual } from './setup.ts';

const { names } = translators();

function addressed(...refs: JsonValue[]): JsonValue {
  return [{ addresses: refs.map((targetRef) => ({ ip: '1.1.1.1', targetRef })) }];
}

function refsOf(subsets: JsonValue): JsonValue[] {
  const addresses = valueAt(subsets, [0, 'addresses']) as JsonObject[];
  return addresses.map((address) => address['targetRef'] ?? null);
}

describe('Pod references to the host', () => {
  test('without a namespace mean the Endpoints’ own', () => {
    expect(refsOf(subsetsToHost(addressed({ kind: 'Pod', name: 'a' }), 'shop', names))).toEqual([
      { kind: 'Pod', name: 'a-x-shop-x-suffix', namespace: 'test' },
    ]);
  });

  const node = { kind: 'Node', name: 'a', uid: 'u' };
  const pods = [
    { kind: 'Pod', name: 'a', namespace: 'b', uid: 'u', resourceVersion: '1', other: 1 },
    { kind: 'Pod', name: 'a' },
  ];
  const [unmapped, withoutPods] = [
    translators(mappings({ a: 'h' }, true)).names,
    createNameTranslator({
      vcluster: 'vc',
      hostNamespace: 'host',
      mode: { kind: 'single' },
      referenceNaming: 'short',
      isCopiedByKind,
      arePodsCopied: false,
    }),
  ];

  test.each([
    ['of a namespace that is not mapped', unmapped],
    ['of a virtual cluster whose Pods no syncer copies', withoutPods],
  ])('%s are left out, their addresses are not, and nothing of that flows back', (_, translator) => {
    const virtual = [...pods, node].map((targetRef, at) => ({ ip: `1.1.1.${at}`, targetRef }));
    const host = subsetsToHost([{ addresses: virtual }], 'shop', translator);
    expect(host).toEqual([
      { addresses: [{ ip: '1.1.1.0' }, { ip: '1.1.1.1' }, { ip: '1.1.1.2', targetRef: node }] },
    ]);
    const back = subsetsToVirtual(host, 'shop', translator, [{ addresses: virtual }]);
    expect(back).toEqual([{ addresses: virtual }]);
  });

  test('unchanged parts are shared with the input', () => {
    const subsets = [
      { addresses: [{ ip: '1.1.1.1', targetRef: { kind: 'Node', name: 'n' } }] },
      { ports: [] },
    ];
    expect(subsetsToHost(subsets, 'shop', names)).toBe(subsets);
  });
});

describe('Pod references to the virtual side', () => {
  test('become the reference of the virtual object that translates to them, with its uid', () => {
    const virtual = addressed(
      { kind: 'Pod', name: 'p'.repeat(70), uid: 'u' },
      { kind: 'Pod', name: 'a', uid: 'v' },
    );
    const host = subsetsToHost(virtual, 'shop', names);
    expect(subsetsToVirtual(host, 'shop', names, virtual)).toEqual(virtual);
  });

  test('otherwise follow the naming rule, if it has one result, or one in the namespace of the Endpoints', () => {
    const ref = (name: string): JsonValue => ({ kind: 'Pod', name, namespace: 'test' });
    const host = addressed(
      ref('a-x-shop-x-suffix'),
      ref('a-x-b-x-shop-x-suffix'),
      ref('a-x-b-x-c-x-suffix'),
      ref('own'),
    );
    expect(refsOf(subsetsToVirtual(host, 'shop', names))).toEqual([
      { kind: 'Pod', name: 'a', namespace: 'shop' },
      { kind: 'Pod', name: 'a-x-b', namespace: 'shop' },
      null,
      null,
    ]);
  });

  test('are those of the virtual object, or are left out: never the name of a Pod of the host', () => {
    const name = fc.constantFrom(
      'a',
      'a-x-b',
      'own',
      'a-x-shop-x-suffix',
      'a-x-shop-x-other',
      'p'.repeat(70),
    );
    const namespace = fc.constantFrom('shop', 'b', 'h-1', 'a-1', 'test');
    const modes = [names, translators(LEGACY).names, translators(mappings({ 'a-*': 'h-*' }, true)).names];
    fc.assert(
      fc.property(fc.constantFrom(...modes), name, namespace, (translator, pod, of) => {
        const ref = { kind: 'Pod', name: pod, namespace: of };
        const host = subsetsToHost(addressed(ref), of, translator);
        expect(subsetsToVirtual(host, of, translator, addressed(ref))).toEqual(addressed(ref));
        const [back] = refsOf(subsetsToVirtual(addressed(ref), 'shop', translator));
        const there =
          back === null ? addressed(ref) : subsetsToHost(addressed(back ?? null), 'shop', translator);
        expect(there).toEqual(addressed(ref));
      }),
    );
  });

  test('mapped namespaces are reversed, hashed ones only with the virtual object', () => {
    const mapped = translators(mappings({ 'a-*': 'h-*' })).names;
    const virtual = addressed({ kind: 'Pod', name: 'p', namespace: 'a-1' });
    expect(subsetsToVirtual(subsetsToHost(virtual, 'a-1', mapped), 'a-1', mapped)).toEqual(virtual);
    const legacy = translators(LEGACY).names;
    const host = subsetsToHost(virtual, 'a-1', legacy);
    expect(refsOf(subsetsToVirtual(host, 'a-1', legacy))).toEqual([null]);
    expect(subsetsToVirtual(host, 'a-1', legacy, virtual)).toEqual(virtual);
  });
});

describe('any JSON', () => {
  const member = fc.oneof(
    fc.constantFrom<JsonValue[]>(null, 'Pod', 'Node', 1, true, [], {}, ''),
    fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<JsonValue>,
  );
  const ref = fc.record(
    {
      kind: fc.constantFrom<JsonValue[]>('Pod', 'Node', null, 3),
      name: member,
      namespace: member,
      uid: member,
    },
    { requiredKeys: [] },
  );
  const address = fc.oneof(
    member,
    fc.record({ ip: member, targetRef: fc.oneof(ref, member) }, { requiredKeys: [] }),
  );
  const list = fc.oneof(fc.array(address, { maxLength: 3 }), member);
  const subset = fc.oneof(
    member,
    fc.record({ addresses: list, notReadyAddresses: list, x: member }, { requiredKeys: [] }),
  );
  const subsets = fc.oneof(fc.array(subset, { maxLength: 3 }), member) as fc.Arbitrary<JsonValue>;

  test('does not throw, is never changed in place, and keeps everything but Pod references', () => {
    fc.assert(
      fc.property(subsets, (value) => {
        const before = cloneJson(value);
        const host = subsetsToHost(value, 'shop', names);
        subsetsToVirtual(value, 'shop', names, host);
        expect(value).toEqual(before);
        const text = JSON.stringify(value);
        expect(text.includes('"Pod"') || JSON.stringify(host) === text).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('own __proto__ members are data', () => {
    const hostile = JSON.parse(
      '[{"__proto__":{"x":1},"addresses":[{"targetRef":{"kind":"Pod","name":"a","__proto__":{"y":1}}}]}]',
    ) as JsonValue;
    const host = subsetsToHost(hostile, 'shop', names);
    expect(JSON.stringify(host)).toContain('"__proto__":{"x":1}');
    expect(JSON.stringify(host)).toContain('"__proto__":{"y":1}');
  });
});
