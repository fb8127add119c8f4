/** A small Kubernetes cluster in this process: an API server with an in-memory store, without nodes and controllers, for the demo and tests. */

import type { IncomingMessage } from 'node:http';
import { systemClock, type Clock } from '../base/clock.ts';
import type { JsonObject } from '../base/json.ts';
import { systemRandom, type Random } from '../base/random.ts';
import { silentLogger, type Logger } from '../base/logger.ts';
import { MemoryStore } from '../apiserver/storage/revisioned-store.ts';
import type { Store } from '../apiserver/storage/store.ts';
import { allowEverything, type Authorizer } from '../apiserver/request/request-info.ts';
import { builtInKinds } from './kinds/built-in-kinds.ts';
import { ClusterAdmission } from './cluster-admission.ts';
import { ObjectRegistry } from '../apiserver/objects/object-registry.ts';
import type { ResourceDefinition, DefinitionTable } from '../apiserver/objects/resource-definition.ts';
import { decodeObject } from '../apiserver/schema/decode.ts';
import { SERVER_USER, userNamed, type Credentials, type UserInfo } from '../apiserver/user.ts';
import { startServer } from '../apiserver/http/api-server.ts';
import { sendStatus, type RequestListener } from '../apiserver/http/http-server.ts';
import { failure, type StatusError } from '../kube/status-error.ts';

export interface EmbeddedClusterOptions {
  /** Used in the kubeconfig and in logs. */
  name: string;
  /** Default: any free port. */
  port?: number;
  clock?: Clock;
  random?: Random;
  logger?: Logger;
  /** Default: everything is allowed. */
  authorizer?: Authorizer;
  /** Bearer token that every request must have; absent: no authentication. */
  token?: string;
  /** Further users by bearer token, for an authorizer that distinguishes them. */
  users?: Readonly<Record<string, string>>;
  /** Number of events kept for watches; an older resourceVersion is 410. */
  historyLimit?: number;
  /** Default 1 minute. */
  bookmarkIntervalMs?: number;
  /** A listener around the one of the server, which tests use to inject faults. */
  wrapListener?: (serve: RequestListener) => RequestListener;
  /** Served in addition to the built-in kinds, like custom resources. */
  kinds?: readonly ResourceDefinition[];
}

export interface EmbeddedCluster {
  readonly name: string;
  /** `http://127.0.0.1:40123` */
  readonly url: string;
  /** YAML text of a kubeconfig with this one cluster. */
  readonly kubeconfig: string;
  readonly store: Store;
  /** Compacts all history: a watch or a list that resumes from an earlier revision gets 410. */
  expireHistory(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** kubectl warns when this version differs too much from its own. */
const VERSION = { major: '1', minor: '37', gitVersion: 'v1.37.0+embedded' };
const USER = userNamed('admin', ['system:masters']);

export async function startEmbeddedCluster(options: EmbeddedClusterOptions): Promise<EmbeddedCluster> {
  const logger = (options.logger ?? silentLogger).child({ cluster: options.name });
  const authorizer = options.authorizer ?? allowEverything;
  const { historyLimit, bookmarkIntervalMs } = options;
  const store = new MemoryStore(historyLimit === undefined ? {} : { historyLimit });
  const table = builtInKinds(authorizer, options.kinds);
  const clock = options.clock ?? systemClock;
  const random = options.random ?? systemRandom;
  const admission = new ClusterAdmission({ store, table, logger, registry: () => registry });
  const registry = new ObjectRegistry({ store, clock, random, admission });
  await bootstrap(registry, table);
  const server = await startServer({
    table,
    registry,
    logger,
    authorizer,
    authenticate: authenticatorFor(options),
    version: VERSION,
    wrapListener: (serve) => {
      const guarded = options.token === undefined ? withoutBrowsers(serve) : serve;
      return options.wrapListener?.(guarded) ?? guarded;
    },
    ...(bookmarkIntervalMs === undefined ? {} : { bookmarkIntervalMs }),
    listen: { port: options.port ?? 0 },
  });
  return {
    name: options.name,
    url: `http://${server.address}`,
    kubeconfig: kubeconfigText(options.name, server.address, options.token),
    store,
    expireHistory: async () => store.compact(await store.revision()),
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      registry.close();
      await store[Symbol.asyncDispose]();
    },
  };
}

function authenticatorFor({
  token,
  users = {},
}: EmbeddedClusterOptions): (credentials: Credentials) => UserInfo | undefined {
  return ({ authorization }) => {
    const bearer = authorization?.startsWith('Bearer ') ? authorization.slice('Bearer '.length) : undefined;
    if (bearer !== undefined && Object.hasOwn(users, bearer)) return userNamed(users[bearer] ?? '');
    return token === undefined || bearer === token ? USER : undefined;
  };
}

/** JSON strings are YAML, and escape any name. */
function kubeconfigText(name: string, address: string, token: string | undefined): string {
  const user = token === undefined ? {} : { token };
  const lines = [
    'apiVersion: v1',
    'kind: Config',
    `current-context: ${JSON.stringify(name)}`,
    `clusters: [${JSON.stringify({ name, cluster: { server: `http://${address}` } })}]`,
    `users: [${JSON.stringify({ name, user })}]`,
    `contexts: [${JSON.stringify({ name, context: { cluster: name, user: name, namespace: 'default' } })}]`,
  ];
  return `${lines.join('\n')}\n`;
}

const NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

/** Creates the objects of a new cluster. */
async function bootstrap(registry: ObjectRegistry, table: DefinitionTable): Promise<void> {
  const context = { user: SERVER_USER, manager: 'kube-apiserver', isDryRun: false };
  const create = async (resource: string, namespace: string, body: JsonObject): Promise<void> => {
    const definition = table.find('', 'v1', resource);
    if (!definition) return;
    const { value } = decodeObject(definition.schema, body);
    await registry.create({ definition, namespace, name: '' }, value, context);
  };
  for (const name of NAMESPACES) await create('namespaces', '', { metadata: { name } });
  await create('services', 'default', {
    metadata: { name: 'kubernetes', labels: { component: 'apiserver', provider: 'kubernetes' } },
    spec: {
      clusterIP: '10.0.0.1',
      ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: 6443 }],
    },
  });
}

// Keeps pages of other sites, which a browser on this machine shows, from using a cluster that asks for no credentials.

/** A listener that denies what no client but a browser sends. */
function withoutBrowsers(serve: RequestListener): RequestListener {
  return (request, response) => {
    const denial = denialOf(request);
    if (denial === undefined) serve(request, response);
    else sendStatus(response, denial);
  };
}

/** With any port, which a proxy on this machine may change. */
const LOOPBACK = /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/u;

function denialOf({ method = '', headers }: IncomingMessage): StatusError | undefined {
  const { host, origin } = headers;
  // DNS rebinding: a site whose name resolves to 127.0.0.1 sends its own name here.
  if (host !== undefined && !LOOPBACK.test(host))
    return forbidden(`unexpected Host header ${JSON.stringify(host)}; use the address of the kubeconfig`);
  if (origin !== undefined)
    return forbidden('requests with an Origin header are denied: a browser sent this one');
  // A browser sends a POST of another site without asking, but not with a type of JSON or YAML.
  const hasBody = ['POST', 'PUT', 'PATCH'].includes(method);
  if (!hasBody || headers['content-type'] !== undefined) return undefined;
  return failure(415, 'UnsupportedMediaType', 'the request has no Content-Type; set application/json');
}

function forbidden(message: string): StatusError {
  return failure(403, 'Forbidden', message);
}
