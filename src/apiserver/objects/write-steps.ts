/** The pure steps of a write: merging, canonical form, generation, validation. */

import { cloneJson, jsonEquals, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { ResourceDefinition } from './resource-definition.ts';
import { decodeObject } from '../schema/decode.ts';
import { invalid } from '../status.ts';
import { failure } from '../../kube/status-error.ts';
import { kindName, type Target } from './target.ts';
import { metadataOf, objectList, text, validateMetadata, validateMetadataUpdate } from '../metadata.ts';

/** The body merged into the previous state: a subresource changes only its part, a write to the object keeps the status. */
export function mergedFor(
  { definition, subresource }: Target,
  previous: JsonObject,
  body: JsonObject,
): JsonObject {
  // Parts of the stored object are cloned, because the next steps change the result.
  if (subresource) return cloneJson(subresource.merge(previous, body));
  if (!definition.hasStatus) return { ...body };
  const { status: _ignored, ...rest } = body;
  const status: JsonValue | undefined = previous['status'];
  return status === undefined ? rest : { ...rest, status: cloneJson(status) };
}

/** The object with its defaults, in canonical form. */
export function canonical(definition: ResourceDefinition, object: JsonObject): JsonObject {
  return decodeObject(definition.schema, object).value;
}

/**
 * Nothing differs except the times of `managedFields`, so nothing is written. Both arguments are in stored form: only there a secret that is
 * sent again equals the stored one.
 */
export function isNoOpUpdate(next: JsonObject, stored: JsonObject): boolean {
  return jsonEquals(next, stored) || jsonEquals(timeless(next), timeless(stored));
}

function timeless(object: JsonObject): JsonObject {
  const { managedFields: _entries, ...metadata } = metadataOf(object);
  const entries = objectList(metadataOf(object), 'managedFields').map(({ time: _time, ...entry }) => entry);
  return { ...object, metadata: { ...metadata, managedFields: entries } };
}

export function withGeneration(object: JsonObject, generation: number): JsonObject {
  return { ...object, metadata: { ...metadataOf(object), generation } };
}

/** The deletion has begun, and neither a grace period nor finalizers prevent the removal. */
export function isDeletionComplete(definition: ResourceDefinition, object: JsonObject): boolean {
  const metadata = metadataOf(object);
  if (text(metadata, 'deletionTimestamp') === '') return false;
  const grace = metadata['deletionGracePeriodSeconds'];
  return !definition.strategy.holdsDeletion(object) && (grace === undefined || grace === 0);
}

export function rejectInvalid(target: Target, next: JsonObject, previous: JsonObject | undefined): void {
  const { definition } = target;
  const errors = [
    ...(previous ? validateMetadataUpdate(metadataOf(next), metadataOf(previous)) : []),
    ...validateMetadata(metadataOf(next), definition),
    ...definition.validate(next, previous),
  ];
  if (errors.length === 0) return;
  throw invalid(kindName(definition), text(metadataOf(next), 'name'), errors);
}

/** The resourceVersion that a write requires; `''`: any. `0` means any too. */
export function requestedVersion(body: JsonObject): string {
  const version = text(metadataOf(body), 'resourceVersion');
  return version === '0' ? '' : version;
}

/** A create must not carry a resourceVersion. */
export function rejectResourceVersion(body: JsonObject): void {
  if (requestedVersion(body) !== '') {
    throw failure(500, '', 'resourceVersion should not be set on objects to be created');
  }
}
