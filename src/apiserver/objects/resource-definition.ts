/** Everything that the generic machinery must know of a kind. Adding a kind is adding one of these. */

import type { Resource } from '../../kube/object.ts';
import type { JsonObject, JsonValue } from '../../base/json.ts';
import type { FieldError } from '../field-error.ts';
import type { ObjectSchema } from '../schema/object-schema.ts';
import { listField, metadataOf } from '../validation/metadata.ts';
import type { NameCheck } from '../validation/names.ts';
import type { UserInfo } from '../request/user.ts';

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

/** A column of `kubectl get`. */
export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  /** `name` for the column that holds the name. */
  readonly format?: 'name';
  /** Above 0: shown with `-o wide` only. */
  readonly priority: number;
  readonly description: string;
  /** The cell's text, number or null; `nowMs` for ages. */
  value(object: JsonObject, nowMs: number): JsonValue;
}

/** A part of the object that is written through a path of its own. */
export interface Subresource {
  readonly name: string;
  readonly verbs: readonly Verb[];
  /** The object to store: `previous` with what this subresource may change taken from `next`. */
  merge(previous: JsonObject, next: JsonObject): JsonObject;
  /** What a POST does, for a subresource with the verb `create`. */
  readonly action?: SubresourceAction;
}

/** A request that changes an object and is not stored itself, as an eviction does. */
export interface SubresourceAction {
  /** Of the request: its kind and its fields. */
  readonly kind: string;
  readonly schema: ObjectSchema;
  /** `stored` is the object as it is stored. Throws a `StatusError` to refuse. Called again when another write was faster. */
  perform(stored: JsonObject, request: JsonObject): ActionResult;
}

export interface ActionResult {
  /** The object to store in its place. */
  readonly stored: JsonObject;
  /** The object as the response shows it, if it is not as every later response does. Not asked for a dry run. */
  shown(object: JsonObject): JsonObject;
}

export interface ResourceDefinition extends Resource {
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly Verb[];
  readonly patchKinds: readonly PatchKind[];
  /** Kinds that are two views of the same objects share one storage; else `plural.group`. */
  readonly storage: string;
  readonly schema: ObjectSchema;
  readonly subresources: readonly Subresource[];
  /** `status` is kept from what a write to the object itself says about it. */
  readonly hasStatus: boolean;
  /** `metadata.generation` counts changes outside metadata and status. */
  readonly hasGeneration: boolean;
  /** It counts changes of labels, too. */
  readonly countsLabels: boolean;
  /** PUT makes the object where there is none. */
  readonly allowsCreateOnUpdate: boolean;
  /** PUT without a resourceVersion overwrites. */
  readonly allowsUnconditionalUpdate: boolean;
  /** Items of a list carry `kind` and `apiVersion`: kinds of custom resources do, built-in ones do not. */
  readonly hasTypedItems: boolean;
  readonly checkName: NameCheck;
  /** Finalizers need a prefix, but for those that Kubernetes knows. */
  readonly needsQualifiedFinalizers: boolean;
  readonly columns: readonly Column[];
  /** Field selectors besides `metadata.name` and `metadata.namespace`: name → value. */
  readonly selectableFields: Readonly<Record<string, (object: JsonObject) => string>>;
  /** Says in every answer that clients should use something else. */
  readonly deprecation: string;
  /** Fills in what the client left out. Changes the object, which is a decoded copy. */
  applyDefaults(object: JsonObject): void;
  /**
   * What the server sets or clears itself before validation. Changes `next`. `stored` is `previous` as it is stored, with what its view
   * does not show.
   */
  prepare(next: JsonObject, previous: JsonObject | undefined, stored: JsonObject | undefined): void;
  validate(next: JsonObject, previous: JsonObject | undefined): FieldError[];
  /** Hints for the client beyond unknown fields; `isCreated`: by this request. */
  warnings(object: JsonObject, isCreated: boolean): readonly string[];
  /** How long a deletion waits before the object goes; `asked` is what the client wants. */
  gracePeriodSeconds(object: JsonObject, asked: number | undefined): number;
  /** Something still has to happen before a deleted object may go; by default its finalizers. */
  holdsDeletion(object: JsonObject): boolean;
  /** The first effect of a deletion that has to wait. Changes the object. */
  beginDeletion(object: JsonObject): void;
  /** DELETE answers the object that went, not a Status. */
  readonly returnsDeleted: boolean;
  /** Answers a create without storing anything: reviews and the like. */
  readonly respond: ((object: JsonObject, caller: Caller) => JsonObject | Promise<JsonObject>) | undefined;
  /** The answer to a create holds a secret: nobody may keep it. */
  readonly responseContainsSecret: boolean;
  /** Is it served below this prefix of the URL? `''` is the server itself. */
  isServedUnder(prefix: string): boolean;
  /** Between the stored object and this kind's view of it, where the two differ. */
  readonly view: ObjectView | undefined;
}

