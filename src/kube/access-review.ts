/** Asks an API server what it would let us do, before anything depends on it. */

import { isJsonObject, type JsonObject } from '../base/json.ts';
import { MalformedResponseError, type ClusterClient, type RequestOptions } from './types.ts';

export interface WantedRight {
  readonly verb: string;
  /** API group; '' for the core group. */
  readonly group: string;
  /** With its subresource, if it is about one: `services/status`. */
  readonly resource: string;
  /** '' asks for every namespace. */
  readonly namespace: string;
  /** Present: only this object. */
  readonly name?: string;
}

const PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
/** As many reviews at a time as a client has connections, nearly. */
const CONCURRENCY = 8;

/** Those of `wanted` that are not allowed, in the given order. Rejects with `StatusError` or `TransportError`. */
export async function missingRights<R extends WantedRight>(
  client: Pick<ClusterClient, 'request'>,
  wanted: readonly R[],
  options: RequestOptions = {},
): Promise<readonly R[]> {
  const allowed: boolean[] = [];
  const todo = wanted.entries();
  const ask = async (): Promise<void> => {
    for (const [index, right] of todo) allowed[index] = await isAllowed(client, right, options);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, ask));
  return wanted.filter((_, index) => allowed[index] !== true);
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
  const answer = await client.request('POST', PATH, review, options);
  const status = isJsonObject(answer) ? answer['status'] : undefined;
  if (!isJsonObject(status))
    throw new MalformedResponseError('a SelfSubjectAccessReview was answered without a status');
  return status['allowed'] === true;
}
