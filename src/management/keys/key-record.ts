/** A stored key as authentication and the collector need it: read once per change, not once per request. */

import type { UserInfo } from '../../api/user.ts';
import { listField, metadataOf, objectField, objectList, text } from '../../api/validation/metadata.ts';
import { isJsonObject, type JsonObject } from '../../lib/json.ts';
import type { StoredEntry } from '../../store/types.ts';
import { AUTHENTICATED, EXTRA, subjectOf } from '../identity.ts';
import type { KeyRecord } from '../types.ts';
import type { Lifetime } from './key-expiry.ts';
import { credentialOf, tokenGenerationOf } from './stored-key.ts';

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly isBlocking: boolean;
}

/** A key that is being deleted. */
export interface Deletion {
  /** Epoch milliseconds: no earlier does the object go. */
  readonly dueMs: number;
  readonly hasGrace: boolean;
}

/** Immutable: a change of the object makes another one. */
export interface IndexedKey extends KeyRecord, Lifetime {
  readonly revision: number;
  readonly credentialId: string;
  readonly digest: Buffer;
  /** `status.lastActivity` as it was written into the object itself. */
  readonly writtenActivityMs: number | undefined;
  readonly deletion: Deletion | undefined;
  readonly finalizers: readonly string[];
  readonly owners: readonly OwnerReference[];
}

/** A key as it is and as it was; one of them may be missing. */
export interface KeyChange {
  readonly now: IndexedKey | undefined;
  readonly before: IndexedKey | undefined;
}

export function indexedKey({ key, value, revision }: StoredEntry): IndexedKey {
  const metadata = metadataOf(value);
  const spec = objectField(value, 'spec');
  const { scope } = spec;
  const deletion = deletionOf(metadata);
  const tokenGeneration = tokenGenerationOf(value);
  const { id, digest } = credentialOf(value);
  return {
    name: key.name,
    uid: text(metadata, 'uid'),
    user: userOf(value, tokenGeneration),
    scope: isJsonObject(scope) ? scope : undefined,
    isDisabled: spec['disabled'] === true,
    isDeleted: deletion !== undefined,
    tokenGeneration,
    revision,
    credentialId: id,
    digest: Buffer.from(digest, 'base64'),
    createdMs: Date.parse(text(metadata, 'creationTimestamp')),
    ttlMs: Number(spec['ttl'] ?? 0) * 1000,
    isAfterActivity: spec['ttlAfterLastActivity'] === true,
    writtenActivityMs: timeMs(text(objectField(value, 'status'), 'lastActivity')),
    deletion,
    finalizers: listField(metadata, 'finalizers').filter((name) => typeof name === 'string'),
    owners: objectList(metadata, 'ownerReferences').map(ownerOf),
  };
}

/** Who a caller with this key is. */
function userOf(value: JsonObject, tokenGeneration: number): UserInfo {
  const spec = objectField(value, 'spec');
  const metadata = metadataOf(value);
  const { name, groups } = subjectOf(spec);
  const { scope } = spec;
  return {
    name,
    uid: '',
    groups: [...new Set([...groups, AUTHENTICATED])],
    extra: {
      [EXTRA.keyUid]: [text(metadata, 'uid')],
      [EXTRA.keyName]: [text(metadata, 'name')],
      [EXTRA.generation]: [String(tokenGeneration)],
      ...(isJsonObject(scope) ? { [EXTRA.scope]: [JSON.stringify(scope)] } : {}),
    },
  };
}

function deletionOf(metadata: JsonObject): Deletion | undefined {
  const dueMs = timeMs(text(metadata, 'deletionTimestamp'));
  if (dueMs === undefined) return undefined;
  return { dueMs, hasGrace: Number(metadata['deletionGracePeriodSeconds'] ?? 0) > 0 };
}

function ownerOf(reference: JsonObject): OwnerReference {
  return {
    apiVersion: text(reference, 'apiVersion'),
    kind: text(reference, 'kind'),
    name: text(reference, 'name'),
    uid: text(reference, 'uid'),
    isBlocking: reference['blockOwnerDeletion'] === true,
  };
}

function timeMs(time: string): number | undefined {
  return time === '' ? undefined : Date.parse(time);
}
