/** PATCH on top of the registry: JSON Patch, merge patch, strategic merge patch, and server-side apply. */

import {
  cloneJson,
  isJsonObject,
  jsonEquals,
  mergePatch,
  type JsonObject,
  type JsonValue,
  ownValue,
  setOwn,
  text,
} from '../../base/json.ts';
import { StatusError, failure } from '../../kube/status-error.ts';
import type { ObjectRegistry } from './object-registry.ts';
import { presented } from './object-view.ts';
import { type Written, requestedVersion, createdMetadata, type WriteContext } from './object-writer.ts';
import {
  checkName,
  rejectOtherNamespace,
  type Target,
  currentForm,
  groupName,
  PATCH_MEDIA,
  patchKindsOf,
  type PatchKind,
  type ResourceDefinition,
} from './resource-definition.ts';
import { applyJsonPatch, unknownInOperations } from '../patch/json-patch.ts';
import { parseJsonText } from '../schema/json-text.ts';
import { decodeBody, DecodeError, emptyObject, type ParsedBody } from '../schema/decode.ts';
import { badRequest, unsupportedMediaType, alreadyExists, conflict, MODIFIED, notFound } from '../status.ts';
import { apiVersionOf, gvkString, metadataOf, timeText } from '../../kube/object.ts';
import { StoreError, type StoredEntry, type StoreErrorCode } from '../storage/store.ts';
import { applyFields, withManagedFields } from '../patch/managed-fields.ts';
import { memberSchema, type Schema } from '../schema/object-schema.ts';
import type { WriteOptions } from './query-options.ts';

/** The patch type of a Content-Type; throws 415 for one that the kind does not support. */
export function patchKindOf(definition: ResourceDefinition, contentType: string): PatchKind {
  const kinds = patchKindsOf(definition);
  const sent = kinds.find((kind) => PATCH_MEDIA[kind] === contentType);
  if (sent) return sent;
  throw unsupportedMediaType(kinds.map((kind) => PATCH_MEDIA[kind]));
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
  const { value: patch, duplicates, numbers } = await patchFor(registry, target, request);
  const problems = problemsOf(request.kind, patch, duplicates);
  return registry.modify(
    target,
    async (entry) => {
      const form = currentForm(target.definition, entry);
      const current = presented(target.definition, form, String(entry.revision)) as JsonObject; // a view is JSON
      const patched = patchedBody(target, current, request.kind, patch);
      checkPatched(target, current, patched);
      // The paths of operations are others than those of the object.
      const parsed = {
        value: patched,
        duplicates: problems,
        numbers: request.kind === 'json' ? undefined : numbers,
      };
      const body = decodePatched(target.definition, parsed, request);
      return registry.writer.replace(target, entry, body, request.context);
    },
    pinsVersion(patch),
  );
}

async function patchFor(
  registry: ObjectRegistry,
  target: Target,
  request: PatchRequest,
): Promise<ParsedBody> {
  try {
    return parsePatch(request);
  } catch (error) {
    // A missing object is reported before an invalid patch.
    await registry.get(target);
    throw error;
  }
}

