/** Kinds as data, and the object that a request is about. */

import { type Resource, apiVersionOf, metadataOf } from '../../kube/object.ts';
import { type JsonObject, type JsonValue, listField, text } from '../../base/json.ts';
import {
  type FieldError,
  shortened,
  badRequest,
  type GroupName,
  conflict,
  MODIFIED,
  notFound,
} from '../status.ts';
import { cannotBeHandled } from '../schema/decode.ts';
import type { ObjectSchema } from '../schema/object-schema.ts';
import { type NameCheck, labelProblem } from '../../kube/names.ts';
import type { UserInfo } from '../user.ts';
import { type StoredEntry, type StoreKey, StoreError } from '../storage/store.ts';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

export const ALL_VERBS: readonly Verb[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
];

export type PatchKind = 'json' | 'merge' | 'strategic' | 'apply';

export const PATCH_MEDIA: Readonly<Record<PatchKind, string>> = {
  apply: 'application/apply-patch+yaml',
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
};

/** `target` changed by `patch`, which it may share values with. Throws a 400 `StatusError` for an invalid directive. */
export type StrategicMerge = (schema: ObjectSchema, target: JsonObject, patch: JsonObject) => JsonObject;

export function patchKindsOf({ strategicMerge }: ResourceDefinition): PatchKind[] {
  return strategicMerge ? ['json', 'merge', 'strategic', 'apply'] : ['json', 'merge', 'apply'];
}

export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly format?: 'name';
  /** Above 0: shown with `-o wide` only. */
  readonly priority: number;
  readonly description: string;
  value(object: JsonObject, nowMs: number): JsonValue;
}

export interface Subresource {
  readonly name: string;
  readonly verbs: readonly Verb[];
  /** The object to store: `previous` with what this subresource may change taken from `next`. */
  merge(previous: JsonObject, next: JsonObject): JsonObject;
  /** The effect of a POST, for a subresource with the verb `create`. */
  readonly action?: SubresourceAction;
}

/** A request kind that changes an object and is not stored itself, such as Eviction. */
export interface SubresourceAction {
  readonly kind: string;
  readonly schema: ObjectSchema;
  /** `stored` is the object as it is stored. Throws a `StatusError` to reject. Called again after a conflict with another write. */
  perform(stored: JsonObject, request: JsonObject, user: UserInfo): ActionResult;
}

export interface ActionResult {
  readonly stored: JsonObject;
  /** The object in the response, which may show more than later responses. Not called for a dry run. */
  shown(object: JsonObject): JsonObject;
}

export interface ResourceDefinition extends Resource {
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly Verb[];
  /** Undefined for kinds that take no strategic merge patch, which custom resources never do. */
  readonly strategicMerge: StrategicMerge | undefined;
  /** Kinds that are views of the same objects share one storage. Default `plural.group`. */
  readonly storage: string;
  readonly schema: ObjectSchema;
  readonly subresources: readonly Subresource[];
  readonly hasStatus: boolean;
  /** `metadata.generation` counts changes outside of metadata and status. */
  readonly hasGeneration: boolean;
  readonly allowsUnconditionalUpdate: boolean;
  /** Items of a list have `kind` and `apiVersion`, as those of custom resources do. */
  readonly hasTypedItems: boolean;
  readonly checkName: NameCheck;
  /** Finalizers need a prefix, except those of Kubernetes itself. */
  readonly needsQualifiedFinalizers: boolean;
  readonly columns: readonly Column[];
  /** Field selectors besides `metadata.name` and `metadata.namespace`: name → value. */
  readonly selectableFields: Readonly<Record<string, (object: JsonObject) => string>>;
  /** Sets defaults of omitted fields. Changes the object, which is a decoded copy. */
  applyDefaults(object: JsonObject): void;
  /**
   * Sets and clears the fields that the server maintains, before validation. Changes `next`. `stored` is `previous` as it is stored, with
   * fields that its view hides.
   */
  prepare(next: JsonObject, previous: JsonObject | undefined, stored: JsonObject | undefined): void;
  validate(next: JsonObject, previous: JsonObject | undefined): FieldError[];
  /** Warnings besides those about unknown fields. `isCreated`: this request has created the object. */
  warnings(object: JsonObject, isCreated: boolean): readonly string[];
  /** The grace period of a deletion; `requested` is that of the request. For an object that is being deleted, a shorter one than before counts. */
  gracePeriodSeconds(object: JsonObject, requested: number | undefined): number;
  /** The stored object is what this user authenticates with. */
  isCredentialOf(stored: JsonObject, user: UserInfo): boolean;
  /** Responds to a create without storing an object, such as for reviews. */
  readonly respond: ((object: JsonObject, caller: Caller) => JsonObject | Promise<JsonObject>) | undefined;
  readonly responseContainsSecret: boolean;
  /** Whether the kind is served below this prefix of the URL; `''`: the server itself. */
  isServedUnder(prefix: string): boolean;
  /** Converts between the stored object and this kind. Default: they are equal. */
  readonly view: ObjectView;
  readonly strategy: Strategy;
}

