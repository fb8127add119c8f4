/**
 * JSON Patch (RFC 6902) as a Kubernetes server applies it. Of our own: a server cannot let a client set the length of a list, reach what a
 * prototype holds, compare lists in quadratic time or double the object with every `copy`.
 */

import {
  cloneJson,
  isJsonObject,
  jsonEquals,
  ownValue,
  setOwn,
  type JsonObject,
  type JsonValue,
} from '../../lib/json.ts';
import { PATCH_COPY_BYTES_MAX, PATCH_OPERATIONS_MAX } from '../limits.ts';
import { badRequest, failure } from '../status.ts';

type Operation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: Pointer; readonly value: JsonValue }
  | { readonly op: 'remove'; readonly path: Pointer }
  | { readonly op: 'move' | 'copy'; readonly path: Pointer; readonly from: Pointer };

/** The unescaped tokens of a JSON pointer; none is the whole document. */
type Pointer = readonly string[];

/** Applies `patch` to `target`, which it changes. Throws a `StatusError`: 400 for what is no patch, 422 for what cannot be applied. */
export function applyJsonPatch(target: JsonObject, patch: JsonValue): JsonObject {
  if (!Array.isArray(patch)) {
    const type = patch === null ? 'null' : isJsonObject(patch) ? 'object' : typeof patch;
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${type} into Go value of type []handlers.jsonPatchOp`,
    );
  }
  if (patch.length > PATCH_OPERATIONS_MAX) {
    const limit = `The allowed maximum operations in a JSON patch is ${PATCH_OPERATIONS_MAX}, got ${patch.length}`;
    throw tooMuch(limit);
  }
  const document = new Document(target);
  for (const item of patch) {
    const operation = parseOperation(item);
    makeMetadataMap(document.object(), operation);
    document.apply(operation);
  }
  return document.object();
}

/** `[0].extra`: members of operations that mean nothing. */
export function unknownInOperations(patch: JsonValue): string[] {
  if (!Array.isArray(patch)) return [];
  return patch.flatMap((operation, index) =>
    isJsonObject(operation)
      ? Object.keys(operation)
          .filter((key) => !OPERATION_FIELDS.includes(key))
          .map((key) => `[${index}].${key}`)
      : [],
  );
}

const OPERATION_FIELDS = ['op', 'path', 'from', 'value'];

function parseOperation(value: JsonValue): Operation {
  if (!isJsonObject(value)) throw rejected();
  const path = parsePointer(ownValue(value, 'path'));
  const op = ownValue(value, 'op');
  switch (op) {
    case 'add':
    case 'replace':
    case 'test': {
      const operand = ownValue(value, 'value');
      if (operand === undefined) throw rejected();
      return { op, path, value: operand };
    }
    case 'remove':
      return { op, path };
    case 'move':
    case 'copy':
      return { op, path, from: parsePointer(ownValue(value, 'from')) };
    default:
      throw rejected();
  }
}

function parsePointer(text: JsonValue | undefined): Pointer {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/'))) throw rejected();
  return text
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** An annotation or label can be added where there was none: the map is made, as every user expects. */
function makeMetadataMap(target: JsonObject, { op, path }: Operation): void {
  const [first, map] = path;
  if (op !== 'add' || first !== 'metadata' || path.length !== 3) return;
  if (map !== 'annotations' && map !== 'labels') return;
  const metadata = ownValue(target, 'metadata');
  if (isJsonObject(metadata) && ownValue(metadata, map) === undefined) metadata[map] = {};
}

class Document {
  #root: JsonValue;
  /** What `copy` has added so far, in characters of JSON. */
  #copied = 0;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  /** Throws when something else has taken its place. */
  object(): JsonObject {
    if (!isJsonObject(this.#root)) throw rejected();
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
        if (path.length === 0) throw rejected();
        return void this.#remove(path);
      case 'test':
        if (!jsonEquals(this.#get(path), operation.value)) throw rejected();
        return undefined;
      case 'copy':
        return this.#add(path, this.#copyOf(operation.from));
      case 'move':
        return this.#move(operation.from, path);
    }
  }

  #move(from: Pointer, path: Pointer): void {
    const isInside = from.length < path.length && from.every((token, at) => token === path[at]);
    if (isInside) throw rejected();
    this.#add(path, this.#remove(from));
  }

  #copyOf(from: Pointer): JsonValue {
    const value = this.#get(from);
    this.#copied += JSON.stringify(value).length;
    if (this.#copied > PATCH_COPY_BYTES_MAX) {
      throw tooMuch(`what the copies of a JSON patch may add up to is ${PATCH_COPY_BYTES_MAX} bytes`);
    }
    return cloneJson(value);
  }

  #get(path: Pointer): JsonValue {
    let value = this.#root;
    for (const token of path) value = member(value, token);
    return value;
  }

  /** `parent` holds, or will hold, the last token of the path. */
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
      parent.splice(token === '-' ? parent.length : indexIn(parent.length, token), 0, value);
    else if (isJsonObject(parent)) setOwn(parent, token, value);
    else throw rejected();
  }

  /** The value that was there. Of the whole document nothing is taken: it is about to be replaced. */
  #remove(path: Pointer): JsonValue {
    if (path.length === 0) return this.#root;
    const { parent, token } = this.#parent(path);
    const value = member(parent, token);
    if (Array.isArray(parent)) parent.splice(Number(token), 1);
    else if (isJsonObject(parent)) delete parent[token];
    return value;
  }
}

function member(value: JsonValue, token: string): JsonValue {
  let found: JsonValue | undefined;
  if (Array.isArray(value)) found = value[indexIn(value.length - 1, token)];
  else if (isJsonObject(value)) found = ownValue(value, token);
  if (found === undefined) throw rejected();
  return found;
}

function indexIn(last: number, token: string): number {
  const index = /^(?:0|[1-9]\d{0,15})$/.test(token) ? Number(token) : Number.NaN;
  if (!(index <= last)) throw rejected();
  return index;
}

function tooMuch(limit: string): Error {
  return failure(413, 'RequestEntityTooLarge', `Request entity too large: ${limit}`);
}

function rejected(): Error {
  return failure(422, 'Invalid', 'the server rejected our request due to an error in our request', {});
}