function parsePatch({ kind, text: patchText }: PatchRequest): ParsedBody {
  let parsed: ParsedBody;
  try {
    parsed = parseJsonText(patchText);
  } catch (error) {
    if (error instanceof DecodeError) throw badRequest(`error decoding patch: ${error.message}`);
    throw error;
  }
  const { value: patch } = parsed;
  if (kind !== 'json' && !isJsonObject(patch)) {
    const type = Array.isArray(patch) ? 'array' : typeof patch;
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${type} into Go value of type map[string]interface {}`,
    );
  }
  return parsed;
}

function problemsOf(kind: PatchKind, patch: JsonValue, duplicates: readonly string[]): readonly string[] {
  if (kind !== 'json') return duplicates;
  const unknown = unknownInOperations(patch).map((path) => `unknown field ${JSON.stringify(path)}`);
  return [...duplicates, ...unknown].map((problem) => `json patch ${problem}`);
}

function patchedBody(target: Target, current: JsonObject, kind: PatchKind, patch: JsonValue): JsonObject {
  const copy = cloneJson(current);
  if (kind === 'json') return applyJsonPatch(copy, patch);
  if (!isJsonObject(patch)) return copy;
  const { strategicMerge, schema } = target.definition;
  return kind === 'strategic' && strategicMerge
    ? strategicMerge(schema, copy, patch)
    : mergePatch(copy, patch);
}

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

interface PatchingRequest {
  readonly options: WriteOptions;
  readonly context: WriteContext;
  readonly warn: (text: string) => void;
}

export interface ApplyRequest extends PatchingRequest {
  readonly sent: ParsedBody;
}

/** Applies the configuration to the fields that the manager owns; creates the object if it does not exist. */
export async function applyObject(
  registry: ObjectRegistry,
  target: Target,
  request: ApplyRequest,
): Promise<Written> {
  const { definition, name } = target;
  const { sent } = request;
  const body = isJsonObject(sent.value) ? sent.value : {};
  checkApplied(target, body);
  const config = decodeBody(definition, sent, request.options.fieldValidation, request.warn);
  const applied = asSent(definition.schema, config, body);
  for (let attempt = 1; ; attempt++) {
    const entry = await registry.find(target);
    try {
      if (!entry && target.subresource) throw notFound(groupName(definition), name);
      if (!entry) return await applyNew(registry, target, applied, request);
      return await applyExisting(registry, target, entry, applied, request);
    } catch (error) {
      if (!(error instanceof StoreError) || !RACES.has(error.code)) throw error;
      if (attempt < APPLY_ATTEMPTS) continue;
      throw error.code === 'exists'
        ? alreadyExists(groupName(definition), name)
        : conflict(groupName(definition), name, MODIFIED);
    }
  }
}

const APPLY_ATTEMPTS = 5;
/** Another write came first: a retry reads its result. */
const RACES: ReadonlySet<StoreErrorCode> = new Set(['exists', 'missing', 'conflict']);

function checkApplied(target: Target, body: JsonObject): void {
  const { definition } = target;
  const [apiVersion, kind] = [text(body, 'apiVersion'), text(body, 'kind')];
  if (apiVersion !== apiVersionOf(definition) || kind !== definition.kind) {
    const [group = '', version = ''] = apiVersion.includes('/') ? apiVersion.split('/', 2) : ['', apiVersion];
    throw badRequest(`invalid object type: ${gvkString({ group, version, kind })}`);
  }
  const { managedFields, name } = metadataOf(body);
  if (managedFields !== undefined && managedFields !== null) {
    throw badRequest('metadata.managedFields must be nil');
  }
  rejectOtherNamespace(target, body);
  // A missing name defaults to that of the URL.
  checkName(target, name === undefined ? { metadata: { ...metadataOf(body), name: target.name } } : body);
}

async function applyNew(
  registry: ObjectRegistry,
  target: Target,
  config: JsonObject,
  { context }: PatchingRequest,
): Promise<Written> {
  const { definition, namespace, name } = target;
  const uid = text(metadataOf(config), 'uid');
  if (uid !== '') {
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
    throw conflict(groupName(definition), name, why);
  }
  await registry.admission.beforeCreate?.(definition, namespace, name);
  const writer = registry.writer.fieldWriter(definition, 'Apply', context.manager);
  const live = emptyObject(definition.schema);
  const { object, managedFields } = applyFields(definition, { live, config, isForced: true }, writer);
  const now = timeText(registry.clock.now());
  const created: JsonObject = { ...object, metadata: createdMetadata(metadataOf(object), target, now) };
  definition.applyDefaults(created);
  return registry.writer.insertPrepared(target, withManagedFields(created, managedFields), context);
}

async function applyExisting(
  registry: ObjectRegistry,
  target: Target,
  entry: StoredEntry,
  applied: JsonObject,
  { context, options }: PatchingRequest,
): Promise<Written> {
  const { definition, name } = target;
  const version = requestedVersion(applied);
  if (version !== '' && version !== String(entry.revision)) {
    throw conflict(groupName(definition), name, MODIFIED);
  }
  const live = currentForm(definition, entry);
  const writer = registry.writer.fieldWriter(definition, 'Apply', context.manager, target.subresource);
  const result = applyFields(definition, { live, config: applied, isForced: options.isForced }, writer);
  const object = cloneJson(result.object);
  definition.applyDefaults(object);
  const next = withManagedFields(object, result.managedFields);
  return registry.writer.replacePrepared(target, entry, next, context);
}

/** `decoded` with exactly the members of `sent`: the manager did not apply what decoding adds, and did apply what decoding omits. */
function asSent(schema: Schema, decoded: JsonValue | undefined, sent: JsonValue): JsonObject {
  const result = sentValue(schema, decoded, sent);
  return isJsonObject(result) ? result : {};
}

function sentValue(schema: Schema, decoded: JsonValue | undefined, sent: JsonValue): JsonValue {
  if (schema.type === 'scalar') return decoded ?? sent;
  if (schema.type === 'list') {
    const items = Array.isArray(decoded) ? decoded : [];
    return Array.isArray(sent)
      ? sent.map((item, index) => sentValue(schema.items, items[index], item))
      : sent;
  }
  if (!isJsonObject(sent)) return decoded ?? sent;
  const values = isJsonObject(decoded) ? decoded : {};
  const result: JsonObject = {};
  for (const key of Object.keys(sent)) {
    const inner = memberSchema(schema, key);
    const value = sent[key] ?? null;
    if (inner && value !== null) setOwn(result, key, sentValue(inner, ownValue(values, key), value));
  }
  return result;
}
