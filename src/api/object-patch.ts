/** PATCH: the four patch types on top of the registry's updates. */

import {
  cloneJson,
  isJsonObject,
  jsonEquals,
  ownValue,
  setOwn,
  type JsonObject,
  type JsonValue,
} from '../lib/json.ts';
import { StatusError } from '../kube/status-error.ts';
import { apiVersionOf, gvkString } from '../kube/object.ts';
import { applyFields, withManagedFields } from './fields/managed-fields.ts';
import { createdMetadata } from './object-metadata.ts';
import { currentForm, groupName, type ObjectRegistry, type Target, type Written } from './object-registry.ts';
import { applyJsonPatch } from './patch/json-patch.ts';
import { mergePatch } from './patch/merge-patch.ts';
import { strategicMerge } from './patch/strategic-merge.ts';
import { decodeBody, parseJsonText, parseYaml, type Warn } from './read-body.ts';
import type { PatchKind, ResourceDefinition } from './resource-definition.ts';
import { DecodeError, emptyObject } from './schema/decode.ts';
import { timeText } from './schema/scalars.ts';
import { memberSchema, type Schema } from './schema/schema.ts';
import { alreadyExists, badRequest, conflict, failure, MODIFIED } from './status.ts';
import { StoreError, type StoredEntry } from '../store/types.ts';
import { metadataOf, text } from './validation/metadata.ts';
import type { WriteOptions } from './write-options.ts';

const PATCH_TYPES: Readonly<Record<string, PatchKind>> = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
  'application/apply-patch+yaml': 'apply',
};

/** The patch type of a Content-Type; throws 415 for one that the kind does not take. */
export function patchKindOf(definition: ResourceDefinition, contentType: string): PatchKind {
  const kind = PATCH_TYPES[contentType];
  if (kind && definition.patchKinds.includes(kind)) return kind;
  throw failure(415, 'UnsupportedMediaType', '415: Unsupported Media Type', {});
}

export interface PatchRequest {
  readonly kind: PatchKind;
  readonly text: string;
  readonly options: WriteOptions;
  /** Who writes: the field manager, or what stands for it. */
  readonly manager: string;
  readonly warn: Warn;
}

