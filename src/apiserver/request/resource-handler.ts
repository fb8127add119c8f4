/** Serves resource requests: resolves the kind, authorizes, calls the registry, builds the response. */

import { metadataOf } from '../../kube/object.ts';
import type { StoredEntry } from '../storage/store.ts';
import { isDeepStrictEqual } from 'node:util';
import { isJsonObject, type JsonObject, text } from '../../base/json.ts';
import { ignoreNotFound, StatusError, failure } from '../../kube/status-error.ts';
import {
  jsonResponse,
  statusResponse,
  withWarnings,
  type ApiResponse,
  negotiate,
  negotiateWatch,
  type ResponseForm,
  LIST_FORMS,
  OBJECT_FORMS,
  ObjectResponses,
  type Presentation,
} from './api-response.ts';
import { listObjects, rejectFuture } from '../objects/list-objects.ts';
import {
  parseListQuery,
  parseVersion,
  exactValue,
  parseDeleteOptions,
  parseWriteOptions,
  type DeleteOptions,
  type WriteOptions,
} from '../objects/query-options.ts';
import { patchKindOf, patchObject, applyObject } from '../objects/object-patch.ts';
import { performAction, type ObjectRegistry } from '../objects/object-registry.ts';
import {
  type Recheck,
  type WriteContext,
  type Written,
  rejectResourceVersion,
} from '../objects/object-writer.ts';
import {
  checkName,
  checkType,
  rejectOtherNamespace,
  type Target,
  type ResourceDefinition,
  type SubresourceAction,
  type Verb,
  type DefinitionTable,
} from '../objects/resource-definition.ts';
import type { ObjectViews } from '../objects/object-view.ts';
import { decodeBody, type FieldValidation } from '../schema/decode.ts';
import { parseBody, parseDeleteBody, parseYaml, type RawBody } from './read-body.ts';
import { methodNotAllowed, forbidden, noSuchResource } from '../status.ts';
import { duplicateOwners } from '../metadata.ts';
import type { UserInfo } from '../user.ts';
import {
  denialText,
  type AccessDecision,
  type AccessRequest,
  type Authorizer,
  type ResourcePath,
  recordDecision,
  type RequestRecord,
} from './request-info.ts';

export interface ApiRequest {
  readonly verb: Verb | undefined;
  readonly path: ResourcePath;
  readonly query: URLSearchParams;
  readonly user: UserInfo;
  readonly prefix: string;
  readonly record: RequestRecord;
  /** Authenticates the credential of the request again; throws 401. */
  authenticate(): Promise<UserInfo>;
  readonly accept: string | undefined;
  readonly userAgent: string;
  readonly body: RawBody;
}

export interface WatchResponse {
  readonly user: UserInfo;
  readonly target: Target;
  readonly form: ResponseForm;
  readonly warnings: readonly string[];
  /** Rejects once the caller is another one, or may not watch any more. */
  readonly recheck: Recheck;
}

export interface ResourceHandlerOptions {
  readonly table: DefinitionTable;
  readonly authorizer: Authorizer;
  readonly registry: ObjectRegistry;
  readonly views: ObjectViews;
}

interface Call {
  readonly request: ApiRequest;
  readonly target: Target;
  readonly form: ResponseForm;
  readonly warnings: string[];
  readonly recheck: Recheck;
}

/** The rights of the caller changed while its request waited, so the request is authorized and admitted from the start. */
class ChangedCaller extends Error {
  override readonly name = 'ChangedCaller';
  readonly user: UserInfo;

  constructor(user: UserInfo) {
    super('the rights of the caller have changed');
    this.user = user;
  }
}

export class ResourceHandler {
  readonly #options: ResourceHandlerOptions;
  readonly #responses: ObjectResponses;

  constructor(options: ResourceHandlerOptions) {
    this.#options = options;
    this.#responses = new ObjectResponses(options.views, options.registry.clock);
  }

