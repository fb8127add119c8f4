/** What becomes of an object on its way into the store: merged, in canonical form, counted, validated. */

import { cloneJson, jsonEquals, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { ResourceDefinition } from './resource-definition.ts';
import { decodeObject } from '../schema/decode.ts';
import { failure, invalid } from '../status.ts';
import { kindName, type Target } from '../request/target.ts';
import {
  metadataOf,
  objectList,
  text,
  validateMetadata,
  validateMetadataUpdate,
} from '../validation/metadata.ts';

/** What is to be stored: a subresource changes only its part, and the object itself leaves the status alone. */
export function mergedFor(
  { definition, subresource }: Target,
  previous: JsonObject,
  body: JsonObject,
): JsonObject {
  // Cloned where it comes from the store: what follows may change it.
  if (subresource) return cloneJson(subresource.merge(previous, body));
  if (!definition.hasStatus) return { ...body };
  const { status: _ignored, ...rest } = body;
  const status: JsonValue | undefined = previous['status'];
  return status === undefined ? rest : { ...rest, status: cloneJson(status) };
}

/** In the form in which the kind is stored, whatever defaults have added. */
export function canonical(definition: ResourceDefinition, object: JsonObject): JsonObject {
  return decodeObject(definition.schema, object).value;
}

/**
 * Nothing differs but when somebody wrote it: no write at all. Who counts fields does not see what the kind fills in by itself, nor that a secret
 * which is sent again is the one that is stored.
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

/** Nothing holds back the deletion any more. */
export function isDeletionComplete(definition: ResourceDefinition, object: JsonObject): boolean {
  const metadata = metadataOf(object);
  if (text(metadata, 'deletionTimestamp') === '') return false;
  const grace = metadata['deletionGracePeriodSeconds'];
  return !definition.holdsDeletion(object) && (grace === undefined || grace === 0);
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

/** The resourceVersion that a write is for; `''`: any. `0`, which no object has, says the same. */
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
