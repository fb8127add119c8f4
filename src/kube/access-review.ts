/** Checks our own rights: a SelfSubjectRulesReview proves most of them at once, a SelfSubjectAccessReview decides each of the others. */

import { isJsonObject, objectList, textAt, type JsonObject, type JsonValue } from '../base/json.ts';
import { StatusError } from './status-error.ts';
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

type Requester = Pick<ClusterClient, 'request'>;

const ACCESS_REVIEW = ['authorization.k8s.io/v1', 'SelfSubjectAccessReview'] as const;
const RULES_REVIEW = ['authorization.k8s.io/v1', 'SelfSubjectRulesReview'] as const;
const WHO_AM_I = ['authentication.k8s.io/v1', 'SelfSubjectReview'] as const;
/** Each new connection takes more processor time, on both sides, than the reviews that it carries. */
const CONCURRENCY = 3;

/**
 * A rules review is for one namespace, and lists what a RoleBinding grants in it. No namespace can have this name, so what is listed for it is granted
 * in every namespace.
 */
const NO_NAMESPACE = '-';

/** Returns the rights of `wanted` that are denied, in the given order. Rejects with `StatusError` or `TransportError`. */
export async function missingRights<R extends WantedRight>(
  client: Requester,
  wanted: readonly R[],
  options: RequestOptions = {},
): Promise<readonly R[]> {
  const proven = new Set<R>();
  await forEachAtOnce([...Map.groupBy(wanted, ({ namespace }) => namespace)], async ([namespace, rights]) => {
    // One access review is no more than one rules review.
    if (rights.length === 1) return;
    const rules = await rulesIn(client, namespace || NO_NAMESPACE, options);
    for (const right of rights) if (isGranted(right, rules)) proven.add(right);
  });
  const denied = new Set<R>();
  const unproven = wanted.filter((right) => !proven.has(right));
  await forEachAtOnce(unproven, async (right) => {
    if (!(await isAllowed(client, right, options))) denied.add(right);
  });
  return wanted.filter((right) => denied.has(right));
}

async function forEachAtOnce<T>(items: readonly T[], request: (item: T) => Promise<void>): Promise<void> {
  const todo = items.values();
  const work = async (): Promise<void> => {
    for (const item of todo) await request(item);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
}

/** Whether a rule of the list grants the right, as RBAC decides. Rules are additive, so an incomplete list proves what it contains, and only that. */
export function isGranted(
  { verb, group, resource, name }: WantedRight,
  rules: readonly ResourceRule[],
): boolean {
  const [, subresource] = resource.split('/');
  const resources = ['*', resource, ...(subresource === undefined ? [] : [`*/${subresource}`])];
  return rules.some(
    (rule) =>
      containsAny(rule.verbs, ['*', verb]) &&
      containsAny(rule.apiGroups, ['*', group]) &&
      containsAny(rule.resources, resources) &&
      (containsAny(rule.resourceNames, [name]) || isAbsentOrEmpty(rule.resourceNames)),
  );
}

/** As an API server sent it. */
export interface ResourceRule {
  readonly verbs?: JsonValue;
  readonly apiGroups?: JsonValue;
  readonly resources?: JsonValue;
  readonly resourceNames?: JsonValue;
}

function containsAny(list: JsonValue | undefined, values: readonly (string | undefined)[]): boolean {
  return Array.isArray(list) && list.some((item) => typeof item === 'string' && values.includes(item));
}

function isAbsentOrEmpty(list: JsonValue | undefined): boolean {
  return list === undefined || (Array.isArray(list) && list.length === 0);
}

/** Empty if the API server does not answer the review: it proves nothing then. */
async function rulesIn(
  client: Requester,
  namespace: string,
  options: RequestOptions,
): Promise<readonly ResourceRule[]> {
  try {
    const status = await review(client, RULES_REVIEW, { namespace }, options);
    return objectList(status ?? {}, 'resourceRules');
  } catch (error) {
    if (error instanceof StatusError) return [];
    throw error;
  }
}

/** The name of our own user, as `kubectl auth whoami` prints it. Rejects with `StatusError` (404 before Kubernetes 1.28) or `TransportError`. */
export async function ownUserName(client: Requester): Promise<string> {
  const name = textAt(await review(client, WHO_AM_I), 'userInfo', 'username');
  if (name === '') throw new MalformedResponseError('the response to a SelfSubjectReview has no user name');
  return name;
}

async function isAllowed(
  client: Requester,
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
  const status = await review(client, ACCESS_REVIEW, { resourceAttributes }, options);
  if (status === undefined)
    throw new MalformedResponseError('the response to a SelfSubjectAccessReview has no status');
  return status['allowed'] === true;
}

/** The status of a review of our own identity; undefined: the response has none. */
async function review(
  client: Requester,
  [apiVersion, kind]: readonly [string, string],
  spec?: JsonObject,
  options?: RequestOptions,
): Promise<JsonObject | undefined> {
  const path = `/apis/${apiVersion}/${kind.toLowerCase()}s`;
  const response = await client.request(
    'POST',
    path,
    { apiVersion, kind, metadata: {}, ...(spec && { spec }) },
    options,
  );
  const status = isJsonObject(response) ? response['status'] : undefined;
  return isJsonObject(status) ? status : undefined;
}