  async handle(request: ApiRequest): Promise<ApiResponse | WatchResponse> {
    try {
      return await this.#handle(request);
    } catch (error) {
      if (!(error instanceof ChangedCaller)) throw error;
      return this.#handle({ ...request, user: error.user }).catch(rejectChangedAgain);
    }
  }

  async #handle(request: ApiRequest): Promise<ApiResponse | WatchResponse> {
    const { target, verb } = await allowedTarget(request, this.#options);
    const forms = verb === 'list' || verb === 'deletecollection' ? LIST_FORMS : OBJECT_FORMS;
    const form = (verb === 'watch' ? negotiateWatch : negotiate)(request.accept, forms);
    // Before any warning: a patch of an unsupported type reaches no kind.
    if (verb === 'patch') patchKindOf(target.definition, request.body.contentType);
    const { deprecation } = target.definition.strategy;
    let isRechecked = false;
    const recheck = (): Promise<void> => {
      isRechecked = true;
      return this.#recheck(request);
    };
    const warnings = deprecation === '' ? [] : [deprecation];
    const call: Call = { request, target, form, warnings, recheck };
    if (verb === 'watch') return { user: request.user, target, form, warnings, recheck };
    const response = await this.#respond(verb, call);
    // Nothing was written, but the response may tell what the caller may no longer read, or hold a token, which is not stored.
    if (!isRechecked && hasBody(verb)) await recheck();
    return withWarnings(response, call.warnings);
  }

