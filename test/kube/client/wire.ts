/** A client, and a server that gives it one reply after the other. */

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { plainAccess } from '../../../src/kube/access.ts';
import type { ClientOptions } from '../../../src/kube/client/client.ts';
import { type WatchClient } from '../../../src/kube/types.ts';
import { type KubeObject } from '../../../src/kube/object.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import { listen } from '../../support/listen.ts';
import { testClient } from '../test-client.ts';

export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

export interface Reply {
  readonly code?: number;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
  /** Never answered. */
  readonly isSilent?: boolean;
}

export class Wire implements AsyncDisposable {
  readonly seen: Seen[] = [];
  /** Names and values as received, of all requests. */
  readonly rawHeaders: string[] = [];
  readonly requested: string[] = [];
  connections = 0;
  readonly #server: Server;
  readonly #clients: WatchClient[] = [];

  private constructor(replies: readonly Reply[]) {
    const queue = [...replies];
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method = '', url = '', headers } = request;
        this.rawHeaders.push(...request.rawHeaders);
        this.seen.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
        const reply = queue.shift() ?? {};
        if (reply.isSilent === true) return;
        response
          .writeHead(reply.code ?? 200, reply.headers ?? {})
          .end(reply.body ?? JSON.stringify(objectAt(url)));
      });
    });
    this.#server.on('connection', () => (this.connections += 1));
  }

  static async open(...replies: Reply[]): Promise<Wire> {
    const wire = new Wire(replies);
    await listen(wire.#server);
    return wire;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  client(options: Partial<ClientOptions> = {}): WatchClient {
    const client = testClient(plainAccess(this.url, 'secret'), {
      metrics: { requested: (method, code) => this.requested.push(`${method} ${code}`) },
      userAgent: 'endpoint-syncer/test',
      ...options,
    });
    this.#clients.push(client);
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) await client[Symbol.asyncDispose]();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

const KINDS: Readonly<Record<string, string>> = {
  endpoints: 'Endpoints',
  endpointslices: 'EndpointSlice',
  namespaces: 'Namespace',
};

/** The object that an API server holds at a path; at that of a collection, the object `a`. */
export function objectAt(url: string): KubeObject {
  const parts = new URL(url, 'http://wire').pathname.split('/').map(decodeURIComponent);
  const [, root = '', ...rest] = parts;
  const apiVersion = root === 'api' ? rest.shift() : `${rest.shift()}/${rest.shift()}`;
  const namespace = rest.length > 2 ? rest[1] : undefined;
  const [plural = '', name = 'a'] = namespace === undefined ? rest : rest.slice(2);
  return {
    ...(apiVersion === undefined ? {} : { apiVersion }),
    kind: KINDS[plural] ?? plural,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), uid: 'u', resourceVersion: '7' },
  };
}

export const KEY = { namespace: 'ns', name: 'a' };
export const OBJECT: KubeObject = {
  metadata: { name: 'a', namespace: 'ns', resourceVersion: '7' },
  unknownField: { ä: [1] },
};
export async function refusal(promise: Promise<unknown>): Promise<StatusError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof StatusError)) throw new Error(`not a StatusError: ${String(error)}`);
  return error;
}
