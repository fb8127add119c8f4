/** Ownership of host objects, and the virtual names of copies. */

import { describe, expect, test } from 'vitest';
import { ENDPOINTS, type KubeObject, type StringMap } from '../../../src/kube/object.ts';
import {
  LAST_SYNCED,
  namedVirtual,
  OBJECT_HOST_NAME,
  OBJECT_HOST_NAMESPACE,
  OBJECT_KIND,
  OBJECT_NAME,
  OBJECT_NAMESPACE,
  OBJECT_UID,
  ownershipOf,
  virtualOf,
} from '../../../src/syncer/translate/bookkeeping.ts';
import { copyOf, merge, touch } from './merge-setup.ts';
import { endpoints, LEGACY, mappings, translators } from './setup.ts';

const { names } = translators();
const MARKER = 'vcluster.loft.sh/managed-by';
const virtual = { name: 'web', namespace: 'shop' };
const copy = await copyOf(endpoints({ uid: 'u1' }));

type Changes = Record<string, string | undefined>;

function damaged(annotations: Changes, labels: Changes = {}): KubeObject {
  return touch(copy, { annotations, labels });
}

function verdict(object: KubeObject, expected?: typeof virtual, with_ = names): string {
  return ownershipOf(object, ENDPOINTS, with_, expected).kind;
}

