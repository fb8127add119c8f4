/** Authorization as a port. */

import type { JsonObject } from '../../base/json.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import type { UserInfo } from '../user.ts';

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
