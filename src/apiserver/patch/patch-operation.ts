/** The operations of a JSON Patch (RFC 6902), parsed. */

import { isJsonObject, ownValue, type JsonValue } from '../../base/json.ts';
import { shortened } from '../field-error.ts';
import { PATCH_POINTER_MAX } from '../limits.ts';

export type Operation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: Pointer; readonly value: JsonValue }
  | { readonly op: 'remove'; readonly path: Pointer }
  | { readonly op: 'move' | 'copy'; readonly path: Pointer; readonly from: Pointer };

/** The unescaped tokens of a JSON pointer; none is the whole document. */
export type Pointer = readonly string[];

/** An operation that cannot be applied; the message says why, without a value of the object. */
export class OperationError extends Error {
  override readonly name = 'OperationError';
}

/** `operation 2 (replace /spec/user)`, counted from 0 as the elements of the patch are. */
export function operationName(item: JsonValue, index: number): string {
  const [op, path] = isJsonObject(item) ? [ownValue(item, 'op'), ownValue(item, 'path')] : [];
  if (typeof op !== 'string' || typeof path !== 'string') return `operation ${index}`;
  return `operation ${index} (${shortened(op)} ${shortened(path)})`;
}

/** Unknown members of operations: `[0].extra`. */
export function unknownInOperations(patch: JsonValue): string[] {
  if (!Array.isArray(patch)) return [];
  return patch.flatMap((operation, index) =>
    isJsonObject(operation)
      ? Object.keys(operation)
          .filter((key) => !OPERATION_FIELDS.includes(key))
          .map((key) => `[${index}].${shortened(key)}`)
      : [],
  );
}

const OPERATION_FIELDS = ['op', 'path', 'from', 'value'];

/** Throws {@link OperationError}. */
export function parseOperation(value: JsonValue): Operation {
  if (!isJsonObject(value)) throw new OperationError('it is not an object');
  const path = parsePointer(ownValue(value, 'path'), 'path');
  const op = ownValue(value, 'op');
  switch (op) {
    case 'add':
    case 'replace':
    case 'test': {
      const operand = ownValue(value, 'value');
      if (operand === undefined) throw new OperationError('it has no value');
      return { op, path, value: operand };
    }
    case 'remove':
      return { op, path };
    case 'move':
    case 'copy':
      return { op, path, from: parsePointer(ownValue(value, 'from'), 'from') };
    default:
      throw new OperationError('op must be add, copy, move, remove, replace or test');
  }
}

function parsePointer(text: JsonValue | undefined, member: string): Pointer {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/'))) {
    throw new OperationError(`${member} must be a JSON pointer, such as /metadata/labels/a`);
  }
  if (text.length > PATCH_POINTER_MAX) throw new OperationError(`${member} is too long`);
  return text
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}
