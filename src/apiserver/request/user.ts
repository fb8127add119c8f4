/** Who asks, as `UserInfo` of authentication.k8s.io says it. */

export interface UserInfo {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  /** What an authenticator wants an authorizer to know, by qualified name. */
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** A user of whom nothing but the name is known. */
export function userNamed(name: string, groups: readonly string[] = []): UserInfo {
  return { name, uid: '', groups, extra: {} };
}

/** The server itself, when it bootstraps, reaps or collects. */
export const SERVER_USER: UserInfo = userNamed('system:apiserver', ['system:masters']);

/** What a request shows of its sender. */
export interface Credentials {
  /** The `Authorization` header. */
  readonly authorization: string | undefined;
  /** IP address of the peer. */
  readonly address: string;
}
