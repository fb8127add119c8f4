/** Metadata that the server maintains: identity, times, generation. */

import { randomUUID } from 'node:crypto';
import { jsonEquals, type JsonObject } from '../../base/json.ts';
import type { Random } from '../../base/random.ts';
import { LABEL_LENGTH_MAX } from '../../kube/names.ts';
import type { ResourceDefinition } from './resource-definition.ts';
import type { Target } from './target.ts';
import { duplicateOwners, metadataOf, objectField, objectList, text } from '../metadata.ts';

/** The alphabet of Kubernetes: without vowels, so that no words appear. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;
const PREFIX_LENGTH_MAX = LABEL_LENGTH_MAX - SUFFIX_LENGTH;

/** The prefix, cut so that the name fits a label, and five random letters. */
export function generatedName(prefix: string, random: Random): string {
  let suffix = '';
  for (let i = 0; i < SUFFIX_LENGTH; i++) {
    suffix += SUFFIX_ALPHABET.charAt(Math.floor(random() * SUFFIX_ALPHABET.length));
  }
  return prefix.slice(0, PREFIX_LENGTH_MAX) + suffix;
}

/** Metadata fields that a client may set on a new object. */
const CLIENT_FIELDS = ['labels', 'annotations', 'ownerReferences', 'finalizers'];

export function createdMetadata(sent: JsonObject, target: Target, now: string): JsonObject {
  const metadata: JsonObject = { name: target.name };
  if (text(sent, 'generateName') !== '') metadata['generateName'] = text(sent, 'generateName');
  if (target.definition.isNamespaced) metadata['namespace'] = target.namespace;
  metadata['uid'] = randomUUID();
  metadata['creationTimestamp'] = now;
  for (const field of CLIENT_FIELDS) {
    const value = sent[field];
    if (value !== undefined) metadata[field] = value;
  }
  return withoutDuplicateOwners(metadata);
}

/** The client's metadata with the fields restored that a client cannot change. */
export function keptMetadata(sent: JsonObject, previous: JsonObject): JsonObject {
  const metadata: JsonObject = {};
  for (const field of ['name', 'generateName']) {
    const value = sent[field];
    if (value !== undefined) metadata[field] = value;
  }
  if (previous['namespace'] !== undefined) metadata['namespace'] = previous['namespace'];
  metadata['uid'] = text(sent, 'uid') === '' ? text(previous, 'uid') : text(sent, 'uid');
  if (previous['generation'] !== undefined) metadata['generation'] = previous['generation'];
  metadata['creationTimestamp'] = text(previous, 'creationTimestamp');
  const wasDeleting = text(previous, 'deletionTimestamp') !== '';
  const deletion = wasDeleting ? previous['deletionTimestamp'] : sent['deletionTimestamp'];
  if (deletion !== undefined && deletion !== null) metadata['deletionTimestamp'] = deletion;
  const grace = sent['deletionGracePeriodSeconds'] ?? previous['deletionGracePeriodSeconds'];
  if (grace !== undefined && grace !== null) metadata['deletionGracePeriodSeconds'] = grace;
  for (const field of [...CLIENT_FIELDS, 'managedFields']) {
    const value = sent[field];
    if (value !== undefined) metadata[field] = value;
  }
  return withoutDuplicateOwners(metadata);
}

function withoutDuplicateOwners(metadata: JsonObject): JsonObject {
  if (duplicateOwners(metadata).length === 0) return metadata;
  const firstOfUid = new Map<string, JsonObject>();
  for (const owner of objectList(metadata, 'ownerReferences')) {
    const uid = text(owner, 'uid');
    if (!firstOfUid.has(uid)) firstOfUid.set(uid, owner);
  }
  return { ...metadata, ownerReferences: [...firstOfUid.values()] };
}

/** Incremented by any change outside of metadata and status; for some kinds also by a change of labels. */
export function nextGeneration(
  { strategy }: ResourceDefinition,
  next: JsonObject,
  previous: JsonObject,
): number {
  const before = Number(metadataOf(previous)['generation'] ?? 0);
  const { metadata: _next, status: _nextStatus, ...content } = next;
  const { metadata: _previous, status: _status, ...previousContent } = previous;
  const isSame =
    jsonEquals(content, previousContent) &&
    (!strategy.countsLabels || jsonEquals(labelsOf(next), labelsOf(previous)));
  return isSame ? before : before + 1;
}

function labelsOf(object: JsonObject): JsonObject {
  return objectField(metadataOf(object), 'labels');
}
