/**
 * JSON Patch (RFC 6902) as a kube-apiserver applies it. Libraries let a client set the length of a list, reach prototypes, compare lists in
 * quadratic time or double the object with every `copy`.
 */

import {
  cloneJson,
  isJsonObject,
  jsonEquals,
  ownValue,
  setOwn,
  type JsonArray,
  type JsonObject,
  type JsonValue,
} from '../../base/json.ts';
import {
  PATCH_COPY_BYTES_MAX,
  PATCH_OPERATIONS_MAX,
  PATCH_ITEMS_MOVED_MAX,
  PATCH_POINTER_MAX,
} from '../limits.ts';
import { badRequest, entityTooLarge, shortened } from '../status.ts';
import { failure } from '../../kube/status-error.ts';

/**
 * Applies `patch` to `target`, which it changes. Throws a `StatusError`: 400 for anything but a patch, 413 for one that exceeds the limits,
 * 422 for one that cannot be applied.
 */
export function applyJsonPatch(target: JsonObject, patch: JsonValue): JsonObject {
  if (!Array.isArray(patch)) {
    const type = patch === null ? 'null' : isJsonObject(patch) ? 'object' : typeof patch;
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${type} into Go value of type []handlers.jsonPatchOp`,
    );
  }
  if (patch.length > PATCH_OPERATIONS_MAX) {
    const limit = `The allowed maximum operations in a JSON patch is ${PATCH_OPERATIONS_MAX}, got ${patch.length}`;
    throw entityTooLarge(limit);
  }
  const document = new Document(target);
  for (const [index, item] of patch.entries()) {
    try {
      const operation = parseOperation(item);
      createMetadataMap(document.root, operation);
      document.apply(operation);
    } catch (error) {
      if (!(error instanceof OperationError)) throw error;
      throw rejected(index, `${operationName(item, index)}: ${error.message}`);
    }
  }
  if (!isJsonObject(document.root))
    throw rejected(patch.length - 1, 'the object is replaced by another type');
  return document.root;
}

/** Creates the map for the first annotation or label of an object, which RFC 6902 does not. */
function createMetadataMap(target: JsonValue, { op, path }: Operation): void {
  const [first, map] = path;
  if (op !== 'add' || first !== 'metadata' || path.length !== 3) return;
  if (map !== 'annotations' && map !== 'labels') return;
  const metadata = isJsonObject(target) ? ownValue(target, 'metadata') : undefined;
  if (isJsonObject(metadata) && ownValue(metadata, map) === undefined) metadata[map] = {};
}

class Document {
  #root: JsonValue;
  #copied = 0;
  #moved = 0;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  get root(): JsonValue {
    return this.#root;
  }

  apply(operation: Operation): void {
    const { path } = operation;
    switch (operation.op) {
      case 'add':
        return this.#add(path, cloneJson(operation.value));
      case 'replace':
        this.#remove(path);
        return this.#add(path, cloneJson(operation.value));
      case 'remove':
        if (path.length === 0) throw new OperationError('the whole object cannot be removed');
        return void this.#remove(path);
      case 'test':
        // Takes no longer than the patch is long: after the first difference nothing follows.
        if (!jsonEquals(this.#get(path), operation.value)) throw new OperationError('the value differs');
        return undefined;
      case 'copy':
        return this.#add(path, this.#copyOf(operation.from));
      case 'move':
        return this.#move(operation.from, path);
    }
  }

  #move(from: Pointer, path: Pointer): void {
    const isInside = from.length < path.length && from.every((token, at) => token === path[at]);
    if (isInside) throw new OperationError('a value cannot be moved into itself');
    this.#add(path, this.#remove(from));
  }

  #copyOf(from: Pointer): JsonValue {
    const value = this.#get(from);
    this.#copied += JSON.stringify(value).length;
    if (this.#copied > PATCH_COPY_BYTES_MAX) {
      throw entityTooLarge(`the copies of a JSON patch may add up to ${PATCH_COPY_BYTES_MAX} bytes`);
    }
    return cloneJson(value);
  }

  #splice(list: JsonArray, at: number, removed: number, ...inserted: JsonValue[]): void {
    this.#moved += list.length - at;
    if (this.#moved > PATCH_ITEMS_MOVED_MAX) {
      throw entityTooLarge('the operations of the JSON patch move too many list items; send several patches');
    }
    list.splice(at, removed, ...inserted);
  }

  #get(path: Pointer): JsonValue {
    let value = this.#root;
    for (const token of path) value = member(value, token);
    return value;
  }

  /** The value that holds, or will hold, the last token of the path. */
  #parent(path: Pointer): { readonly parent: JsonValue; readonly token: string } {
    return { parent: this.#get(path.slice(0, -1)), token: path.at(-1) ?? '' };
  }

  #add(path: Pointer, value: JsonValue): void {
    if (path.length === 0) {
      this.#root = value;
      return;
    }
    const { parent, token } = this.#parent(path);
    if (Array.isArray(parent))
      this.#splice(parent, token === '-' ? parent.length : indexIn(parent.length, token), 0, value);
    else if (isJsonObject(parent)) setOwn(parent, token, value);
    else throw missing();
  }

  /** Returns the removed value. Does not remove the root: a replacement follows. */
  #remove(path: Pointer): JsonValue {
    if (path.length === 0) return this.#root;
    const { parent, token } = this.#parent(path);
    const value = member(parent, token);
    if (Array.isArray(parent)) this.#splice(parent, Number(token), 1);
    else if (isJsonObject(parent)) delete parent[token];
    return value;
  }
}

function member(value: JsonValue, token: string): JsonValue {
  let found: JsonValue | undefined;
  if (Array.isArray(value)) found = value[indexIn(value.length - 1, token)];
  else if (isJsonObject(value)) found = ownValue(value, token);
  if (found === undefined) throw missing();
  return found;
}

function indexIn(last: number, token: string): number {
  const index = /^(?:0|[1-9]\d{0,15})$/.test(token) ? Number(token) : Number.NaN;
  if (!(index <= last)) throw missing();
  return index;
}

function missing(): OperationError {
  return new OperationError('there is no such field or list item');
}

/** Unlike a kube-apiserver, the cause names the operation. */
function rejected(index: number, why: string): Error {
  return failure(422, 'Invalid', 'the server rejected our request due to an error in our request', {
    causes: [{ reason: 'FieldValueInvalid', message: why, field: `[${index}]` }],
  });
}

type Operation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: Pointer; readonly value: JsonValue }
  | { readonly op: 'remove'; readonly path: Pointer }
  | { readonly op: 'move' | 'copy'; readonly path: Pointer; readonly from: Pointer };

/** The unescaped tokens of a JSON pointer; none is the whole document. */
type Pointer = readonly string[];

/** An operation that cannot be applied; the message says why, without a value of the object. */
class OperationError extends Error {
  override readonly name = 'OperationError';
}

/** `operation 2 (replace /spec/user)`, counted from 0 as the elements of the patch are. */
function operationName(item: JsonValue, index: number): string {
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

function parseOperation(value: JsonValue): Operation {
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
