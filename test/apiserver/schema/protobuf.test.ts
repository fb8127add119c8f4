/** A UserInfo as protobuf: its extras are lists in a map, which have a message of their own (`ExtraValue`). */

import { expect, test } from 'vitest';
import { builtInTypes } from '../../../src/embedded-cluster/kinds/built-in-kinds.ts';
import { decodeProtobuf, ProtobufError } from '../../../src/apiserver/schema/protobuf.ts';
import { bytesField as field } from '../../support/protobuf.ts';

const entry = (key: string, ...values: string[]): Buffer =>
  field(5, Buffer.concat([field(1, key), field(2, Buffer.concat(values.map((value) => field(1, value))))]));

test('extras of a SubjectAccessReview', () => {
  const attributes = field(1, Buffer.concat([field(2, 'get'), field(5, 'pods')]));
  const spec = Buffer.concat([
    attributes,
    field(3, 'alice'),
    field(4, 'g'),
    entry('a', 'x', 'y'),
    entry('b'),
  ]);
  const schema = builtInTypes().get('authorization.SubjectAccessReview');
  expect(decodeProtobuf(schema, field(2, spec))).toEqual({
    spec: {
      resourceAttributes: { verb: 'get', resource: 'pods' },
      user: 'alice',
      groups: ['g'],
      extra: { a: ['x', 'y'], b: [] },
    },
  });
});

test('invalid protobuf is rejected with a reason', () => {
  const schema = builtInTypes().get('authorization.SubjectAccessReview');
  const spec = field(5, Buffer.concat([field(1, 'a'), Buffer.from([0x10, 0x01])]));
  expect(() => decodeProtobuf(schema, field(2, spec))).toThrow(ProtobufError);
});
