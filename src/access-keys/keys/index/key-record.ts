/** A stored key as authentication and the collector need it: read once per change, not once per request. */

import type { UserInfo } from '../../../apiserver/request/user.ts';
import {
  listField,
  metadataOf,
  objectField,
  objectList,
  text,
} from '../../../apiserver/validation/metadata.ts';
import { isJsonObject, type JsonObject } from '../../../base/json.ts';
import type { StoredEntry } from '../../../apiserver/storage/store.ts';
import { AUTHENTICATED, EXTRA, subjectOf } from '../../identity.ts';
import type { KeyRecord } from '../../types.ts';
import type { Lifetime } from '../lifecycle/key-expiry.ts';
import { credentialsOf, tokenGenerationOf } from '../stored/stored-key.ts';
import type { StoredCredential } from '../../credentials/key-digests.ts';

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
  /** The newest first; more than one after a rotation. */
  readonly credentials: readonly IndexedCredential[];
  /** `status.lastActivity` as it was written into the object itself. */
  readonly writtenActivityMs: number | undefined;
  readonly deletion: Deletion | undefined;
  readonly finalizers: readonly string[];
  readonly owners: readonly OwnerReference[];
}

/** A secret of a key. */
export interface IndexedCredential {
  readonly id: string;
  readonly digest: Buffer;
  /** Epoch milliseconds: from then on it no longer works. Undefined: it works as long as the key does. */
  readonly untilMs: number | undefined;
  /** The user of the key; of a rotated key, with the id of the secret among the extras. */
  readonly user: UserInfo;
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

/** Of a login by OpenID Connect: what other keys of the user share by naming this key as their parent. */
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
