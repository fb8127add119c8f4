/** Resolves the object that a request is about, and authorizes the request. */

import { recordDecision, type RequestRecord } from './audit-event.ts';
import { denialText, type AccessDecision, type AccessRequest, type Authorizer } from './authorizer.ts';
import type { ResourcePath } from './request-info.ts';
import type { ResourceDefinition, Verb } from '../objects/resource-definition.ts';
import type { DefinitionTable } from '../objects/definition-table.ts';
import { exactValue } from '../objects/list-query.ts';
import { forbidden, methodNotAllowed, noSuchResource } from '../status.ts';
import type { Target } from '../objects/target.ts';
import type { UserInfo } from '../user.ts';

/** The part of a request that authorization depends on. */
export interface TargetRequest {
  /** Undefined for an HTTP method without a verb. */
  readonly verb: Verb | undefined;
  readonly path: ResourcePath;
  readonly query: URLSearchParams;
  readonly user: UserInfo;
  /** See `AccessRequest.prefix`. */
  readonly prefix: string;
  /** Receives the decision, for the audit log. */
  readonly record: RequestRecord;
}

export interface TargetRules {
  readonly table: DefinitionTable;
  readonly authorizer: Authorizer;
}

export interface AllowedTarget {
  readonly target: Target;
  readonly verb: Verb;
}

/**
 * Throws `StatusError`: 403 before 404, so that a user without rights does not learn which resources exist. A promise only if the authorizer
 * returns one.
 */
export function allowedTarget(
  request: TargetRequest,
  { table, authorizer }: TargetRules,
): AllowedTarget | Promise<AllowedTarget> {
  const { user, path, prefix } = request;
  const served = (): AllowedTarget => {
    const target = targetOf(request, table.find(path.group, path.version, path.resource));
    return { target, verb: servedVerb(request, target) };
  };
  // The kinds of this server itself are no secret.
  const own = prefix === '' ? served() : undefined;
  const access = accessOf(request, own?.verb ?? request.verb ?? '');
  const allowed = (decision: AccessDecision): AllowedTarget => {
    rejectDenied(request, access, decision);
    if (!own) return served();
    const isVisible = authorizer.visibleTo?.(user, own.target.definition);
    return { target: { ...own.target, isVisible }, verb: own.verb };
  };
  const decision = authorizer.authorize(user, access);
  return decision instanceof Promise ? decision.then(allowed) : allowed(decision);
}

function targetOf({ path, prefix }: TargetRequest, definition: ResourceDefinition | undefined): Target {
  if (!definition?.isServedUnder(prefix)) throw noSuchResource();
  const subresource = definition.subresources.find(({ name }) => name === path.subresource);
  if (path.subresource !== '' && !subresource) throw noSuchResource();
  if (path.namespace !== '' && !definition.isNamespaced) throw noSuchResource();
  return { definition, namespace: path.namespace, name: path.name, subresource };
}

function servedVerb(request: TargetRequest, { definition, subresource }: Target): Verb {
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

function accessOf(request: TargetRequest, verb: string): AccessRequest {
  const { path, prefix } = request;
  return { ...path, name: requestedName(request, verb), verb, path: '', prefix };
}

function rejectDenied(
  { user, path, record }: TargetRequest,
  access: AccessRequest,
  decision: AccessDecision,
): void {
  recordDecision(record, decision);
  if (!decision.isAllowed) throw forbidden(path, access.name, denialText(user, access, decision));
}

/** The name of the object; for a list or a watch, the name that the field selector requires, as in `kubectl get NAME --watch`. */
function requestedName({ path, query }: TargetRequest, verb: string): string {
  if (verb !== 'list' && verb !== 'watch') return path.name;
  return exactValue(query.get('fieldSelector') ?? '', 'metadata.name') ?? '';
}
