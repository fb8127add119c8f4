/** What RBAC of a real API server allows follows a Role and its binding: the server learns of both by watches. */

import { valueAt, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import type { TestCluster } from '../scenarios/cluster-client.ts';
import { eventually } from '../support/eventually.ts';

export interface Authorized {
  readonly user: string;
  /** '' is the whole cluster. */
  readonly namespace: string;
  /** Of one Role: the server learns of all its rules at once, so one request of one rule stands for all. */
  readonly rules: readonly JsonValue[];
}

/** Waits until the cluster allows what the Role grants, or, after the end of the Role, until it does not. */
export async function whenAuthorized(
  cluster: TestCluster,
  { user, namespace, rules }: Authorized,
  isAllowed = true,
): Promise<void> {
  const [rule] = rules;
  if (rule === undefined) return;
  const first = (field: string): JsonValue => valueAt(rule, [field, 0]) ?? '';
  const resourceAttributes: JsonObject = {
    namespace,
    group: first('apiGroups'),
    resource: first('resources'),
    verb: first('verbs'),
    name: first('resourceNames'),
  };
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user, resourceAttributes },
  };
  const isAuthorized = async (): Promise<boolean> => {
    const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
    const { status, body } = await cluster.request('POST', path, review);
    if (status !== 201) throw new Error(`${path}: ${JSON.stringify(body)}`);
    return valueAt(body, ['status', 'allowed']) === true;
  };
  await eventually(isAuthorized, (allowed) => allowed === isAllowed, {
    what: `${user} ${isAllowed ? 'with' : 'without'} ${JSON.stringify(resourceAttributes)}`,
  });
}
