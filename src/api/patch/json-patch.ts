/** JSON Patch (RFC 6902) as a Kubernetes server applies it. */

import { applyPatch, type Operation } from 'rfc6902';
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json.ts';
import { badRequest, failure } from '../status.ts';
import { text } from '../validation/metadata.ts';

/** More than any client sends; a bound on the work of one request. */
const OPERATIONS_MAX = 10_000;

/** Applies `patch` to `target`, which it changes. Throws a `StatusError`: 400 for what is no patch, 422 for what cannot be applied. */
export function applyJsonPatch(target: JsonObject, patch: JsonValue): JsonObject {
  if (!Array.isArray(patch)) {
    const type = patch === null ? 'null' : isJsonObject(patch) ? 'object' : typeof patch;
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${type} into Go value of type []handlers.jsonPatchOp`,
    );
  }
  if (patch.length > OPERATIONS_MAX) {
    throw failure(
      413,
      'RequestEntityTooLarge',
      `Request entity too large: the allowed maximum operations in a JSON patch is ${OPERATIONS_MAX}, got ${patch.length}`,
    );
  }
  const holder = { root: target };
  for (const operation of patch) {
    if (!isOperation(operation)) throw rejected();
    makeMetadataMap(holder.root, operation);
    // Under one more level, an operation on the whole document is an operation like any other.
    const [failed] = applyPatch(holder, [rebased(operation)]);
    if (failed) throw rejected();
  }
  if (!isJsonObject(holder.root)) throw rejected();
  return holder.root;
}

/** An annotation or label can be added where there was none: the map is made, as every user expects. */
function makeMetadataMap(target: JsonValue, operation: JsonObject): void {
  const match = /^\/metadata\/(annotations|labels)\/[^/]+$/.exec(text(operation, 'path'));
  if (!match?.[1] || operation['op'] !== 'add' || !isJsonObject(target)) return;
  const metadata = target['metadata'];
  if (isJsonObject(metadata) && metadata[match[1]] === undefined) metadata[match[1]] = {};
}

function isOperation(value: JsonValue): value is JsonObject {
  if (!isJsonObject(value)) return false;
  const { op, path, from } = value;
  if (typeof path !== 'string' || (path !== '' && !path.startsWith('/'))) return false;
  switch (op) {
    case 'add':
    case 'replace':
    case 'test':
      return value['value'] !== undefined;
    case 'remove':
      return true;
    case 'move':
    case 'copy':
      return typeof from === 'string';
    default:
      return false;
  }
}

function rebased(operation: JsonObject): Operation {
  const moved: JsonObject = { ...operation, path: `/root${text(operation, 'path')}` };
  if (typeof operation['from'] === 'string') moved['from'] = `/root${operation['from']}`;
  return moved as unknown as Operation; // isOperation has looked at every member
}

function rejected(): Error {
  return failure(422, 'Invalid', 'the server rejected our request due to an error in our request', {});
}
