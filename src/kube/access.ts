/** Where an API server is and how to be let in: what a kubeconfig comes down to. */

/** Lower-case names. */
export type RequestHeaders = Readonly<Record<string, string>>;

/** PEM. */
export interface ClientCertificate {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

/** What is shown to be let in; it may expire. Every method may reject with `TransportError`. */
export interface Credentials {
  /** `authorization` and impersonation, for a request now; a promise only while they have to be fetched. */
  headers(): RequestHeaders | Promise<RequestHeaders>;
  /** Called for every new connection. */
  certificate(): ClientCertificate | undefined | Promise<ClientCertificate | undefined>;
  /** The server answered 401. True when a fresh credential may differ, so that one more try makes sense. */
  invalidate(): boolean;
}

/** What the server must show. */
export interface ServerTrust {
  readonly ca?: string | Buffer;
  /** The name in the server's certificate, when it is not the host of the URL. */
  readonly serverName?: string;
  readonly isUnverified: boolean;
}

export interface ServerAccess {
  /** `https://host:port`, possibly with a base path; no slash at the end. */
  readonly server: string;
  /** The namespace of the context or of the service account; '' when neither names one. */
  readonly namespace: string;
  /** For messages: `context a of /home/me/.kube/config`. */
  readonly description: string;
  readonly proxyUrl?: string;
  readonly credentials: Credentials;
  /** Called for every new connection, so that rotated files are used. */
  trust(): ServerTrust | Promise<ServerTrust>;
}

/** The same access by another URL of the API server: `https://host:port`, possibly with a base path. */
export function withServer(access: ServerAccess, server: string): ServerAccess {
  return { ...access, server: server.replace(/\/+$/, '') };
}

/** Everything that a TLS connection is made with. */
export interface TlsMaterial {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized: boolean;
}

/** Access to a server without a kubeconfig: the embedded API servers, and tests. */
export function plainAccess(server: string, token = ''): ServerAccess {
  const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
  return {
    server: server.replace(/\/+$/, ''),
    namespace: '',
    description: server,
    credentials: { headers: () => headers, certificate: () => undefined, invalidate: () => false },
    trust: () => ({ isUnverified: false }),
  };
}
