/** The part of `metadata.managedFields` that a cache stores. */

import { expect, test } from 'vitest';
import { createOwnedFieldsStripper } from '../../../src/kube/informer/object-cache.ts';
import type { KubeObject } from '../../../src/kube/object.ts';

const ENTRY = { manager: 'kubectl', operation: 'Update', apiVersion: 'v1', time: '2026-11-22T10:00:00Z' };

function written(name: string, time = ENTRY.time): KubeObject {
  const fieldsV1 = { 'f:metadata': { [`f:${name}`]: {} } };
  return { metadata: { name, managedFields: [{ ...ENTRY, time, fieldsV1, subresource: 'status' }] } };
}

test('the fields go, everything else stays', () => {
  const strip = createOwnedFieldsStripper();
  expect(strip(written('a')).metadata).toEqual({
    name: 'a',
    managedFields: [{ ...ENTRY, subresource: 'status' }],
  });
});

test('an object without managed fields stays as it is', () => {
  const object = { metadata: { name: 'a' } };
  expect(createOwnedFieldsStripper()(object)).toBe(object);
  expect(object).toEqual({ metadata: { name: 'a' } });
});

test('the list that was passed is not changed', () => {
  const object = written('a');
  const { managedFields } = object.metadata;
  createOwnedFieldsStripper()(object);
  expect(managedFields).toEqual(written('a').metadata.managedFields);
});

test('objects share equal lists only', () => {
  const strip = createOwnedFieldsStripper();
  const [first, second, later] = [
    strip(written('a')),
    strip(written('b')),
    strip(written('c', '2026-11-22T10:00:01Z')),
  ];
  expect(second.metadata.managedFields).toBe(first.metadata.managedFields);
  expect(later.metadata.managedFields?.[0]?.time).toBe('2026-11-22T10:00:01Z');
});

test('managers that are written in ever new seconds do not accumulate', () => {
  const strip = createOwnedFieldsStripper();
  const first = strip(written('a'));
  for (let second = 0; second < 2000; second++) strip(written('b', `second ${second}`));
  const again = strip(written('a'));
  expect(again.metadata.managedFields).not.toBe(first.metadata.managedFields);
  expect(again).toEqual(first);
});
