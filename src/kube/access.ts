/** Address, credentials and trust settings of an API server, as a kubeconfig defines them. */

import { unmappedAddress } from '../base/ip-address.ts';

/** Lower-case names. Of several values, each is sent in a header of its own. */
export interface RequestHeaders {
  readonly authorization?: string;
  readonly [name: string]: string | readonly string[];
}

/** The value of a header as Go sends it, in UTF-8: each byte is a character here. Undefined: no header may have it (RFC 9110 5.5). */
export function headerBytes(value: string): string | undefined {
  const bytes = Buffer.from(value, 'utf8').toString('latin1');
  return /[^\t\x20-\x7e\x80-\xff]/u.test(bytes) ? undefined : bytes;
}

/** PEM. */
export interface ClientCertificate {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

/** Credentials, which may expire. Every method may reject with `TransportError`. */
export interface Credentials {
  /** The `authorization` and impersonation headers of a request; a promise only if they have to be fetched. */
  headers(): RequestHeaders | Promise<RequestHeaders>;
  /** Called for every new connection. */
  certificate(): ClientCertificate | undefined | Promise<ClientCertificate | undefined>;
  /** Called after a 401. Returns true if renewed credentials may differ, so that a retry makes sense. */
  invalidate(): boolean;
}

/** How the server's certificate is verified. */
export interface ServerTrust {
  readonly ca?: string | Buffer;
  /** The name in the server's certificate, when it is not the host of the URL. */
  readonly serverName?: string;
  readonly isUnverified: boolean;
}

export interface ServerAccess {
  /** `https://host:port`, possibly with a base path; no slash at the end. May change when credentials are renewed. */
  readonly server: string;
  /** The namespace of the context or of the service account; '' when neither names one. */
  readonly namespace: string;
  /** For messages: `context a of /home/me/.kube/config`. */
  readonly description: string;
  readonly proxyUrl?: string | undefined;
  readonly credentials: Credentials;
  /** Called for every new connection, so that rotated files are used. */
  trust(): ServerTrust | Promise<ServerTrust>;
  /** Called when the server could not be reached or verified: its address or authority may have changed. */
  unreachable?(): void;
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

/** Whether credentials may be sent: through TLS, or where nobody else reads them on the way, to a server on this machine and not through a proxy elsewhere. */
export function takesCredentials({ server, proxyUrl }: Pick<ServerAccess, 'server' | 'proxyUrl'>): boolean {
  const url = new URL(server);
  return url.protocol === 'https:' || [url, new URL(proxyUrl ?? url)].every(isLoopback);
}

/** A server on the same machine. */
export function isLoopback({ hostname }: URL): boolean {
  return /^(?:localhost|127\.[\d.]+|::1)$/u.test(unmappedAddress(hostname.replace(/^\[|\]$/gu, '')));
}