  async #respond(verb: Verb, call: Call): Promise<ApiResponse> {
    try {
      switch (verb) {
        case 'get':
          return await this.#get(call);
        case 'create':
          return await this.#create(call);
        case 'update':
          return await this.#update(call);
        case 'patch':
          return await this.#patch(call);
        case 'delete':
          return await this.#delete(call);
        case 'list':
        case 'deletecollection':
          return await this.#collection(verb, call);
        case 'watch':
          throw methodNotAllowed();
      }
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      return statusResponse(error);
    }
  }

  /** Throws 401, 403, or {@link ChangedCaller} unless the user is who it was when the request was authorized. */
  async #recheck(request: ApiRequest): Promise<void> {
    const user = await request.authenticate();
    if (user !== request.user && !isDeepStrictEqual(user, request.user)) throw new ChangedCaller(user);
    await allowedTarget(request, this.#options);
  }

  async #get(call: Call): Promise<ApiResponse> {
    const { registry } = this.#options;
    const version = call.request.query.get('resourceVersion');
    if (version !== null) await rejectFuture(registry.store, Number(parseVersion(version) || 0));
    return this.#responses.entry(presentation(call), await registry.get(call.target));
  }

  async #create(call: Call): Promise<ApiResponse> {
    const { request, target } = call;
    const { definition, subresource } = target;
    const options = parseWriteOptions(request.query, 'CreateOptions');
    if (subresource?.action) return this.#performAction(call, subresource.action, options);
    const body = this.#body(call, options.fieldValidation);
    if (definition.respond) {
      const { user, prefix } = request;
      const { manager, isDryRun } = contextOf(call, options);
      const warn = (warning: string): void => void call.warnings.push(warning);
      const object = await definition.respond(body, { user, prefix, manager, isDryRun, warn });
      const response = this.#responses.object(presentation(call), 201, { object, resourceVersion: '' });
      return withNoStore(definition, response);
    }
    rejectOtherNamespace(target, body);
    rejectResourceVersion(body);
    const context = contextOf(call, options);
    return this.#written(call, await this.#options.registry.create(target, body, context));
  }

  async #performAction(call: Call, action: SubresourceAction, options: WriteOptions): Promise<ApiResponse> {
    const { request, target } = call;
    const { kind, schema } = action;
    const actionCall: Call = {
      ...call,
      target: { ...target, definition: { ...target.definition, kind, schema } },
    };
    // All fields of an action have defaults.
    const body = request.body.bytes.length === 0 ? {} : this.#body(actionCall, options.fieldValidation);
    const context = contextOf(call, options);
    const { registry } = this.#options;
    return this.#written(call, await performAction(registry, target, action, body, context));
  }

  async #update(call: Call): Promise<ApiResponse> {
    const { request, target } = call;
    const options = parseWriteOptions(request.query, 'UpdateOptions');
    const body = this.#body(call, options.fieldValidation);
    rejectOtherNamespace(target, body);
    checkName(target, body);
    const context = contextOf(call, options);
    return this.#written(call, await this.#options.registry.update(target, body, context));
  }

  async #patch(call: Call): Promise<ApiResponse> {
    const { request, target } = call;
    const kind = patchKindOf(target.definition, request.body.contentType);
    const options = parseWriteOptions(request.query, 'PatchOptions', kind);
    const text = request.body.bytes.toString('utf8');
    const { registry } = this.#options;
    const patching = {
      options,
      context: contextOf(call, options),
      warn: (warning: string): void => void call.warnings.push(warning),
    };
    const written =
      kind === 'apply'
        ? await applyObject(registry, target, {
            ...patching,
            sent: parseYaml(target.definition.kind, text),
          })
        : await patchObject(registry, target, { ...patching, kind, text });
    return this.#written(call, written);
  }

  #body(call: Call, validation: FieldValidation): JsonObject {
    const { request, target, warnings } = call;
    const parsed = parseBody(target.definition, request.body);
    if (isJsonObject(parsed.value)) checkType(this.#options.table, target.definition, parsed.value);
    const body = decodeBody(target.definition, parsed, validation, (warning) => warnings.push(warning));
    const duplicates = duplicateOwners(metadataOf(body));
    if (duplicates.length > 0) warnings.push(`${DUPLICATE_OWNERS}${duplicates.join(', ')}`);
    return body;
  }

  #written(call: Call, written: Written): ApiResponse {
    call.request.record.writtenName = text(metadataOf(written.object), 'name');
    const { definition, subresource } = call.target;
    // The action of a subresource responds with 201 too.
    const isCreated = written.isCreated && subresource === undefined;
    call.warnings.push(...definition.warnings(written.object, isCreated));
    const response = this.#responses.object(presentation(call), written.isCreated ? 201 : 200, written);
    return withNoStore(call.target.definition, response);
  }

  async #delete(call: Call): Promise<ApiResponse> {
    const { request, target } = call;
    const options = deleteOptionsOf(request);
    const deletion = await this.#options.registry.delete(target, options, call.recheck);
    const isShown = deletion.isGone ? target.definition.strategy.returnsDeleted : !deletion.wasPending;
    if (isShown) return this.#responses.object(presentation(call), 200, deletion);
    const { group, plural } = target.definition;
    return jsonResponse(200, {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name: target.name, ...(group === '' ? {} : { group }), kind: plural, uid: deletion.uid },
    });
  }

  async #collection(verb: Verb, call: Call): Promise<ApiResponse> {
    const { request, target } = call;
    const query = parseListQuery(target, request.query);
    const page = await listObjects(this.#options.registry.store, query);
    if (verb === 'deletecollection') {
      const options = deleteOptionsOf(request);
      const { definition } = target;
      const isOwn = ({ value }: StoredEntry): boolean => definition.isCredentialOf(value, request.user);
      // Without its credential, the caller could not delete the rest.
      for (const entry of page.entries.toSorted((a, b) => Number(isOwn(a)) - Number(isOwn(b)))) {
        const { namespace, name } = entry.key;
        const item = { ...target, namespace, name };
        await ignoreNotFound(this.#options.registry.delete(item, options, call.recheck));
      }
    }
    return this.#responses.list(presentation(call), page);
  }
}

/** Reads cannot wait long enough for their caller to change: they have no body. */
function hasBody(verb: Verb): boolean {
  return verb !== 'get' && verb !== 'list';
}

function rejectChangedAgain(error: unknown): never {
  if (!(error instanceof ChangedCaller)) throw error;
  throw failure(409, 'Conflict', 'the rights of the caller changed twice during this request: send it again');
}

function presentation({ target, form, request }: Call): Presentation {
  return { definition: target.definition, form, query: request.query };
}

