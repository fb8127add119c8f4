/** A patch trace as the page and `explain -o json` print it. */

import type { JsonObject, JsonValue } from '../../base/json.ts';
import type { PatchTrace, TracedMatch, TracedPatch } from '../../syncer/patch/trace.ts';

/** `[{index, path, action, durationMs, matches: [{path, before?, after?}], nearest?, error?}]`; a value that does not exist is absent. */
export function traceJson({ patches }: PatchTrace): JsonValue {
  return patches.map(patchJson);
}

function patchJson({ error, nearest, matches, ...patch }: TracedPatch): JsonObject {
  return {
    ...patch,
    matches: matches.map(matchJson),
    ...(nearest === undefined ? {} : { nearest }),
    ...(error === undefined
      ? {}
      : { error: { kind: error.kind, path: error.path, message: error.message, excerpt: error.excerpt } }),
  };
}

function matchJson({ path, before, after }: TracedMatch): JsonObject {
  return {
    path,
    ...(before === undefined ? {} : { before }),
    ...(after === undefined ? {} : { after }),
  };
}
