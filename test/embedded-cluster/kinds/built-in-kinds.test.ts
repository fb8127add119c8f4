/** The types of all kinds are consistent: the notation is written by hand, and a mistake in it would show far away. */

import { describe, expect, test } from 'vitest';
import { allowEverything } from '../../../src/apiserver/request/request-info.ts';
import type { ListSchema, ObjectSchema, Schema } from '../../../src/apiserver/schema/object-schema.ts';
import { builtInKinds } from '../../../src/embedded-cluster/kinds/built-in-kinds.ts';

const KINDS = builtInKinds(allowEverything);

/** Every type that a kind uses, by name. */
function typesOf(schema: Schema, found = new Map<string, ObjectSchema>()): Map<string, ObjectSchema> {
  if (schema.type === 'list') return typesOf(schema.items, found);
  if (schema.type === 'map') return typesOf(schema.values, found);
  if (schema.type === 'scalar' || found.has(schema.name)) return found;
  found.set(schema.name, schema);
  for (const field of schema.fields.values()) typesOf(field.schema, found);
  return found;
}

const TYPES = [...new Map(KINDS.all.flatMap(({ schema }) => [...typesOf(schema)])).values()];

function listsOf({ name, fields }: ObjectSchema): [path: string, ListSchema, mergeKey: string][] {
  return [...fields.values()].flatMap(({ name: field, schema, mergeKey }) =>
    schema.type === 'list' ? [[`${name}.${field}`, schema, mergeKey]] : [],
  );
}

describe('the types', () => {
  test('have one protobuf number for each field', () => {
    const wrong = TYPES.flatMap(({ name, fields }) => {
      const numbers = [...fields.values()].map(({ protobufPath }) => protobufPath.join('/'));
      return numbers
        .filter((number, at) => number === '' || numbers.indexOf(number) !== at)
        .map((n) => `${name}:${n}`);
    });
    expect(wrong).toEqual([]);
  });

  test('have lists whose keys are fields of their items', () => {
    const wrong = TYPES.flatMap(listsOf).flatMap(([path, { items, listType, keys }, mergeKey]) => {
      const known = items.type === 'object' ? [...items.fields.keys()] : [];
      const used = [...(listType === 'map' ? keys : []), ...(mergeKey === '' ? [] : [mergeKey])];
      return used.filter((key) => !known.includes(key)).map((key) => `${path}: ${key}`);
    });
    expect(wrong).toEqual([]);
  });

  test('have lists that merge by one of the keys that server-side apply uses', () => {
    const wrong = TYPES.flatMap(listsOf).flatMap(([path, { listType, keys }, mergeKey]) =>
      mergeKey !== '' && listType === 'map' && !keys.includes(mergeKey) ? [path] : [],
    );
    expect(wrong).toEqual([]);
  });
});

test('the kinds have names that no other has, in a group', () => {
  const names = KINDS.all.flatMap(({ group, plural, singular, shortNames }) =>
    [...new Set([plural, singular, ...shortNames])].map((name) => `${name}.${group}`),
  );
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});

test.each([{}, { leaseDurationSeconds: 1, leaseTransitions: 0 }])('a Lease with %j is valid', (spec) => {
  const leases = KINDS.find('coordination.k8s.io', 'v1', 'leases');
  expect(leases?.validate({ spec }, undefined)).toEqual([]);
});
