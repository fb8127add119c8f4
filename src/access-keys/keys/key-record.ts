/** A stored key as authentication and the collector need it: parsed once per change, not once per request. */

import { metadataOf } from '../../kube/object.ts';
import type { UserInfo } from '../../apiserver/user.ts';
import { isJsonObject, type JsonObject, listField, objectField, objectList, text } from '../../base/json.ts';
import type { StoredEntry } from '../../apiserver/storage/store.ts';
import { AUTHENTICATED, EXTRA, subjectOf, type KeyRecord } from '../identity.ts';
import { keyBytes } from './key-validation.ts';
import { credentialsOf, tokenGenerationOf, type Lifetime } from './stored-key.ts';
import type { StoredCredential } from '../credentials/access-key.ts';

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly isBlocking: boolean;
}

/** A key that is being deleted. */
interface Deletion {
  /** Epoch milliseconds: the object is not removed before. */
  readonly dueMs: number;
  readonly hasGrace: boolean;
}

/** Immutable: each change of the object creates a new record. */
export interface IndexedKey extends KeyRecord, Lifetime {
  readonly revision: number;
  /** As stored. */
  readonly bytes: number;
  /** The newest first; several after a rotation. */
  readonly credentials: readonly IndexedCredential[];
  /** `status.lastActivity` of the stored object. */
  readonly writtenActivityMs: number | undefined;
  readonly deletion: Deletion | undefined;
  readonly finalizers: readonly string[];
  readonly owners: readonly OwnerReference[];
}

/** A secret of a key. */
export interface IndexedCredential {
  readonly id: string;
  readonly digest: Buffer;
  /** Epoch milliseconds: the end of its overlap. Undefined: it is the current secret. */
  readonly untilMs: number | undefined;
  /** The user of the key; for a rotated key with the id of the secret among the extras. */
  readonly user: UserInfo;
}

/** A key after and before a change; undefined: it did not exist. */
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
  const user = userOf(value, tokenGeneration);
  return {
    name: key.name,
    uid: text(metadata, 'uid'),
    user,
    scope: isJsonObject(scope) ? scope : undefined,
    isDisabled: spec['disabled'] === true,
    isDeleted: deletion?.hasGrace === false,
    ...(holdsOidcData(value) ? { holdsOidcData: true } : {}),
    tokenGeneration,
    revision,
    bytes: keyBytes(value),
    credentials: indexedCredentials(value, user),
    createdMs: Date.parse(text(metadata, 'creationTimestamp')),
    ttlMs: Number(spec['ttl'] ?? 0) * 1000,
    isAfterActivity: spec['ttlAfterLastActivity'] === true,
    writtenActivityMs: timeMs(text(objectField(value, 'status'), 'lastActivity')),
    deletion,
    finalizers: listField(metadata, 'finalizers').filter((name) => typeof name === 'string'),
    owners: objectList(metadata, 'ownerReferences').map(ownerOf),
  };
}

function indexedCredentials(value: JsonObject, user: UserInfo): IndexedCredential[] {
  const { current, replaced } = credentialsOf(value);
  const indexed = ({ id, digest }: StoredCredential, untilMs: number | undefined): IndexedCredential => ({
    id,
    digest: Buffer.from(digest, 'base64'),
    untilMs,
    user: replaced.length === 0 ? user : { ...user, extra: { ...user.extra, [EXTRA.credentialId]: [id] } },
  });
  return [
    indexed(current, undefined),
    ...replaced.map((credential) => indexed(credential, credential.untilMs)),
  ];
}

/** The user that the key authenticates. */
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

/** Whether the key has data of an OpenID Connect login, which other keys of the user share through their parent. */
function holdsOidcData(value: JsonObject): boolean {
  const { oidcLogin, oidcProvider } = objectField(value, 'spec');
  const sealed = Object.keys(objectField(value, 'sealed'));
  const isFilled = (part: unknown): boolean => isJsonObject(part) && Object.keys(part).length > 0;
  return (
    isFilled(oidcLogin) || isFilled(oidcProvider) || sealed.some((name) => name.startsWith('oidcLogin.'))
  );
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
