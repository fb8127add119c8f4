/** HTTP client of the `keys` commands: JSON requests to the key and token API. */

import { X509Certificate } from 'node:crypto';
import type { PeerCertificate } from 'node:tls';
import { Agent, buildConnector, request } from 'undici';
import { MANAGEMENT_API_VERSION } from '../../access-keys/identity.ts';
import { responseError } from '../../kube/client/responses.ts';
import { throughProxy } from '../../kube/client/transport.ts';
import type { StatusError } from '../../kube/status-error.ts';
import { codeOf, TerminalError } from '../../base/errors.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';

/** How the certificate of the server is verified. */
export type ServerTrust =
  /** With these authorities, PEM; undefined: those that this machine trusts. `serverName` replaces the host of the URL. */
  | { readonly kind: 'authorities'; readonly ca: string | undefined; readonly serverName?: string }
  /** It is this certificate, PEM, with any names: the file is on the same machine. */
  | { readonly kind: 'certificate'; readonly certificate: string };

export interface ApiConnection {
  /** `https://host:port`, optionally with a path prefix. */
  readonly server: string;
  readonly trust: ServerTrust;
  /** As in a kubeconfig. */
  readonly proxyUrl?: string | undefined;
  /** Called for each request, because a credential may expire within a minute. */
  token(): string | Promise<string>;
  /** What the credential is and where it comes from, for errors. */
  readonly credential: string;
}

export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below `/apis/APIVERSION/`. */
  readonly path: string;
  /** Default: `management.platform.sh/v1`. */
  readonly apiVersion?: string;
  readonly body?: JsonObject;
  readonly contentType?: string;
  readonly accept?: string;
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 30_000;

/** The connection to the server was refused. */
export class NoServerError extends TerminalError {}

export class ApiClient implements AsyncDisposable {
  readonly #connection: ApiConnection;
  readonly #warn: (text: string) => void;
  readonly #agent: Agent;

  /** `warn` is called with the text of each `Warning` header. */
  constructor(connection: ApiConnection, warn: (text: string) => void) {
    this.#connection = connection;
    this.#warn = warn;
    const connect = buildConnector(tlsOptions(connection.trust));
    this.#agent = new Agent({ connect: throughProxy(connection.proxyUrl, connect) });
  }

  /** Rejects with `StatusError` for an error response and with `TerminalError` if there is no response. */
  async send({
    method,
    path,
    apiVersion = MANAGEMENT_API_VERSION,
    body,
    timeoutMs = TIMEOUT_MS,
    accept = 'application/json',
    contentType = 'application/json',
  }: ApiCall): Promise<JsonObject> {
    const { server } = this.#connection;
    const url = `${server.replace(/\/+$/u, '')}/apis/${apiVersion}/${path}`;
    const answer = await this.#request(url, {
      method,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      headers: {
        accept,
        authorization: `Bearer ${await this.#connection.token()}`,
        ...(body === undefined ? {} : { 'content-type': contentType }),
        'user-agent': 'endpoint-syncer-keys',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    for (const text of warningsIn(answer.headers['warning'])) this.#warn(text);
    const text = await answer.body.text();
    if (answer.statusCode >= 300) {
      const response = { status: answer.statusCode, headers: answer.headers, text };
      throw this.#explained(responseError(response, `${method} ${url}`, Date.now()));
    }
    const value: unknown = JSON.parse(text);
    if (!isJsonObject(value)) throw new TerminalError(`the response of ${url} is not an object`);
    return value;
  }

  /** The API gives the reason when it rejects a key that it knows. */
  #explained(error: StatusError): StatusError | TerminalError {
    if (error.code !== 401 || error.message !== 'Unauthorized') return error;
    const { server, credential } = this.#connection;
    const reason = 'it belongs to another API, or was deleted';
    return new TerminalError(`Unauthorized: ${server} does not know ${credential}: ${reason}`, {
      cause: error,
    });
  }

  async #request(
    url: string,
    options: Parameters<typeof request>[1],
  ): Promise<Awaited<ReturnType<typeof request>>> {
    try {
      return await request(url, { ...options, dispatcher: this.#agent });
    } catch (error) {
      throw unreachable(this.#connection, error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }
}

function tlsOptions(trust: ServerTrust): buildConnector.BuildOptions {
  if (trust.kind === 'authorities') {
    const { ca, serverName } = trust;
    return {
      ...(ca === undefined ? {} : { ca, allowPartialTrustChain: true }),
      ...(serverName === undefined ? {} : { servername: serverName }),
    };
  }
  const { certificate } = trust;
  const { fingerprint256 } = new X509Certificate(certificate);
  return {
    ca: certificate,
    allowPartialTrustChain: true,
    checkServerIdentity: (_host: string, peer: PeerCertificate) =>
      peer.fingerprint256 === fingerprint256
        ? undefined
        : new Error('the certificate of the server is not managementApi.tls.certFile'),
  };
}

const REFUSED: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOENT', 'EHOSTUNREACH', 'ENOTFOUND']);

function unreachable({ server, trust }: ApiConnection, error: unknown): TerminalError {
  const code = codeOf(error);
  if (REFUSED.has(code)) {
    const message = `cannot connect to ${server} (${code}): start the API, or name another address with --server`;
    return new NoServerError(message, { cause: error });
  }
  const why = error instanceof Error ? error.message || code : String(error);
  return new TerminalError(`cannot connect to ${server}: ${tlsProblem(code, why, trust) ?? why}`, {
    cause: error,
  });
}

/** Undefined: not a problem of TLS. The texts of OpenSSL and Node name no flag of this command, and some have several lines. */
function tlsProblem(code: string, why: string, trust: ServerTrust): string | undefined {
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) {
    return `no TLS connection is possible (${code}); give the address that the API printed with --server`;
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `${why}; name one that it is for with --tls-server-name`;
  if (code === 'CERT_HAS_EXPIRED')
    return 'the certificate of the server has expired; replace it and restart the API';
  if (!/CERT|UNABLE_TO/u.test(code)) return undefined;
  if (trust.kind === 'certificate') {
    return `the certificate of the server is not managementApi.tls.certFile (${code})`;
  }
  const authority = trust.ca === undefined ? 'an authority that this machine trusts' : 'the given authority';
  return `the certificate of the server is not from ${authority} (${code}); name its authority with --certificate-authority (dataDir/ca.crt of the API)`;
}

/** `299 - "text"`, one header each or several in one. */
function warningsIn(header: string | readonly string[] | undefined): string[] {
  const text = typeof header === 'string' ? header : (header ?? []).join(', ');
  return [...text.matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/gu)].map(([, quoted = '']) =>
    quoted.replaceAll(/\\(.)/gu, '$1'),
  );
}
