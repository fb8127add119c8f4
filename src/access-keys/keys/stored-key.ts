/**
 * The stored form of a key: the object as clients see it, plus the digests of its current and rotated secrets, its sealed fields, and the
 * token generation. None of these is part of a view.
 */

import { isTimeMs, metadataOf, timeText } from '../../kube/object.ts';
import type { Overlay, ObjectView } from '../../apiserver/objects/resource-definition.ts';
import { invariant } from '../../base/errors.ts';
import {
  cloneJson,
  jsonEquals,
  type JsonObject,
  isJsonObject,
  numberField,
  objectField,
  objectList,
  text,
} from '../../base/json.ts';
import {
  generateAccessKey,
  type RandomBytes,
  isSameDigest,
  type KeyDigests,
  type StoredCredential,
} from '../credentials/access-key.ts';
import type { Seal } from '../credentials/master-key.ts';
import { FieldSet, fromFieldsV1, toFieldsV1 } from '../../apiserver/patch/field-set.ts';

/** A change of one of these fields invalidates the tokens of the key. */
const TOKEN_FIELDS = [
  'disabled',
  'scope',
  'groups',
  'user',
  'team',
  'subject',
  'type',
  'ttl',
  'ttlAfterLastActivity',
];

interface StoredKeyOptions {
  readonly digests: KeyDigests;
  readonly seal: Seal;
  readonly randomBytes: RandomBytes;
  readonly overlay: Overlay;
}

export class StoredKeys implements ObjectView {
  readonly overlay: Overlay;
  readonly #options: StoredKeyOptions;

  constructor(options: StoredKeyOptions) {
    this.#options = options;
    const { overlay } = options;
    this.overlay = {
      version: (object) => overlay.version(object),
      over: (object) => withExpiry(overlay.over(object)),
    };
  }