/** Peculiarities of the built-in kinds of a cluster. */
export interface Strategy {
  readonly allowsCreateOnUpdate: boolean;
  readonly countsLabels: boolean;
  /** The warning in every response of a deprecated kind; `''`: not deprecated. */
  readonly deprecation: string;
  readonly returnsDeleted: boolean;
  /** The object may not be removed yet, although its deletion has begun. Default: it has finalizers. */
  holdsDeletion(object: JsonObject): boolean;
  /** Called when a deletion begins that has to wait. Changes the object. */
  beginDeletion(object: JsonObject): void;
}

const PLAIN_STRATEGY: Strategy = {
  allowsCreateOnUpdate: false,
  countsLabels: false,
  deprecation: '',
  returnsDeleted: false,
  holdsDeletion: (object) => listField(metadataOf(object), 'finalizers').length > 0,
  beginDeletion: () => undefined,
};

export interface Caller {
  readonly user: UserInfo;
  readonly prefix: string;
  /** Its field manager, such as kubectl-create. */
  readonly manager: string;
  readonly isDryRun: boolean;
  warn(warning: string): void;
}

/** Conversion of objects that are stored as another kind, or with fields that clients must not see. */
export interface ObjectView {
  /** The group of the kind in validation errors. Default: its own. */
  readonly validationGroup?: string;
  /** `stored` is the state that is replaced, as it is stored; undefined for a new object. */
  toStorage(object: JsonObject, stored: JsonObject | undefined): JsonObject;
  fromStorage(stored: JsonObject): JsonObject;
  /** The object in the response to a create. Default: the written object. */
  firstShown?(object: JsonObject): JsonObject;
  readonly overlay?: Overlay;
}

const SAME: ObjectView = { toStorage: (object) => object, fromStorage: (stored) => stored };

/** Facts that clients see in an object but that are stored separately, so that they change without a new revision. */
export interface Overlay {
  /** Changes whenever the result of {@link over} for the same object does. */
  version(object: JsonObject): string;
  /** A copy of the object, as stored or as its view shows it, with these facts. */
  over(object: JsonObject): JsonObject;
}

export type DefinitionInput = Pick<
  ResourceDefinition,
  'group' | 'version' | 'kind' | 'plural' | 'singular' | 'isNamespaced' | 'schema' | 'checkName'
> &
  Partial<Omit<ResourceDefinition, 'strategy'>> & { readonly strategy?: Partial<Strategy> };

export function defineResource(input: DefinitionInput): ResourceDefinition {
  const definition: ResourceDefinition = {
    shortNames: [],
    categories: [],
    verbs: ALL_VERBS,
    strategicMerge: undefined,
    storage: input.group === '' ? input.plural : `${input.plural}.${input.group}`,
    subresources: [],
    hasStatus: false,
    hasGeneration: false,
    allowsUnconditionalUpdate: true,
    hasTypedItems: false,
    needsQualifiedFinalizers: true,
    columns: [],
    selectableFields: {},
    applyDefaults: () => undefined,
    prepare: () => undefined,
    validate: () => [],
    warnings: () => [],
    gracePeriodSeconds: () => 0,
    isCredentialOf: () => false,
    respond: undefined,
    responseContainsSecret: false,
    isServedUnder: (prefix) => prefix === '',
    view: SAME,
    ...input,
    strategy: { ...PLAIN_STRATEGY, ...input.strategy },
  };
  if (!definition.hasStatus || definition.subresources.some(({ name }) => name === 'status'))
    return definition;
  return { ...definition, subresources: [...definition.subresources, STATUS_SUBRESOURCE] };
}

/** Changes the status and nothing else. */
const STATUS_SUBRESOURCE: Subresource = {
  name: 'status',
  verbs: ['get', 'patch', 'update'],
  merge: (previous, next) => ({
    ...previous,
    // Only resourceVersion, uid and managedFields of the client's metadata count; labels and annotations are not status.
    metadata: statusMetadata(previous, next),
    status: next['status'] ?? {},
  }),
};

function statusMetadata(previous: JsonObject, next: JsonObject): JsonObject {
  const before = previous['metadata'] as JsonObject; // decoded: always an object
  const after = next['metadata'] as JsonObject; // decoded: always an object
  const metadata: JsonObject = { ...before };
  for (const field of ['uid', 'resourceVersion', 'managedFields']) {
    const value = after[field];
    if (value === undefined) delete metadata[field];
    else metadata[field] = value;
  }
  return metadata;
}

export type GroupVersion = Pick<ResourceDefinition, 'group' | 'version'>;

export class DefinitionTable {
  readonly all: readonly ResourceDefinition[];
  readonly #byPath = new Map<string, ResourceDefinition>();
  readonly #groupVersions = new Map<string, ResourceDefinition[]>();
  readonly #withoutKinds: readonly GroupVersion[];

