/** An API server behind TLS whose certificate and whose accepted token are replaced while clients use it. */

import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Agent, request } from 'undici';
import { generateAuthority, generateServerCertificate } from '../../src/access-keys/serving/certificates.ts';
import { kubeconfigText } from '../support/kubeconfig.ts';
import { listen } from '../support/listen.ts';
import { accessOf } from './cluster-client.ts';

interface Identity {
  /** PEM of the authority that clients have to trust. */
  readonly authority: string;
  readonly tls: { readonly cert: string; readonly key: string };
}

export class TlsGate implements AsyncDisposable {
  readonly #server: Server;
  readonly #port: number;
  readonly #upstream: ReturnType<typeof accessOf>;
  readonly #agent: Agent;
  readonly #sockets = new Set<Socket>();
  #identity: Identity;
  #token = 'first';
  /** Requests that had another token, and clients that trusted another authority. */
  refused = 0;

  private constructor(
    server: Server,
    port: number,
    upstream: ReturnType<typeof accessOf>,
    identity: Identity,
  ) {
    this.#server = server;
    this.#port = port;
    this.#upstream = upstream;
    this.#identity = identity;
    this.#agent = new Agent({ connect: upstream.tls, bodyTimeout: 0 });
    server.on('secureConnection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    server.on('tlsClientError', () => (this.refused += 1));
    server.on('request', (message, response) => {
      this.#serve(message, response).catch(() => response.destroy());
    });
  }

  /** In front of the API server of this kubeconfig. */
  static async open(kubeconfigPath: string): Promise<TlsGate> {
    const identity = await newIdentity();
    const server = createServer(identity.tls);
    return new TlsGate(
      server,
      await listen(server),
      accessOf(readFileSync(kubeconfigPath, 'utf8')),
      identity,
    );
  }

  /** For what is accepted now; `user`: instead of the token. */
  kubeconfig(user: object = { token: this.#token }): string {
    const cluster = {
      server: `https://127.0.0.1:${this.#port}`,
      'certificate-authority-data': Buffer.from(this.#identity.authority).toString('base64'),
    };
    return kubeconfigText('gate', cluster, user);
  }

  get token(): string {
    return this.#token;
  }

  /** The token before is refused, on open connections too. */
  replaceToken(): void {
    this.#token = `${this.#token}-next`;
    this.#cutAll();
  }

  /** By one of another authority. */
  async replaceCertificate(): Promise<void> {
    this.#identity = await newIdentity();
    this.#server.setSecureContext(this.#identity.tls);
    this.#cutAll();
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const { host: _host, connection: _connection, authorization, ...headers } = message.headers;
    if (authorization !== `Bearer ${this.#token}`) {
      this.refused += 1;
      const status = {
        kind: 'Status',
        apiVersion: 'v1',
        status: 'Failure',
        reason: 'Unauthorized',
        code: 401,
      };
      response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify(status));
      return;
    }
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const answer = await request(`${this.#upstream.url}${message.url}`, {
      method: message.method as 'GET', // any method; undici's type lists the known ones
      dispatcher: this.#agent,
      headers: { ...headers, authorization: `Bearer ${this.#upstream.token}` },
      body: message.method === 'GET' ? null : message,
      signal: gone.signal,
    });
    response.writeHead(answer.statusCode, answer.headers);
    response.flushHeaders();
    await pipeline(Readable.from(answer.body), response);
  }

  #cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#cutAll();
    await this.#agent.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

async function newIdentity(): Promise<Identity> {
  const nowMs = Date.now();
  const authority = await generateAuthority(nowMs);
  const tls = await generateServerCertificate(authority, ['127.0.0.1'], nowMs);
  return { authority: authority.cert, tls };
}
