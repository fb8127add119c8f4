/** What a request asks for: the paths and verbs of a kube-apiserver, and the port that authorizes it. */

import { isTrue } from '../objects/query-options.ts';
import type { Verb, ResourceDefinition } from '../objects/resource-definition.ts';
import type { JsonObject } from '../../base/json.ts';
import type { UserInfo } from '../user.ts';

export interface ResourcePath {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  /** `''`: cluster scope, or all namespaces. */
  readonly namespace: string;
  /** `''`: the collection. */
  readonly name: string;
  readonly subresource: string;
}

/** A URL path, split into the prefix of a cluster and the API path. */
export interface ServerPath {
  /** See `AccessRequest.prefix`. */
  readonly prefix: string;
  /** `/api/v1/…` and so on. */
  readonly path: string;
}

/** The resource that a URL path names, with decoded segments; undefined for non-resource paths such as discovery and health. */
export function parseResourcePath(path: string): ResourcePath | undefined {
  const segments = decodeSegments(path);
  if (!segments) return undefined;
  const [root, ...rest] = segments;
  if (root === 'api' && rest.length >= 2) return resourceOf('', rest[0] ?? '', rest.slice(1));
  if (root === 'apis' && rest.length >= 3) return resourceOf(rest[0] ?? '', rest[1] ?? '', rest.slice(2));
  return undefined;
}

function decodeSegments(path: string): string[] | undefined {
  try {
    const segments = path.split('/').slice(1).map(decodeURIComponent);
    if (segments.at(-1) === '') segments.pop();
    return segments.includes('') ? undefined : segments;
  } catch {
    return undefined;
  }
}

function resourceOf(group: string, version: string, segments: readonly string[]): ResourcePath | undefined {
  const isBelowNamespace = segments[0] === 'namespaces' && segments.length > 2;
  // `/namespaces/x/status` is a subresource of the namespace, `/namespaces/x/pods` a collection in it.
  const isSubresource =
    isBelowNamespace && segments.length === 3 && ['status', 'finalize'].includes(segments[2] ?? '');
  const namespace = isBelowNamespace && !isSubresource ? (segments[1] ?? '') : '';
  const [resource = '', name = '', subresource = '', ...more] =
    namespace === '' ? segments : segments.slice(2);
  if (more.length > 0) return undefined;
  return { group, version, resource, namespace, name, subresource };
}

/** The verb of a request for authorization and audit; undefined for any other HTTP method. */
export function verbOf(method: string, path: ResourcePath, query: URLSearchParams): Verb | undefined {
  const isCollection = path.name === '';
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (!isCollection) return 'get';
      // A HEAD has no body that could be a stream.
      return method === 'GET' && isTrue(query.get('watch')) ? 'watch' : 'list';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return isCollection ? 'deletecollection' : 'delete';
    default:
      return undefined;
  }
}

// Authorization as a port.

export interface AccessRequest {
  /** For a path, the HTTP method in lower case. */
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** Set instead of the resource for `/healthz` and the like. */
  readonly path: string;
  /** The part of the URL before the API path, such as `/kubernetes/cluster/a`; `''`: this server itself. */
  readonly prefix: string;
}

export interface AccessDecision {
  readonly isAllowed: boolean;
  /** No other authorizer may allow it either. Meaningless when `isAllowed`. */
  readonly isDenied?: boolean;
  /** Explanation for users; may be empty. */
  readonly reason: string;
}

export interface Authorizer {
  authorize(user: UserInfo, request: AccessRequest): AccessDecision | Promise<AccessDecision>;
  /**
   * Which objects of the kind this user can see; undefined: all. For this user, other objects do not exist. The function receives the
   * object as a client sees it.
   */
  visibleTo?(user: UserInfo, definition: ResourceDefinition): ((object: JsonObject) => boolean) | undefined;
}

export const allowEverything: Authorizer = {
  authorize: () => ({ isAllowed: true, reason: '' }),
};

/** The message of a kube-apiserver for a denied request. */
export function denialText(user: UserInfo, request: AccessRequest, decision: AccessDecision): string {
  const { verb, group, resource, subresource, namespace, path, prefix } = request;
  const why = decision.reason === '' ? '' : `: ${decision.reason}`;
  const who = `User ${JSON.stringify(user.name)} cannot ${verb}`;
  if (resource === '') return `${who} path ${JSON.stringify(prefix + path)}${why}`;
  const what = subresource === '' ? resource : `${resource}/${subresource}`;
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`;
  return `${who} resource ${JSON.stringify(what)} in API group ${JSON.stringify(group)} ${where}${why}`;
}
