/** TokenReviews and SubjectAccessReviews by the API server of the host cluster. */

import type { AccessDecision, AccessRequest } from '../../../apiserver/request/authorizer.ts';
import { failure } from '../../../apiserver/status.ts';
import type { UserInfo } from '../../../apiserver/request/user.ts';
import { listField, objectField, text } from '../../../apiserver/metadata.ts';
import { TransportError, MalformedResponseError, type ClusterClient } from '../../../kube/types.ts';
import { StatusError } from '../../../kube/status-error.ts';
import { isJsonObject, setOwn, type JsonObject } from '../../../base/json.ts';
import type { HostReviews } from './delegated-auth.ts';

const TOKEN_REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews';
const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
const TIMEOUT_MS = 5_000;

export function hostReviews(client: Pick<ClusterClient, 'request'>): HostReviews {
  const review = async (path: string, kind: string, spec: JsonObject): Promise<JsonObject> => {
    const apiVersion = path.split('/').slice(2, 4).join('/');
    const body: JsonObject = { apiVersion, kind, metadata: {}, spec };
    try {
      const answer = await client.request('POST', path, body, { timeoutMs: TIMEOUT_MS });
      if (isJsonObject(answer) && isJsonObject(answer['status'])) return answer['status'];
      throw new MalformedResponseError(`the response to a ${kind} has no status`);
    } catch (error) {
      throw unavailable(error, kind);
    }
  };
  return {
    reviewToken: async (token) => {
      const status = await review(TOKEN_REVIEWS, 'TokenReview', { token });
      return status['authenticated'] === true ? userOf(objectField(status, 'user')) : undefined;
    },
    reviewAccess: async (user, request) => {
      const status = await review(ACCESS_REVIEWS, 'SubjectAccessReview', accessSpec(user, request));
      return decisionOf(status);
    },
  };
}

/** The caller gets a 503; the cause is for the log. */
function unavailable(error: unknown, kind: string): unknown {
  if (!(error instanceof StatusError) && !(error instanceof TransportError)) return error;
  const isRefused = error instanceof StatusError && (error.code === 401 || error.code === 403);
  const why = isRefused
    ? `this program may not create a ${kind} there; bind the ClusterRole system:auth-delegator`
    : 'try again';
  const { status } = failure(
    503,
    'ServiceUnavailable',
    `the host cluster did not review the request: ${why}`,
    {
      retryAfterSeconds: 1,
    },
  );
  return new StatusError(status, { cause: error });
}

function userOf(user: JsonObject): UserInfo {
  const extra: Record<string, readonly string[]> = {};
  const sent = objectField(user, 'extra');
  for (const key of Object.keys(sent)) setOwn(extra, key, textsOf(sent, key));
  return { name: text(user, 'username'), uid: text(user, 'uid'), groups: textsOf(user, 'groups'), extra };
}

function textsOf(object: JsonObject, field: string): readonly string[] {
  return listField(object, field).filter((item) => typeof item === 'string');
}

function accessSpec({ name, uid, groups, extra }: UserInfo, request: AccessRequest): JsonObject {
  const sent: JsonObject = {};
  for (const key of Object.keys(extra)) setOwn(sent, key, [...(extra[key] ?? [])]);
  const { verb, group, version, resource, subresource, namespace, path } = request;
  const attributes: JsonObject =
    resource === ''
      ? { nonResourceAttributes: { verb, path } }
      : {
          resourceAttributes: { verb, group, version, resource, subresource, namespace, name: request.name },
        };
  return { user: name, uid, groups: [...groups], extra: sent, ...attributes };
}

function decisionOf(status: JsonObject): AccessDecision {
  return {
    isAllowed: status['allowed'] === true,
    isDenied: status['denied'] === true,
    reason: text(status, 'reason'),
  };
}
