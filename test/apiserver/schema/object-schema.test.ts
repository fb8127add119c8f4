/** The notation of types: what each mark means, and errors of the notation itself. */

import { expect, test } from 'vitest';
import {
  isLeaf,
  memberSchema,
  TypeTable,
  type Field,
  type Schema,
} from '../../../src/apiserver/schema/object-schema.ts';

const TYPES = new TypeTable([
  `
Node atomic = name:1!+ string; next:2/1 *Node; size string:types.Size
Spec = list []Node; set []string set; map []Node map(name,size=9) ~merge,retainKeys(name); labels {}string; fixed {}string atomic; pointers *[]string; nodes {}[]Node; whole Node atomic; part Part; frozen Part atomic
Part = x int32
Node: A node.
Spec.labels: Keys and values: of any kind.
`,
]);

function field(type: string, name: string): Field {
  const found = TYPES.get(type).fields.get(name);
  if (found === undefined) throw new Error(`no field ${name}`);
  return found;
}

const PLAIN = { isPointer: false, isAlwaysWritten: false, isRequired: false, protobufPath: [] };

test.each<[type: string, name: string, expected: object]>([
  ['Node', 'name', { isAlwaysWritten: true, isRequired: true, protobufPath: [1] }],
  ['Node', 'next', { isPointer: true, protobufPath: [2, 1] }],
  ['Node', 'size', { schema: { type: 'scalar', scalar: 'string', goType: 'types.Size' } }],
  ['Spec', 'list', { schema: { listType: 'atomic', keys: [''] }, patchStrategies: [], mergeKey: '' }],
  ['Spec', 'set', { schema: { listType: 'set', items: { scalar: 'string', goType: 'string' } } }],
  [
    'Spec',
    'map',
    {
      schema: { listType: 'map', keys: ['name', 'size'], keyDefaults: { size: '9' } },
      patchStrategies: ['merge', 'retainKeys'],
      mergeKey: 'name',
    },
  ],
  [
    'Spec',
    'labels',
    { schema: { type: 'map', isAtomic: false }, description: 'Keys and values: of any kind.' },
  ],
  ['Spec', 'fixed', { schema: { type: 'map', isAtomic: true } }],
  ['Spec', 'pointers', { isPointer: true, schema: { type: 'list', items: { type: 'scalar' } } }],
  ['Spec', 'nodes', { schema: { type: 'map', values: { type: 'list', items: { name: 'Node' } } } }],
])('%s.%s', (type, name, expected) => {
  expect(field(type, name)).toMatchObject({ name, ...PLAIN, description: '', ...expected });
});

test('a type refers to itself, has its description, and its fields in their order', () => {
  const node = TYPES.get('Node');
  expect(field('Node', 'next').schema).toBe(node);
  expect(node).toMatchObject({ isAtomic: true, description: 'A node.' });
  expect([...node.fields.keys()]).toEqual(['name', 'next', 'size']);
});

test('a type is atomic where it is used as such, and nowhere else', () => {
  expect(isLeaf(field('Spec', 'frozen').schema)).toBe(true);
  expect(isLeaf(field('Spec', 'part').schema)).toBe(false);
});

test.each<[string, string, isLeaf: boolean]>([
  ['Node', 'name', true],
  ['Spec', 'list', true],
  ['Spec', 'set', false],
  ['Spec', 'map', false],
  ['Spec', 'labels', false],
  ['Spec', 'fixed', true],
  ['Spec', 'whole', true],
])('whether managers own %s.%s as a whole: %s', (type, name, expected) => {
  expect(isLeaf(field(type, name).schema)).toBe(expected);
});

test('members of a map have one schema, those of an object their own', () => {
  const { schema } = field('Spec', 'nodes');
  const member = (of: Schema, key: string) =>
    of.type === 'map' || of.type === 'object' ? memberSchema(of, key) : undefined;
  expect(member(schema, '__proto__')).toMatchObject({ type: 'list' });
  expect(member(TYPES.get('Part'), 'x')).toMatchObject({ scalar: 'int32' });
  expect(member(TYPES.get('Part'), 'constructor')).toBeUndefined();
});

test('a type that is defined twice, or not at all, is an error that names it', () => {
  expect(() => new TypeTable(['A = x string', 'A = y string'])).toThrow('the type A is defined twice');
  expect(() => new TypeTable(['A = b B']).get('A')).toThrow('no type is called B');
});