describe('ownership', () => {
  test('an owned copy names its virtual object', () => {
    expect(ownershipOf(copy, ENDPOINTS, names)).toEqual({ kind: 'ours', virtual, uid: 'u1' });
  });

  test.each<[string, KubeObject, string]>([
    ['a missing marker is restored', damaged({}, { [MARKER]: undefined }), 'ours'],
    ['another virtual cluster’s', damaged({}, { [MARKER]: 'other' }), 'foreign'],
    [
      'a copy of the copy under another name',
      { ...copy, metadata: { ...copy.metadata, name: 'other' } },
      'foreign',
    ],
    ['another kind’s', damaged({ [OBJECT_KIND]: '/v1, Kind=Pod' }), 'foreign'],
    ['another host namespace', damaged({ [OBJECT_HOST_NAMESPACE]: 'other' }), 'foreign'],
    [
      'an object outside of our namespaces',
      { ...copy, metadata: { ...copy.metadata, namespace: 'other' } },
      'foreign',
    ],
    [
      'fewer annotations at the right place, with the marker',
      damaged({ [OBJECT_KIND]: undefined, [OBJECT_HOST_NAME]: undefined }),
      'ours',
    ],
    [
      'fewer annotations without the marker',
      damaged({ [OBJECT_HOST_NAME]: undefined }, { [MARKER]: undefined }),
      'foreign',
    ],
    [
      'fewer annotations at another place',
      damaged({ [OBJECT_HOST_NAME]: undefined, [OBJECT_NAME]: 'x' }),
      'foreign',
    ],
    ['no bookkeeping', { metadata: { name: 'web-x-shop-x-suffix', namespace: 'test' } }, 'unmarked'],
    ['an empty name', damaged({ [OBJECT_NAME]: '' }), 'unmarked'],
    [
      'annotations that are none',
      { metadata: { name: 'a', namespace: 'test', annotations: null as never } },
      'unmarked',
    ],
  ])('%s', (_name, object, kind) => {
    expect(verdict(object)).toBe(kind);
  });

  test('a missing uid does not count as another uid', () => {
    expect(ownershipOf(damaged({ [OBJECT_UID]: undefined }), ENDPOINTS, names)).toMatchObject({
      uid: undefined,
    });
  });

  test('a damaged copy is recognised by marker and record under its host name', () => {
    const stripped = damaged({ [OBJECT_NAME]: undefined, [OBJECT_KIND]: 'x' });
    expect([verdict(stripped), verdict(stripped, virtual)]).toEqual(['unmarked', 'ours']);
    expect(verdict(stripped, { name: 'other', namespace: 'shop' })).toBe('unmarked');
    expect(verdict(damaged({ [OBJECT_NAMESPACE]: 'x', [OBJECT_KIND]: 'x' }), virtual)).toBe('ours');
    expect(verdict(damaged({ [OBJECT_NAME]: undefined, [LAST_SYNCED]: undefined }), virtual)).toBe(
      'unmarked',
    );
    expect(verdict(damaged({ [OBJECT_NAME]: undefined }, { [MARKER]: undefined }), virtual)).toBe('unmarked');
    const ofAnotherKind = { [OBJECT_HOST_NAME]: undefined, [OBJECT_KIND]: '/v1, Kind=Service' };
    expect(verdict(damaged(ofAnotherKind), virtual)).toBe('ours');
    expect(verdict(damaged({ ...ofAnotherKind, [OBJECT_NAME]: 'x' }), virtual)).toBe('foreign');
  });

  test('a changed name in a copy that we created does not change its owner', async () => {
    const renamed = damaged({ [OBJECT_NAME]: 'another' });
    expect(ownershipOf(renamed, ENDPOINTS, names)).toMatchObject({ kind: 'ours', virtual });
    expect(namedVirtual(renamed, ENDPOINTS, names)).toEqual(virtual);
    const long = { name: 'w'.repeat(70), namespace: 'shop' };
    const cut = await copyOf(endpoints(long));
    const renamedCut = touch(cut, { annotations: { [OBJECT_NAME]: 'another' } });
    expect(ownershipOf(renamedCut, ENDPOINTS, names, long)).toMatchObject({ kind: 'ours', virtual: long });
  });

  test('the copy of another object with the same host name belongs to that object', async () => {
    const other = { name: 'a-x-b', namespace: 'c' };
    const host = await copyOf(endpoints(other));
    expect(ownershipOf(host, ENDPOINTS, names, { name: 'a', namespace: 'b-x-c' })).toMatchObject({
      virtual: other,
    });
    const damagedOther = touch(host, { annotations: { [OBJECT_KIND]: 'x' } });
    expect(verdict(damagedOther, { name: 'a', namespace: 'b-x-c' })).toBe('foreign');
    expect(verdict(damagedOther, other)).toBe('ours');
  });

  test('a damaged copy belongs to the object that its bookkeeping matches best', async () => {
    const rivals = [
      { name: 'a-x-b', namespace: 'c' },
      { name: 'a', namespace: 'b-x-c' },
    ] as const;
    const own = await copyOf(endpoints({ ...rivals[0], uid: 'u1' }));
    for (const name of [undefined, 'v1']) {
      const host = touch(own, { annotations: { [OBJECT_NAME]: name } });
      expect(verdict(host, rivals[0])).toBe('ours');
      const other = ownershipOf(host, ENDPOINTS, names, rivals[1]);
      expect(other.kind === 'ours' && other.virtual.name === 'a').toBe(false);
    }
  });

  test('a copy that was applied again under the name of another copy is foreign', () => {
    const clone = { ...copy, metadata: { ...copy.metadata, name: 'db-x-shop-x-suffix' } };
    expect(verdict(clone, { name: 'db', namespace: 'shop' })).toBe('foreign');
  });

  test('it is foreign after a change of the naming rule as well, which changes the host name of the copied object', () => {
    const clone = { ...copy, metadata: { ...copy.metadata, name: 'db-x-data-x-suffix' } };
    const { names: mapped } = translators(mappings({ shop: 'h' }));
    expect(verdict(clone, { name: 'db', namespace: 'data' }, mapped)).toBe('foreign');
  });

  test('a copy of another naming rule still names its object', () => {
    const { names: mapped } = translators(mappings({ shop: 'h' }));
    expect(ownershipOf(copy, ENDPOINTS, mapped)).toMatchObject({ kind: 'ours', virtual });
    expect(namedVirtual(copy, ENDPOINTS, mapped)).toEqual(virtual);
  });

  test('in multi-namespace modes a copy is owned only in a namespace of that mode', async () => {
    const legacy = translators(LEGACY);
    const hashed = (await merge({ virtual: endpoints({}), host: undefined, with: legacy })).host;
    expect(verdict(hashed, undefined, legacy.names)).toBe('ours');
    expect(verdict(hashed)).toBe('foreign');
    const mapped = translators(mappings({ shop: 'h' }, true));
    const there = (await merge({ virtual: endpoints({}), host: undefined, with: mapped })).host;
    expect([there.metadata.name, there.metadata.namespace]).toEqual(['web', 'h']);
    expect(verdict(there, undefined, mapped.names)).toBe('ours');
  });
});

describe('host → virtual', () => {
  test('is determined by bookkeeping', () => {
    expect([namedVirtual(copy, ENDPOINTS, names), virtualOf(copy, ENDPOINTS, names)]).toEqual([
      virtual,
      virtual,
    ]);
    expect(namedVirtual(damaged({}, { [MARKER]: 'other' }), ENDPOINTS, names)).toBeUndefined();
    expect(virtualOf(damaged({ [OBJECT_KIND]: 'x' }), ENDPOINTS, names)).toBeUndefined();
  });

  test('or by the naming rule, if it has one result', () => {
    const plain = (name: string, labels: StringMap = {}): KubeObject => ({
      metadata: { name, namespace: 'test', labels },
    });
    expect(virtualOf(plain('web-x-shop-x-suffix'), ENDPOINTS, names)).toEqual(virtual);
    expect(virtualOf(plain('a-x-b-x-c-x-suffix'), ENDPOINTS, names)).toBeUndefined();
    expect(virtualOf(plain('web-x-shop-x-suffix', { [MARKER]: 'other' }), ENDPOINTS, names)).toBeUndefined();
    expect(virtualOf(plain('own'), ENDPOINTS, names)).toBeUndefined();
  });
});