const DUPLICATE_OWNERS =
  '.metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests ' +
  'as early as 1.24; please fix your requests; duplicate UID(s) observed: ';

/** Forbids caches to store a response that may contain a secret. */
function withNoStore({ responseContainsSecret }: ResourceDefinition, response: ApiResponse): ApiResponse {
  if (!responseContainsSecret) return response;
  return { ...response, headers: { ...response.headers, 'cache-control': 'no-store' } };
}

function contextOf({ request, recheck }: Call, { fieldManager, isDryRun }: WriteOptions): WriteContext {
  return { user: request.user, manager: managerOf(request, fieldManager), isDryRun, recheck };
}

/** The field manager of the request, or the name of the client. */
function managerOf({ userAgent }: ApiRequest, fieldManager: string): string {
  if (fieldManager !== '') return fieldManager;
  return userAgent.split('/')[0] || 'unknown';
}

interface AllowedTarget {
  readonly target: Target;
  readonly verb: Verb;
}

/** Throws `StatusError`: 403 before 404, so that a user without rights does not learn which resources exist. */
async function allowedTarget(
  request: ApiRequest,
  { table, authorizer }: ResourceHandlerOptions,
): Promise<AllowedTarget> {
  const { user, path, prefix } = request;
  const served = (): AllowedTarget => {
    const target = targetOf(request, table.find(path.group, path.version, path.resource));
    return { target, verb: servedVerb(request, target) };
  };
  // The kinds of this server itself are no secret.
  const own = prefix === '' ? served() : undefined;
  const access = accessOf(request, own?.verb ?? request.verb ?? '');
  rejectDenied(request, access, await authorizer.authorize(user, access));
  if (!own) return served();
  const isVisible = authorizer.visibleTo?.(user, own.target.definition);
  return { target: { ...own.target, isVisible }, verb: own.verb };
}

function targetOf({ path, prefix }: ApiRequest, definition: ResourceDefinition | undefined): Target {
  if (!definition?.isServedUnder(prefix)) throw noSuchResource();
  const subresource = definition.subresources.find(({ name }) => name === path.subresource);
  if (path.subresource !== '' && !subresource) throw noSuchResource();
  if (path.namespace !== '' && !definition.isNamespaced) throw noSuchResource();
  return { definition, namespace: path.namespace, name: path.name, subresource };
}

function servedVerb(request: ApiRequest, { definition, subresource }: Target): Verb {
  const { verb } = request;
  const verbs: readonly Verb[] = subresource?.verbs ?? definition.verbs;
  const isCollection = request.path.name === '';
  // Namespaced objects are created, and deleted as a collection, in one namespace, not over all namespaces.
  const needsNamespace = (verb === 'create' && !subresource) || verb === 'deletecollection';
  const isOverAllNamespaces = needsNamespace && definition.isNamespaced && request.path.namespace === '';
  const isMisplaced =
    verb === 'create'
      ? !isCollection && !subresource
      : verb === 'update' || verb === 'patch'
        ? isCollection
        : false;
  if (!verb || !verbs.includes(verb) || isOverAllNamespaces || isMisplaced) throw methodNotAllowed();
  return verb;
}

function accessOf(request: ApiRequest, verb: string): AccessRequest {
  const { path, prefix } = request;
  return { ...path, name: requestedName(request, verb), verb, path: '', prefix };
}

function rejectDenied(
  { user, path, record }: ApiRequest,
  access: AccessRequest,
  decision: AccessDecision,
): void {
  recordDecision(record, decision);
  if (!decision.isAllowed) throw forbidden(path, access.name, denialText(user, access, decision));
}

/** The name of the object; for a list or a watch, the name that the field selector requires, as in `kubectl get NAME --watch`. */
function requestedName({ path, query }: ApiRequest, verb: string): string {
  if (verb !== 'list' && verb !== 'watch') return path.name;
  return exactValue(query.get('fieldSelector') ?? '', 'metadata.name') ?? '';
}

function deleteOptionsOf({ query, body }: ApiRequest): DeleteOptions {
  return parseDeleteOptions(query, parseDeleteBody(body));
}
