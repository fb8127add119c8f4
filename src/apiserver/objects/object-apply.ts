/** Server-side apply on top of the registry. */

import { apiVersionOf, gvkString } from '../../kube/object.ts';
import {
  cloneJson,
  isJsonObject,
  ownValue,
  setOwn,
  type JsonObject,
  type JsonValue,
} from '../../base/json.ts';
import { StoreError, type StoredEntry, type StoreErrorCode } from '../storage/store.ts';
import { applyFields, withManagedFields } from '../fields/managed-fields.ts';
import { createdMetadata } from './object-metadata.ts';
import type { ObjectRegistry } from './object-registry.ts';
import type { WriteContext, Written } from './object-writer.ts';
import { decodeBody, type ParsedBody, type Warn } from './decode-body.ts';
import { emptyObject } from '../schema/decode.ts';
import { timeText } from '../schema/scalars.ts';
import { memberSchema, type Schema } from '../schema/object-schema.ts';
import { alreadyExists, badRequest, conflict, MODIFIED, notFound } from '../status.ts';
import { checkName, currentForm, groupName, rejectOtherNamespace, type Target } from './target.ts';
import { metadataOf, text } from '../metadata.ts';
import type { WriteOptions } from './write-options.ts';
import { requestedVersion } from './write-steps.ts';

/** What all types of patches have in common. */
export interface PatchingRequest {
  readonly options: WriteOptions;
  readonly context: WriteContext;
  readonly warn: Warn;
}

export interface ApplyRequest extends PatchingRequest {
  /** The applied configuration as the client sent it. */
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
