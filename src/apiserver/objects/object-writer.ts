/** One attempt to write an object: metadata, defaults, managed fields, admission, validation, then the store. */

import { randomUUID } from 'node:crypto';
import { apiVersionOf, metadataOf, timeText } from '../../kube/object.ts';
import type { Clock } from '../../base/clock.ts';
import {
  type JsonObject,
  cloneJson,
  jsonEquals,
  type JsonValue,
  objectList,
  text,
  numberField,
  objectField,
} from '../../base/json.ts';
import { StoreError, type Store, type StoredEntry } from '../storage/store.ts';
import { type FieldWriter, trackUpdate, withManagedFields } from '../patch/managed-fields.ts';
import { storedForm } from './object-view.ts';
import {
  type ResourceDefinition,
  type Subresource,
  currentForm,
  groupName,
  storeKey,
  type Target,
  kindName,
} from './resource-definition.ts';
import { emptyObject, decodeObject } from '../schema/decode.ts';
import { conflict, MODIFIED, invalid } from '../status.ts';
import { SERVER_USER, type UserInfo } from '../user.ts';
import { validateMetadata, validateMetadataUpdate, withoutDuplicateOwners } from '../metadata.ts';
import { failure } from '../../kube/status-error.ts';
import type { Random } from '../../base/random.ts';
import { LABEL_LENGTH_MAX } from '../../kube/names.ts';

/** Throws a `StatusError` when the caller may no longer write. */
export type Recheck = () => Promise<void>;

export interface WriteContext {
  readonly user: UserInfo;
  readonly manager: string;
  readonly isDryRun: boolean;
  /** Absent: a write of the server itself. */
  readonly recheck?: Recheck;
}

export interface Written {
  readonly object: JsonObject;
  readonly resourceVersion: string;
  readonly isCreated: boolean;
}

export interface WriterOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly admission: Admission;
}

