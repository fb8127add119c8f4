/** Who may do what. The embedded clusters allow everything; a test denies what it wants to see refused. */

export interface AccessRequest {
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** Set instead of the resource for `/healthz` and the like. */
  readonly path: string;
}

export interface AccessDecision {
  readonly isAllowed: boolean;
  /** Why, for people; may be empty. */
  readonly reason: string;
}

export interface Authorizer {
  authorize(user: string, request: AccessRequest): AccessDecision;
}

export const allowEverything: Authorizer = {
  authorize: () => ({ isAllowed: true, reason: '' }),
};

/** The sentence in which a real server refuses. */
export function denialText(user: string, request: AccessRequest, decision: AccessDecision): string {
  const { verb, group, resource, subresource, namespace } = request;
  const what = subresource === '' ? resource : `${resource}/${subresource}`;
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`;
  const why = decision.reason === '' ? '' : `: ${decision.reason}`;
  return (
    `User ${JSON.stringify(user)} cannot ${verb} resource ${JSON.stringify(what)} ` +
    `in API group ${JSON.stringify(group)} ${where}${why}`
  );
}
