/** Checks our own rights with SelfSubjectAccessReviews. */

import { isJsonObject, type JsonObject } from '../base/json.ts';
import { MalformedResponseError, type ClusterClient, type RequestOptions } from './types.ts';

export interface WantedRight {
  readonly verb: string;
  /** API group; '' for the core group. */
  readonly group: string;
  /** May include a subresource: `services/status`. */
  readonly resource: string;
  /** '' means every namespace. */
  readonly namespace: string;
  /** Restricts the right to one object. */
  readonly name?: string;
}

const PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
const WHO_AM_I = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
/** Each new connection takes more processor time, on both sides, than the reviews that it carries. */
const CONCURRENCY = 3;

/** Returns the rights of `wanted` that are denied, in the given order. Rejects with `StatusError` or `TransportError`. */
export async function missingRights<R extends WantedRight>(
  client: Pick<ClusterClient, 'request'>,
  wanted: readonly R[],
  options: RequestOptions = {},
): Promise<readonly R[]> {
  const allowed: boolean[] = [];
  const todo = wanted.entries();
  const review = async (): Promise<void> => {
    for (const [index, right] of todo) allowed[index] = await isAllowed(client, right, options);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, review));
  return wanted.filter((_, index) => allowed[index] !== true);
}

/** The name of our own user, as `kubectl auth whoami` prints it. Rejects with `StatusError` (404 before Kubernetes 1.28) or `TransportError`. */
export async function ownUserName(client: Pick<ClusterClient, 'request'>): Promise<string> {
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview', metadata: {} };
  const response = await client.request('POST', WHO_AM_I, review);
  const status = isJsonObject(response) ? response['status'] : undefined;
  const user = isJsonObject(status) ? status['userInfo'] : undefined;
  const name = isJsonObject(user) ? user['username'] : undefined;
  if (typeof name !== 'string')
    throw new MalformedResponseError('the response to a SelfSubjectReview has no user name');
  return name;
}

async function isAllowed(
  client: Pick<ClusterClient, 'request'>,
  { verb, group, resource, namespace, name }: WantedRight,
  options: RequestOptions,
): Promise<boolean> {
  const [plural = '', subresource] = resource.split('/');
  const resourceAttributes: JsonObject = {
    verb,
    group,
    resource: plural,
    ...(subresource === undefined ? {} : { subresource }),
    ...(namespace === '' ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
  };
  const review: JsonObject = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    metadata: {},
    spec: { resourceAttributes },
  };
  const response = await client.request('POST', PATH, review, options);
  const status = isJsonObject(response) ? response['status'] : undefined;
  if (!isJsonObject(status))
    throw new MalformedResponseError('the response to a SelfSubjectAccessReview has no status');
  return status['allowed'] === true;
}
