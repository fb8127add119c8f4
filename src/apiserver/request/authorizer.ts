/** Who may do what. The embedded clusters allow everything; a test denies what it wants to see refused. */

import type { JsonObject } from '../../base/json.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import type { UserInfo } from './user.ts';

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
  /** The part of the URL before the path of an API server, such as `/kubernetes/cluster/a`; `''`: this server itself. */
  readonly prefix: string;
}

export interface AccessDecision {
  readonly isAllowed: boolean;
  /** Not even another authorizer may allow it. Says nothing when it is allowed. */
  readonly isDenied?: boolean;
  /** Why, for people; may be empty. */
  readonly reason: string;
}

export interface Authorizer {
  authorize(user: UserInfo, request: AccessRequest): AccessDecision | Promise<AccessDecision>;
  /**
   * Which objects of the kind there are for this user; undefined: all. To everybody else an object that is not visible does not exist.
   * The function gets the object as a client sees it.
   */
  visibleTo?(user: UserInfo, definition: ResourceDefinition): ((object: JsonObject) => boolean) | undefined;
}

export const allowEverything: Authorizer = {
  authorize: () => ({ isAllowed: true, reason: '' }),
};

/** The sentence in which a real server refuses. */
export function denialText(user: UserInfo, request: AccessRequest, decision: AccessDecision): string {
  const { verb, group, resource, subresource, namespace, path, prefix } = request;
  const why = decision.reason === '' ? '' : `: ${decision.reason}`;
  const who = `User ${JSON.stringify(user.name)} cannot ${verb}`;
  if (resource === '') return `${who} path ${JSON.stringify(prefix + path)}${why}`;
  const what = subresource === '' ? resource : `${resource}/${subresource}`;
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`;
  return `${who} resource ${JSON.stringify(what)} in API group ${JSON.stringify(group)} ${where}${why}`;
}