/** A write throws `StoreError` when another write came first; the caller decides whether to retry. */
export class ObjectWriter {
  readonly #options: WriterOptions;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Throws `StoreError` `exists` when the name is taken. */
  async insert(target: Target, body: JsonObject, context: WriteContext): Promise<Written> {
    const { definition } = target;
    const now = timeText(this.#options.clock.now());
    let object: JsonObject = { ...body, metadata: createdMetadata(metadataOf(body), target, now) };
    if (definition.hasStatus) object['status'] = emptyObject(definition.schema)['status'] ?? {};
    definition.applyDefaults(object);
    const managed = trackUpdate(
      definition,
      { before: emptyObject(definition.schema), after: object, isCreate: true, sent: undefined },
      this.fieldWriter(definition, 'Update', context.manager),
    );
    object = withManagedFields(object, managed);
    return this.insertPrepared(target, object, context);
  }

  async insertPrepared(target: Target, object: JsonObject, context: WriteContext): Promise<Written> {
    const { definition } = target;
    definition.prepare(object, undefined, undefined);
    const next = canonical(definition, definition.hasGeneration ? withGeneration(object, 1) : object);
    await this.admit({ target, next, previous: undefined, entry: undefined }, context);
    rejectInvalid(target, next, undefined);
    const stored = storedForm(definition, next, undefined);
    const key = storeKey(target);
    if (context.isDryRun) {
      const current = await this.#options.store.get(key);
      if (current) throw new StoreError('exists', 'the name is taken', current);
      // Nothing is stored, so secrets that are shown only once are not shown.
      const shown = definition.view.fromStorage(stored);
      return { object: shown, resourceVersion: '', isCreated: true };
    }
    const create = (): Promise<StoredEntry> => this.#options.store.create(key, stored);
    const entry = await this.commit(definition, 'created', create, context.recheck);
    const shown = definition.view.firstShown?.(next) ?? next;
    return { object: shown, resourceVersion: String(entry.revision), isCreated: true };
  }

  /** Replaces the state in `entry` by `body`; a resourceVersion in the body must be that of the entry. */
  async replace(
    target: Target,
    entry: StoredEntry,
    body: JsonObject,
    context: WriteContext,
  ): Promise<Written> {
    const { definition } = target;
    const previous = currentForm(definition, entry);
    const version = requestedVersion(body);
    if (version !== '' && version !== String(entry.revision)) {
      throw conflict(groupName(definition), target.name, MODIFIED);
    }
    const sent = metadataOf(body)['managedFields'];
    const object = mergedFor(target, previous, body);
    definition.applyDefaults(object);
    const managed = trackUpdate(
      definition,
      { before: previous, after: object, isCreate: false, sent },
      this.fieldWriter(definition, 'Update', context.manager, target.subresource),
    );
    return this.replacePrepared(target, entry, withManagedFields(object, managed), context);
  }

  async replacePrepared(
    target: Target,
    entry: StoredEntry,
    object: JsonObject,
    context: WriteContext,
  ): Promise<Written> {
    const { definition } = target;
    const previous = currentForm(definition, entry);
    let next: JsonObject = { ...object, metadata: keptMetadata(metadataOf(object), metadataOf(previous)) };
    definition.prepare(next, previous, entry.value);
    next = canonical(definition, next);
    // Compares canonical forms: an empty field that a client sends is not a change.
    if (definition.hasGeneration) next = withGeneration(next, nextGeneration(definition, next, previous));
    await this.admit({ target, next, previous, entry }, context);
    rejectInvalid(target, next, previous);
    const stored = storedForm(definition, next, entry.value);
    next = definition.view.fromStorage(stored);
    const same = { resourceVersion: String(entry.revision), isCreated: false };
    if (isNoOpUpdate(stored, entry.value)) return { object: previous, ...same };
    if (context.isDryRun) return { object: next, ...same };
    if (isDeletionComplete(definition, next)) {
      const remove = (): Promise<StoredEntry> => this.#options.store.delete(entry.key, entry.revision);
      await this.commit(definition, 'deleted', remove, context.recheck);
      return { object: next, ...same };
    }
    const update = (): Promise<StoredEntry> => this.#options.store.update(entry.key, stored, entry.revision);
    const written = await this.commit(definition, 'updated', update, context.recheck);
    return { object: next, ...same, resourceVersion: String(written.revision) };
  }

  /**
   * INVARIANT: every write of a client passes here. While the request waited, for its body, a parser or the store, its credential may have been
   * revoked or its rights may have changed, so the caller is checked again in the turn in which the write is handed to the store.
   */
  async commit(
    definition: ResourceDefinition,
    type: CommittedWrite['type'],
    write: () => Promise<StoredEntry>,
    recheck: Recheck | undefined,
  ): Promise<StoredEntry> {
    await recheck?.();
    const entry = await write();
    await this.#options.admission.afterWrite?.(definition, { type, entry });
    return entry;
  }

  /** Admission of a write; writes of the server itself are exempt. */
  async admit(
    write: Pick<AdmissionRequest, 'target' | 'next' | 'previous' | 'entry'>,
    { user, isDryRun }: WriteContext,
  ): Promise<void> {
    if (user === SERVER_USER) return;
    await this.#options.admission.admit({ ...write, user, isDryRun });
  }

  fieldWriter(
    definition: ResourceDefinition,
    operation: FieldWriter['operation'],
    manager: string,
    subresource?: Subresource,
  ): FieldWriter {
    return {
      manager,
      operation,
      apiVersion: apiVersionOf(definition),
      subresource: subresource?.name ?? '',
      time: timeText(this.#options.clock.now()),
    };
  }
}

// Admission as a port: rules about writes that depend on the writer or on other objects.

export interface Admission {
  beforeCreate?(definition: ResourceDefinition, namespace: string, name: string): Promise<void>;
  /**
   * Before an object is validated and stored: throws a `StatusError` to reject, may set fields of `next` that depend on the writer. Not
   * called for writes of the server itself.
   */
  admit(write: AdmissionRequest): Promise<void>;
  beforeDelete?(definition: ResourceDefinition, entry: StoredEntry): Promise<void>;
  /** After every committed write; must not throw. */
  afterWrite?(definition: ResourceDefinition, change: CommittedWrite): Promise<void>;
}

/** A write before it is validated and stored. */
export interface AdmissionRequest {
  readonly target: Target;
  readonly user: UserInfo;
  /** The object as it would be stored, in the shape of its kind; may be changed. */
  readonly next: JsonObject;
  /** The state before, in the shape of its kind; undefined for a create. */
  readonly previous: JsonObject | undefined;
  /** The state before, as it is stored. */
  readonly entry: StoredEntry | undefined;
  readonly isDryRun: boolean;
}

export interface CommittedWrite {
  readonly type: 'created' | 'updated' | 'deleted';
  readonly entry: StoredEntry;
}

// The pure steps of a write: merging, canonical form, generation, validation.

/** The body merged into the previous state: a subresource changes only its part, a write to the object keeps the status. */
function mergedFor({ definition, subresource }: Target, previous: JsonObject, body: JsonObject): JsonObject {
  // Parts of the stored object are cloned, because the next steps change the result.
  if (subresource) return cloneJson(subresource.merge(previous, body));
  if (!definition.hasStatus) return { ...body };
  const { status: _ignored, ...rest } = body;
  const status: JsonValue | undefined = previous['status'];
  return status === undefined ? rest : { ...rest, status: cloneJson(status) };
}

function canonical(definition: ResourceDefinition, object: JsonObject): JsonObject {
  return decodeObject(definition.schema, object).value;
}

/**
 * Nothing differs except the times of `managedFields`, so nothing is written. Both arguments are in stored form: only there a secret that is
 * sent again equals the stored one.
 */
function isNoOpUpdate(next: JsonObject, stored: JsonObject): boolean {
  return jsonEquals(next, stored) || jsonEquals(timeless(next), timeless(stored));
}

function timeless(object: JsonObject): JsonObject {
  const { managedFields: _entries, ...metadata } = metadataOf(object);
  const entries = objectList(metadataOf(object), 'managedFields').map(({ time: _time, ...entry }) => entry);
  return { ...object, metadata: { ...metadata, managedFields: entries } };
}

function withGeneration(object: JsonObject, generation: number): JsonObject {
  return { ...object, metadata: { ...metadataOf(object), generation } };
}

/** The deletion has begun, and neither a grace period nor finalizers prevent the removal. */
export function isDeletionComplete(definition: ResourceDefinition, object: JsonObject): boolean {
  if (text(metadataOf(object), 'deletionTimestamp') === '') return false;
  return !definition.strategy.holdsDeletion(object) && !hasGracePeriod(object);
}

/** False also for a stored period that is no number. */
export function hasGracePeriod(object: JsonObject): boolean {
  return numberField(metadataOf(object), 'deletionGracePeriodSeconds') > 0;
}

function rejectInvalid(target: Target, next: JsonObject, previous: JsonObject | undefined): void {
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

export function rejectResourceVersion(body: JsonObject): void {
  if (requestedVersion(body) !== '') {
    throw failure(500, '', 'resourceVersion should not be set on objects to be created');
  }
}

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

const CLIENT_FIELDS = ['labels', 'annotations', 'ownerReferences', 'finalizers'];

export function createdMetadata(sent: JsonObject, target: Target, now: string): JsonObject {
  const { generateName } = sent;
  return withoutDuplicateOwners({
    name: target.name,
    ...(generateName === undefined || generateName === '' ? {} : { generateName }),
    ...(target.definition.isNamespaced ? { namespace: target.namespace } : {}),
    uid: randomUUID(),
    creationTimestamp: now,
    ...fieldsOf(sent, CLIENT_FIELDS),
  });
}

function fieldsOf(object: JsonObject, fields: readonly string[]): JsonObject {
  const found: JsonObject = {};
  for (const field of fields) {
    const value = object[field];
    if (value !== undefined) found[field] = value;
  }
  return found;
}

/** The client's metadata with the fields restored that a client cannot change. */
function keptMetadata(sent: JsonObject, previous: JsonObject): JsonObject {
  const wasDeleting = text(previous, 'deletionTimestamp') !== '';
  const deletion = wasDeleting ? previous['deletionTimestamp'] : sent['deletionTimestamp'];
  const grace = sent['deletionGracePeriodSeconds'] ?? previous['deletionGracePeriodSeconds'];
  return withoutDuplicateOwners({
    ...fieldsOf(sent, ['name', 'generateName']),
    ...fieldsOf(previous, ['namespace']),
    uid: text(sent, 'uid') || text(previous, 'uid'),
    ...fieldsOf(previous, ['generation']),
    creationTimestamp: text(previous, 'creationTimestamp'),
    ...(deletion === undefined || deletion === null ? {} : { deletionTimestamp: deletion }),
    ...(grace === undefined || grace === null ? {} : { deletionGracePeriodSeconds: grace }),
    ...fieldsOf(sent, [...CLIENT_FIELDS, 'managedFields']),
  });
}

/** Incremented by any change outside of metadata and status; for some kinds also by a change of labels. */
function nextGeneration({ strategy }: ResourceDefinition, next: JsonObject, previous: JsonObject): number {
  const before = numberField(metadataOf(previous), 'generation');
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
