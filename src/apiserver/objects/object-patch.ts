/** PATCH with JSON Patch, merge patch and strategic merge patch, on top of the registry's updates. */

import {
  cloneJson,
  isJsonObject,
  jsonEquals,
  mergePatch,
  type JsonObject,
  type JsonValue,
} from '../../base/json.ts';
import { StatusError, failure } from '../../kube/status-error.ts';
import type { ObjectRegistry } from './object-registry.ts';
import type { Written } from './object-writer.ts';
import { checkName, rejectOtherNamespace, type Target } from './target.ts';
import { applyJsonPatch } from '../patch/json-patch.ts';
import { unknownInOperations } from '../patch/patch-operation.ts';
import { strategicMerge } from '../patch/strategic-merge.ts';
import type { PatchingRequest } from './object-apply.ts';
import { parseJsonText } from '../schema/json-text.ts';
import { decodeBody, duplicatesIn, type ParsedBody } from './decode-body.ts';
import { PATCH_MEDIA, type PatchKind, type ResourceDefinition } from './resource-definition.ts';
import { DecodeError } from '../schema/decode-scalar.ts';
import { badRequest, unsupportedMediaType } from '../status.ts';
import { requestedVersion } from './write-steps.ts';

/** The patch type of a Content-Type; throws 415 for one that the kind does not support. */
export function patchKindOf(definition: ResourceDefinition, contentType: string): PatchKind {
  const sent = definition.patchKinds.find((kind) => PATCH_MEDIA[kind] === contentType);
  if (sent) return sent;
  throw unsupportedMediaType(definition.patchKinds.map((kind) => PATCH_MEDIA[kind]));
}

export interface PatchRequest extends PatchingRequest {
  readonly kind: Exclude<PatchKind, 'apply'>;
  readonly text: string;
}

export async function patchObject(
  registry: ObjectRegistry,
  target: Target,
  request: PatchRequest,
): Promise<Written> {
  const patch = await patchFor(registry, target, request);
  const problems = problemsOf(request.kind, patch, request.text);
  return registry.modify(
    target,
    async (current, entry) => {
      const patched = patchedBody(target, current, request.kind, patch);
      checkPatched(target, current, patched);
      const parsed = { value: patched, duplicates: problems };
      const body = decodePatched(target.definition, parsed, request);
      return registry.writer.replace(target, entry, body, request.context);
    },
    pinsVersion(patch),
  );
}

async function patchFor(registry: ObjectRegistry, target: Target, request: PatchRequest): Promise<JsonValue> {
  try {
    return parsePatch(request);
  } catch (error) {
    // A missing object is reported before an invalid patch.
    await registry.get(target);
    throw error;
  }
}

function parsePatch({ kind, text: patchText }: PatchRequest): JsonValue {
  let patch: JsonValue;
  try {
    patch = parseJsonText(patchText);
  } catch (error) {
    if (error instanceof DecodeError) throw badRequest(`error decoding patch: ${error.message}`);
    throw error;
  }
  if (kind !== 'json' && !isJsonObject(patch)) {
    const type = Array.isArray(patch) ? 'array' : typeof patch;
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${type} into Go value of type map[string]interface {}`,
    );
  }
  return patch;
}

/** Messages about duplicate fields of a patch and unknown fields of JSON Patch operations. */
function problemsOf(kind: PatchKind, patch: JsonValue, patchText: string): readonly string[] {
  const duplicates = duplicatesIn(patchText);
  if (kind !== 'json') return duplicates;
  const unknown = unknownInOperations(patch).map((path) => `unknown field ${JSON.stringify(path)}`);
  return [...duplicates, ...unknown].map((problem) => `json patch ${problem}`);
}

function patchedBody(target: Target, current: JsonObject, kind: PatchKind, patch: JsonValue): JsonObject {
  const copy = cloneJson(current);
  if (kind === 'json') return applyJsonPatch(copy, patch);
  if (!isJsonObject(patch)) return copy;
  return kind === 'merge' ? mergePatch(copy, patch) : strategicMerge(target.definition.schema, copy, patch);
}

/** A patch must not change the identity of the object. */
function checkPatched(target: Target, current: JsonObject, patched: JsonObject): void {
  for (const field of ['apiVersion', 'kind']) {
    // Missing fields default to the kind of the URL.
    if (!jsonEquals(patched[field] ?? current[field], current[field])) {
      throw patchRejected(`${field}: the patch must not change it`);
    }
  }
  rejectOtherNamespace(target, patched);
  checkName(target, patched);
}

/** A kube-apiserver quotes the complete object here. An object may hold a secret, so this message has only the reason. */
function patchRejected(why: string): Error {
  const message = `Invalid value: ${why}`;
  return failure(422, 'Invalid', ` "" is invalid: patch: ${message}`, {
    causes: [{ reason: 'FieldValueInvalid', message, field: 'patch' }],
  });
}

function decodePatched(
  definition: ResourceDefinition,
  patched: ParsedBody,
  { options, warn }: PatchRequest,
): JsonObject {
  try {
    return decodeBody(definition, patched, options.fieldValidation, warn);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    throw patchRejected(error.message.replace(/^.*? cannot be handled as a [^:]*: /, ''));
  }
}

/** True when the patch names a resourceVersion: then a newer object is a conflict and the patch is not retried. */
function pinsVersion(patch: JsonValue): boolean {
  if (Array.isArray(patch)) {
    return patch.some(
      (operation) => isJsonObject(operation) && operation['path'] === '/metadata/resourceVersion',
    );
  }
  return isJsonObject(patch) && requestedVersion(patch) !== '';
}
