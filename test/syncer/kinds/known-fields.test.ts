/** The fields against which paths of patches are checked are those that an API server knows. */

import { expect, test } from 'vitest';
import type { Schema } from '../../../src/apiserver/schema/object-schema.ts';
import { builtInTypes } from '../../../src/embedded-cluster/kinds/built-in-kinds.ts';
import { SYNCABLE_KINDS } from '../../../src/syncer/kinds/synced-kinds.ts';
import type { Fields } from '../../../src/syncer/patch/check-patch.ts';

/** An API server leaves it out of every write. */
const NEVER_WRITTEN = 'deprecatedTopology';

function pathsIn(schema: Schema): string[] {
  switch (schema.type) {
    case 'scalar':
      return [''];
    case 'list':
      return pathsIn(schema.items).map((path) => `.*${path}`);
    case 'map':
      return pathsIn(schema.values).map((path) => `.*${path}`);
    case 'object':
      return [...schema.fields.values()]
        .filter(({ name }) => name !== NEVER_WRITTEN)
        .flatMap((field) => pathsIn(field.schema).map((path) => `.${field.name}${path}`));
  }
}

function pathsOf(fields: Fields): string[] {
  if (fields === 'value') return [''];
  if (fields === 'any') return ['.any'];
  return Object.entries(fields).flatMap(([name, below]) => pathsOf(below).map((path) => `.${name}${path}`));
}

test.each(SYNCABLE_KINDS)('$resource.kind', ({ resource, fields: known, members }) => {
  const { group, kind } = resource;
  const types = builtInTypes();
  const schema = types.get(group === '' ? kind : `${group.split('.')[0]}.${kind}`);
  const isOfMember = (path: string): boolean => members.some((member) => path.split('.')[1] === member);
  const [own, ofServer] = [pathsOf(known.fields), pathsIn(schema)].map((paths) => paths.filter(isOfMember));
  expect(own?.length).toBeGreaterThan(0);
  expect(own?.toSorted()).toEqual(ofServer?.toSorted());
});