  /** `withoutKinds` are served too, with nothing in them. `unlisted`: kinds that discovery does not name. */
  constructor(
    definitions: readonly ResourceDefinition[],
    withoutKinds: readonly GroupVersion[] = [],
    unlisted: readonly ResourceDefinition[] = [],
  ) {
    this.all = definitions;
    this.#withoutKinds = withoutKinds;
    for (const definition of [...definitions, ...unlisted]) {
      const { group, version, plural } = definition;
      this.#byPath.set(`${group}/${version}/${plural}`, definition);
    }
    for (const definition of definitions) {
      const { group, version } = definition;
      const key = `${group}/${version}`;
      this.#groupVersions.set(key, [...(this.#groupVersions.get(key) ?? []), definition]);
    }
  }

  find(group: string, version: string, plural: string): ResourceDefinition | undefined {
    return this.#byPath.get(`${group}/${version}/${plural}`);
  }

  of(group: string, version: string): readonly ResourceDefinition[] {
    const found = this.#groupVersions.get(`${group}/${version}`) ?? [];
    return [...found].sort((a, b) => (a.plural < b.plural ? -1 : 1));
  }

  /** Group → its versions, in the order of their first definition. */
  get groups(): ReadonlyMap<string, readonly string[]> {
    const groups = new Map<string, string[]>();
    for (const { group, version } of [...this.all, ...this.#withoutKinds]) {
      const versions = groups.get(group) ?? [];
      if (!versions.includes(version)) versions.push(version);
      groups.set(group, versions);
    }
    return groups;
  }
}

/** Throws 400 when the body names another kind. Missing fields default to the kind of the URL. */
export function checkType(table: DefinitionTable, definition: ResourceDefinition, body: JsonObject): void {
  const expected = apiVersionOf(definition);
  const kind = textOr(body['kind'], definition.kind);
  const apiVersion = textOr(body['apiVersion'], expected);
  if (kind === definition.kind && apiVersion === expected) return;
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/', 2) : ['', apiVersion];
  // The Go package: the core group has a name there.
  const packageName = definition.group === '' ? 'core' : definition.version;
  const isKnown = table.of(group ?? '', version ?? '').some((other) => other.kind === kind);
  const why = isKnown
    ? `converting (${version}.${kind}) to (${packageName}.${definition.kind}): unknown conversion`
    : `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} in scheme "embedded"`;
  throw cannotBeHandled(kind, version ?? '', definition.kind, why);
}

function textOr(value: JsonValue | undefined, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise;
}

// The object that a request is about, and its names in errors and in the store.

export interface Target {
  readonly definition: ResourceDefinition;
  readonly namespace: string;
  readonly name: string;
  readonly subresource?: Subresource | undefined;
  /** See `Authorizer.visibleTo`. */
  readonly isVisible?: ((object: JsonObject) => boolean) | undefined;
}

export function groupName(definition: ResourceDefinition): GroupName {
  return { group: definition.group, resource: definition.plural };
}

/** Validation errors name the kind instead of the resource. */
export function kindName(definition: ResourceDefinition): GroupName {
  return { group: definition.view.validationGroup ?? definition.group, resource: definition.kind };
}

export function storeKey({ definition, namespace, name }: Target): StoreKey {
  return { resource: definition.storage, namespace, name };
}

/** The stored object in the shape of this kind, without kind and apiVersion. */
export function currentForm(definition: ResourceDefinition, entry: StoredEntry): JsonObject {
  return definition.view.fromStorage(entry.value);
}

export function checkName(target: Target, body: JsonObject): void {
  const name = text(metadataOf(body), 'name');
  if (name === '') {
    throw badRequest(
      `the name of the object (${target.name} based on URL) was undeterminable: name must be provided`,
    );
  }
  if (name !== target.name) {
    throw badRequest(`the name of the object (${name}) does not match the name on the URL (${target.name})`);
  }
}

export function rejectOtherNamespace({ definition, namespace }: Target, body: JsonObject): void {
  const sent = text(metadataOf(body), 'namespace');
  if (sent === '' || sent === namespace) return;
  if (!definition.isNamespaced) {
    // As in a kube-apiserver, the namespace of a cluster-scoped object is ignored if it is a valid name.
    const problem = labelProblem(sent);
    if (problem === undefined) return;
    throw badRequest(`metadata.namespace: Invalid value: ${JSON.stringify(shortened(sent))}: ${problem}`);
  }
  throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
}

// Conflicts between writes: how the store reports them, and how the API does.

/** The object has changed or disappeared since it was read: a write may be retried. */
export function isRevisionConflict(error: unknown): boolean {
  return error instanceof StoreError && (error.code === 'conflict' || error.code === 'missing');
}

/** The API error for a `StoreError` of a conflict; any other error as it is. */
export function asConflict(error: unknown, target: Target): unknown {
  if (!(error instanceof StoreError)) return error;
  if (error.code === 'missing') return notFound(groupName(target.definition), target.name);
  if (error.code === 'conflict') return conflict(groupName(target.definition), target.name, MODIFIED);
  return error;
}

/** `actual`: `''` without an object. A request with the uid of a deleted object must not create another one. */
export function checkUid(target: Target, actual: string, requested: string): void {
  if (requested === '' || requested === actual) return;
  const why = `Precondition failed: UID in precondition: ${requested}, UID in object meta: ${actual}`;
  throw conflict(groupName(target.definition), target.name, why);
}