export async function patchObject(
  registry: ObjectRegistry,
  target: Target,
  request: PatchRequest,
): Promise<Written> {
  if (request.kind === 'apply') return applyObject(registry, target, request);
  const patch = parsePatch(request);
  const context = { manager: request.manager, isDryRun: request.options.isDryRun };
  return registry.modify(
    target,
    async (current, entry) => {
      const patched = patchedBody(target, current, request.kind, patch);
      checkPatched(target, current, patched);
      const body = decodePatched(target.definition, patched, request);
      return registry.replace(target, entry, body, context);
    },
    pinsVersion(patch),
  );
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

function patchedBody(target: Target, current: JsonObject, kind: PatchKind, patch: JsonValue): JsonObject {
  const copy = cloneJson(current);
  if (kind === 'json') return applyJsonPatch(copy, patch);
  if (!isJsonObject(patch)) return copy;
  return kind === 'merge' ? mergePatch(copy, patch) : strategicMerge(target.definition.schema, copy, patch);
}

/** A patch cannot make another object of it. */
function checkPatched(target: Target, current: JsonObject, patched: JsonObject): void {
  for (const field of ['apiVersion', 'kind']) {
    if (!jsonEquals(patched[field], current[field])) {
      throw patchRefused(`${field}: the patch must not change it`);
    }
  }
  checkName(target, patched);
}

/** The body's name must be that of the URL. */
export function checkName(target: Target, body: JsonObject): void {
  const metadata = metadataOf(body);
  const name = text(metadata, 'name');
  if (name === '') {
    throw badRequest(
      `the name of the object (${target.name} based on URL) was undeterminable: name must be provided`,
    );
  }
  if (name !== target.name) {
    throw badRequest(`the name of the object (${name}) does not match the name on the URL (${target.name})`);
  }
  const namespace = text(metadata, 'namespace');
  if (target.definition.isNamespaced && namespace !== '' && namespace !== target.namespace) {
    throw badRequest(
      `the namespace of the object (${namespace}) does not match the namespace on the URL (${target.namespace})`,
    );
  }
}

/** The real server prints the whole object here; an object may hold a secret, so only the reason is told. */
function patchRefused(why: string): Error {
  const message = `Invalid value: ${why}`;
  return failure(422, 'Invalid', ` "" is invalid: patch: ${message}`, {
    causes: [{ reason: 'FieldValueInvalid', message, field: 'patch' }],
  });
}

function decodePatched(
  definition: ResourceDefinition,
  patched: JsonObject,
  { options, warn }: PatchRequest,
): JsonObject {
  try {
    return decodeBody(definition, { value: patched, duplicates: [] }, options.fieldValidation, warn);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    throw patchRefused(error.message.replace(/^.*? cannot be handled as a [^:]*: /, ''));
  }
}

/** The patch itself says which version it is for: then another version is a conflict, not a reason to try again. */
function pinsVersion(patch: JsonValue): boolean {
  if (Array.isArray(patch)) {
    return patch.some(
      (operation) => isJsonObject(operation) && operation['path'] === '/metadata/resourceVersion',
    );
  }
  return isJsonObject(patch) && text(metadataOf(patch), 'resourceVersion') !== '';
}

async function applyObject(
  registry: ObjectRegistry,
  target: Target,
  request: PatchRequest,
): Promise<Written> {
  const { definition, name } = target;
  const sent = parseYaml(definition.kind, request.text);
  const body = isJsonObject(sent) ? sent : {};
  checkApplied(target, body);
  const config = decodeBody(
    definition,
    { value: body, duplicates: [] },
    request.options.fieldValidation,
    request.warn,
  );
  const applied = asSent(definition.schema, config, body);
  for (let attempt = 1; ; attempt++) {
    const entry = await registry.store.get({
      resource: definition.storage,
      namespace: target.namespace,
      name,
    });
    try {
      if (!entry) return await applyNew(registry, target, applied, request);
      return await applyExisting(registry, target, { entry, applied }, request);
    } catch (error) {
      const isRace = error instanceof StoreError && error.code !== 'closed';
      if (!isRace) throw error;
      if (attempt < APPLY_ATTEMPTS) continue;
      throw error.code === 'exists'
        ? alreadyExists(groupName(definition), name)
        : conflict(groupName(definition), name, MODIFIED);
    }
  }
}

const APPLY_ATTEMPTS = 5;

function checkApplied(target: Target, body: JsonObject): void {
  const { definition } = target;
  const [apiVersion, kind] = [text(body, 'apiVersion'), text(body, 'kind')];
  if (apiVersion !== apiVersionOf(definition) || kind !== definition.kind) {
    const [group = '', version = ''] = apiVersion.includes('/') ? apiVersion.split('/', 2) : ['', apiVersion];
    throw badRequest(`invalid object type: ${gvkString({ group, version, kind })}`);
  }
  if (metadataOf(body)['managedFields'] !== undefined) throw badRequest('metadata.managedFields must be nil');
  checkName(target, body);
}

async function applyNew(
  registry: ObjectRegistry,
  target: Target,
  config: JsonObject,
  { manager, options }: PatchRequest,
): Promise<Written> {
  const { definition, namespace, name } = target;
  const uid = text(metadataOf(config), 'uid');
  if (uid !== '') {
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
    throw conflict(groupName(definition), name, why);
  }
  await registry.admission.beforeCreate(definition, namespace, name);
  const writer = registry.writer(definition, 'Apply', manager);
  const live = emptyObject(definition.schema);
  const { object, managedFields } = applyFields(definition, { live, config, isForced: true }, writer);
  const now = timeText(registry.clock.now());
  const created: JsonObject = { ...object, metadata: createdMetadata(metadataOf(object), target, now) };
  definition.applyDefaults(created);
  return registry.insertPrepared(target, withManagedFields(created, managedFields), {
    manager,
    isDryRun: options.isDryRun,
  });
}

async function applyExisting(
  registry: ObjectRegistry,
  target: Target,
  { entry, applied }: { entry: StoredEntry; applied: JsonObject },
  { manager, options }: PatchRequest,
): Promise<Written> {
  const { definition, name } = target;
  const asked = text(metadataOf(applied), 'resourceVersion');
  if (asked !== '' && asked !== String(entry.revision)) {
    throw conflict(groupName(definition), name, MODIFIED);
  }
  const live = currentForm(definition, entry);
  const writer = registry.writer(definition, 'Apply', manager, target.subresource);
  const result = applyFields(definition, { live, config: applied, isForced: options.isForced }, writer);
  const object = cloneJson(result.object);
  definition.applyDefaults(object);
  return registry.replacePrepared(target, entry, withManagedFields(object, result.managedFields), {
    manager,
    isDryRun: options.isDryRun,
  });
}

/** `decoded` with exactly the members that `sent` has: what decoding adds was applied by nobody, what it leaves out by somebody. */
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
