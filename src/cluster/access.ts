/** Where an API server is and how to be let in: what a kubeconfig comes down to. */

/** What one request shows to be let in. */
export interface Credential {
  /** `authorization` and impersonation, lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** PEM, when a client certificate is shown. */
  readonly certificate?: { readonly cert: string | Buffer; readonly key: string | Buffer };
}

/** A source of credentials that may expire. */
export interface Credentials {
  /** The credential for a request now; a promise only while it has to be fetched. Rejects with `TransportError`. */
  current(): Credential | Promise<Credential>;
  /** The server answered 401. True when a fresh credential may differ, so that one more try makes sense. */
  invalidate(): boolean;
}

/** What the server must show. Called for every new connection, so that rotated files are used. */
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
  trust(): ServerTrust;
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
  const credential: Credential = { headers: token === '' ? {} : { authorization: `Bearer ${token}` } };
  return {
    server: server.replace(/\/+$/, ''),
    namespace: '',
    description: server,
    credentials: { current: () => credential, invalidate: () => false },
    trust: () => ({ isUnverified: false }),
  };
}