export interface Caller {
  readonly user: UserInfo;
  /** See `AccessRequest.prefix`. */
  readonly prefix: string;
  readonly isDryRun: boolean;
  /** Adds a `Warning` header to the answer. */
  warn(warning: string): void;
}

/** How an object is stored that looks different to clients: as another kind, or with what clients must not see. */
export interface ObjectView {
  /** The group by which validation errors call the kind, if not its own. */
  readonly validationGroup?: string;
  /** `stored` is the state that is replaced, as it is stored; undefined for a new object. */
  toStorage(object: JsonObject, stored: JsonObject | undefined): JsonObject;
  fromStorage(stored: JsonObject): JsonObject;
  /** What the answer to a create shows of the object that was written; default: all of it. */
  firstShown?(object: JsonObject): JsonObject;
  readonly overlay?: Overlay;
}

/** Facts that clients see in an object but that are kept beside it, so that they can change without a new revision. */
export interface Overlay {
  /** Differs when what {@link over} adds to the object differs; `''`: nothing. */
  version(object: JsonObject): string;
  /** The object, as it is stored or as its view shows it, with these facts; not changed in place. */
  over(object: JsonObject): JsonObject;
}

/** The fields without which there is no kind; the others have a usual value. */
export type DefinitionInput = Pick<
  ResourceDefinition,
  'group' | 'version' | 'kind' | 'plural' | 'singular' | 'isNamespaced' | 'schema' | 'checkName'
> &
  Partial<ResourceDefinition>;

export function defineResource(input: DefinitionInput): ResourceDefinition {
  const definition: ResourceDefinition = {
    shortNames: [],
    categories: [],
    verbs: ALL_VERBS,
    patchKinds: ['json', 'merge', 'strategic', 'apply'],
    storage: input.group === '' ? input.plural : `${input.plural}.${input.group}`,
    subresources: [],
    hasStatus: false,
    hasGeneration: false,
    countsLabels: false,
    allowsCreateOnUpdate: false,
    allowsUnconditionalUpdate: true,
    hasTypedItems: false,
    needsQualifiedFinalizers: true,
    columns: [],
    selectableFields: {},
    deprecation: '',
    applyDefaults: () => undefined,
    prepare: () => undefined,
    validate: () => [],
    warnings: () => [],
    gracePeriodSeconds: () => 0,
    holdsDeletion: (object) => listField(metadataOf(object), 'finalizers').length > 0,
    beginDeletion: () => undefined,
    returnsDeleted: false,
    respond: undefined,
    responseContainsSecret: false,
    isServedUnder: (prefix) => prefix === '',
    view: undefined,
    ...input,
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
    // The client's metadata stays for its resourceVersion, uid and managedFields; labels and annotations are not status.
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

/** Every kind that a server serves, found by path, by kind and by storage. */
export class DefinitionTable {
  readonly all: readonly ResourceDefinition[];
  readonly #byPath = new Map<string, ResourceDefinition>();
  readonly #groupVersions = new Map<string, ResourceDefinition[]>();
  readonly #withoutKinds: readonly GroupVersion[];

  /** `withoutKinds` are served too, with nothing in them. */
  constructor(definitions: readonly ResourceDefinition[], withoutKinds: readonly GroupVersion[] = []) {
    this.all = definitions;
    this.#withoutKinds = withoutKinds;
    for (const definition of definitions) {
      const { group, version, plural } = definition;
      this.#byPath.set(`${group}/${version}/${plural}`, definition);
      const key = `${group}/${version}`;
      this.#groupVersions.set(key, [...(this.#groupVersions.get(key) ?? []), definition]);
    }
  }

  find(group: string, version: string, plural: string): ResourceDefinition | undefined {
    return this.#byPath.get(`${group}/${version}/${plural}`);
  }

  /** Kinds of one group version, by plural. */
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
