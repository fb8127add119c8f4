/** Users, as `UserInfo` of authentication.k8s.io describes them. */

import { failure, StatusError } from '../kube/status-error.ts';

export interface UserInfo {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  /** Facts that the authenticator passes to authorizers, by qualified name. */
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** A user with a name and groups only. */
export function userNamed(name: string, groups: readonly string[] = []): UserInfo {
  return { name, uid: '', groups, extra: {} };
}

/** The server itself: bootstrapping, graceful deletion, garbage collection. */
export const SERVER_USER: UserInfo = userNamed('system:apiserver', ['system:masters']);

/** 401 for a credential that is genuine and not valid any more. Its owner may know why: `message`. */
export class RefusedCredentialError extends StatusError {
  constructor(message: string) {
    super(failure(401, 'Unauthorized', message).status);
  }
}

export interface Credentials {
  readonly authorization: string | undefined;
  readonly address: string;
}