  /**
   * Generates the key of a new object. For an existing object, removes secrets that equal the stored ones, so that
   * sending them again is a no-op. A `spec.key` that remains is a different key.
   */
  prepare(next: JsonObject, previous: JsonObject | undefined, stored: JsonObject | undefined): void {
    const spec: JsonObject = { ...objectField(next, 'spec') };
    next['spec'] = spec;
    disownSecrets(next);
    redactLastApplied(next);
    if (previous && stored) {
      this.#removeRepeatedSecrets(spec, stored);
    } else if (text(spec, 'key') === '') {
      spec['key'] = generateAccessKey(this.#options.randomBytes);
    }
  }

  #removeRepeatedSecrets(spec: JsonObject, stored: JsonObject): void {
    const key = text(spec, 'key');
    if (key === '' || this.#isKeyOf(stored, key)) delete spec['key'];
    for (const [owner, field] of SEALED_FIELDS) {
      const { [field]: value, ...rest } = objectField(spec, owner);
      if (value === undefined || value !== (this.#opened(stored, `${owner}.${field}`) ?? '')) continue;
      spec[owner] = rest;
    }
  }

  #isKeyOf(stored: JsonObject, key: string): boolean {
    const presented = this.#options.digests.presented(key);
    const { digest } = credentialsOf(stored).current;
    return presented !== undefined && isSameDigest(Buffer.from(digest, 'base64'), presented.digest);
  }

  #opened(stored: JsonObject, name: string): string | undefined {
    const sealed = text(objectField(stored, 'sealed'), name);
    return sealed === '' ? undefined : this.#options.seal.open(sealed, purposeOf(stored, name));
  }

  toStorage(object: JsonObject, stored: JsonObject | undefined): JsonObject {
    const shown = withoutSealed(object);
    const { key = '', ...spec } = objectField(shown, 'spec');
    invariant(typeof key === 'string' && (stored ?? key !== ''), 'a new access key has no secret');
    const sealed = this.#sealed(object, stored);
    return {
      ...withoutTimes(shown),
      spec,
      ...(stored ? credentialFields(stored) : { credential: { ...this.#options.digests.stored(key) } }),
      tokenGeneration: nextTokenGeneration(spec, stored),
      ...(Object.keys(sealed).length > 0 ? { sealed } : {}),
    };
  }

  #sealed(object: JsonObject, stored: JsonObject | undefined): JsonObject {
    const sealed: JsonObject = {};
    for (const [owner, field] of SEALED_FIELDS) {
      const holder = objectField(object, 'spec')[owner];
      if (!isJsonObject(holder)) continue;
      const name = `${owner}.${field}`;
      const value = holder[field];
      const kept = text(objectField(stored ?? {}, 'sealed'), name);
      if (typeof value === 'string') {
        if (value !== '') sealed[name] = this.#options.seal.seal(value, purposeOf(object, name));
      } else if (kept !== '') sealed[name] = kept;
    }
    return sealed;
  }

  fromStorage(stored: JsonObject): JsonObject {
    const {
      credential: _credential,
      replacedCredentials: _replaced,
      tokenGeneration: _generation,
      sealed: _sealed,
      ...object
    } = stored;
    const [end] = credentialsOf(stored)
      .replaced.map(({ untilMs }) => untilMs)
      .toSorted((a, b) => b - a);
    return end === undefined ? object : withTime(object, 'previousSecretExpiresAt', end);
  }

  /** With the key; never with the other secrets. */
  firstShown(object: JsonObject): JsonObject {
    return withoutSealed(object);
  }
}

// Times in `status` that follow from the rest of the object. They are not stored.

function withExpiry(object: JsonObject): JsonObject {
  const endMs = endOfKey(object);
  return endMs === undefined ? object : withTime(object, 'expiresAt', endMs);
}

/** Without a time that RFC 3339 cannot express: one stored object must not break the list of all. */
function withTime(object: JsonObject, field: string, ms: number): JsonObject {
  if (!isTimeMs(ms)) return object;
  return { ...object, status: { ...objectField(object, 'status'), [field]: timeText(ms) } };
}

function withoutTimes(object: JsonObject): JsonObject {
  const { expiresAt: _end, previousSecretExpiresAt: _previous, ...status } = objectField(object, 'status');
  return { ...object, status };
}

export interface ReplacedCredential extends StoredCredential {
  /** Epoch milliseconds: the end of its overlap. */
  readonly untilMs: number;
}

interface KeyCredentials {
  readonly current: StoredCredential;
  /** Oldest first. */
  readonly replaced: readonly ReplacedCredential[];
}

export function credentialsOf(stored: JsonObject): KeyCredentials {
  return {
    current: credentialIn(objectField(stored, 'credential')),
    replaced: objectList(stored, 'replacedCredentials').map((credential) => ({
      ...credentialIn(credential),
      untilMs: Date.parse(text(credential, 'until')) || 0,
    })),
  };
}

export function withCredentials(stored: JsonObject, { current, replaced }: KeyCredentials): JsonObject {
  return {
    ...stored,
    credential: { ...current },
    replacedCredentials: replaced.map(({ id, digest, untilMs }) => ({
      id,
      digest,
      until: new Date(untilMs).toISOString(),
    })),
  };
}

function credentialIn(credential: JsonObject): StoredCredential {
  return { id: text(credential, 'id'), digest: text(credential, 'digest') };
}

function credentialFields(stored: JsonObject): JsonObject {
  const replaced = objectList(stored, 'replacedCredentials');
  return {
    credential: { ...credentialIn(objectField(stored, 'credential')) },
    ...(replaced.length === 0 ? {} : { replacedCredentials: cloneJson(replaced) }),
  };
}

export function tokenGenerationOf(stored: JsonObject): number {
  const generation = stored['tokenGeneration'];
  return typeof generation === 'number' ? generation : 1;
}

/** A sealed text is bound to one field of one object and cannot be decrypted in another. */
function purposeOf(object: JsonObject, name: string): string {
  return `ownedaccesskeys/${text(metadataOf(object), 'uid')}/spec.${name}`;
}

function nextTokenGeneration(spec: JsonObject, stored: JsonObject | undefined): number {
  if (!stored) return 1;
  const before = objectField(stored, 'spec');
  const isChanged = TOKEN_FIELDS.some((field) => !jsonEquals(spec[field], before[field]));
  return tokenGenerationOf(stored) + (isChanged ? 1 : 0);
}

// The annotation of `kubectl apply` with the applied manifest, which would show secrets to every reader of the object.

export const APPLIED_MANIFEST = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * Removes the key and the other secrets from it; changes `object.metadata`. kubectl sends them again with each apply, which is a no-op.
 * A text that is not JSON is kept: kubectl never writes one.
 */
function redactLastApplied(object: JsonObject): void {
  const metadata = metadataOf(object);
  const annotations = objectField(metadata, 'annotations');
  const manifest = parsed(text(annotations, APPLIED_MANIFEST));
  if (!isJsonObject(manifest?.['spec'])) return;
  const { key: _key, ...spec } = objectField(withoutSealed(manifest), 'spec');
  const redacted = { ...manifest, spec };
  // A manifest without secrets is kept as it is: serialized again it could differ by an escape, and kubectl would report a change.
  if (jsonEquals(manifest, redacted)) return;
  metadata['annotations'] = { ...annotations, [APPLIED_MANIFEST]: `${JSON.stringify(redacted)}\n` };
}

function parsed(manifest: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(manifest);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

// The write-only fields of a key, and their removal from managedFields.

/** The secrets in `spec` that are sealed in the store: a field of the object in `spec` with which it is removed. */
const SEALED_FIELDS = [
  ['identity', 'connectorData'],
  ['oidcLogin', 'idToken'],
  ['oidcLogin', 'accessToken'],
  ['oidcLogin', 'refreshToken'],
] as const;

/** The object without its sealed fields; unchanged parts are shared. */
function withoutSealed(object: JsonObject): JsonObject {
  const spec: JsonObject = { ...objectField(object, 'spec') };
  for (const [owner, field] of SEALED_FIELDS) {
    const { [field]: secret, ...rest } = objectField(spec, owner);
    if (secret !== undefined) spec[owner] = rest;
  }
  return { ...object, spec };
}

const WRITE_ONLY = SEALED_FIELDS.reduce(
  (set, [owner, field]) => set.insert(['f:spec', `f:${owner}`, `f:${field}`]),
  new FieldSet().insert(['f:spec', 'f:key']),
);

/**
 * Removes the write-only fields from `metadata.managedFields`: conflicts about fields that are never returned could not be explained, and
 * `f:key` would claim on every key that its manager had set it. Changes `object.metadata`.
 */
function disownSecrets(object: JsonObject): void {
  const metadata = metadataOf(object);
  if (!Array.isArray(metadata['managedFields'])) return;
  metadata['managedFields'] = objectList(metadata, 'managedFields').flatMap((entry) => {
    const fields = fromFieldsV1(entry['fieldsV1']);
    if (!fields || fields.intersection(WRITE_ONLY).isEmpty) return [entry];
    const left = fields.difference(WRITE_ONLY);
    return left.isEmpty ? [] : [{ ...entry, fieldsV1: toFieldsV1(left) }];
  });
}

// When a key expires.

/** Time that expired keys are kept, so that a wrong clock deletes none: requests that use them fail. */
export const KEEP_EXPIRED_MS = 7 * 86_400_000;

/** Times in epoch milliseconds. */
export interface Lifetime {
  readonly createdMs: number;
  /** 0: it never expires. */
  readonly ttlMs: number;
  /** The ttl starts after the last use. */
  readonly isAfterActivity: boolean;
}

/** When a key expires; undefined: never. `lastActivityMs`: its last known use. */
export function endOf(lifetime: Lifetime, lastActivityMs: number | undefined): number | undefined {
  const { createdMs, ttlMs, isAfterActivity } = lifetime;
  if (ttlMs <= 0) return undefined;
  const from = isAfterActivity ? Math.max(createdMs, lastActivityMs ?? createdMs) : createdMs;
  return from + ttlMs;
}

/** When a key, as clients see it, expires; undefined: never, or it has no times. */
export function endOfKey(key: JsonObject): number | undefined {
  const spec = objectField(key, 'spec');
  const activity = text(objectField(key, 'status'), 'lastActivity');
  const lifetime = {
    createdMs: Date.parse(text(metadataOf(key), 'creationTimestamp')),
    ttlMs: numberField(spec, 'ttl') * 1000,
    isAfterActivity: spec['ttlAfterLastActivity'] === true,
  };
  const endMs = endOf(lifetime, activity === '' ? undefined : Date.parse(activity));
  return Number.isNaN(endMs) ? undefined : endMs;
}

const ACTIVITY_INTERVAL_MS = 60_000;

/** Minimum interval between writes of the last use: a minute, or a tenth of a shorter ttl. */
export function activityIntervalMs({ ttlMs }: Pick<Lifetime, 'ttlMs'>): number {
  return ttlMs > 0 ? Math.min(ACTIVITY_INTERVAL_MS, ttlMs / 10) : ACTIVITY_INTERVAL_MS;
}
