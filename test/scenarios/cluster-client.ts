/** The tests' client of a cluster: raw JSON over HTTP. It shares only the type of an object with the program under test. */

import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import { parse } from 'yaml';
import type { KubeObject } from '../../src/kube/object.ts';
import { parseJson, type JsonValue } from '../../src/base/json.ts';
import { eventually, type WaitOptions } from '../support/eventually.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';

const KINDS = {
  Endpoints: { prefix: '/api/v1', apiVersion: 'v1', plural: 'endpoints' },
  Service: { prefix: '/api/v1', apiVersion: 'v1', plural: 'services' },
  ServiceAccount: { prefix: '/api/v1', apiVersion: 'v1', plural: 'serviceaccounts' },
  Namespace: { prefix: '/api/v1', apiVersion: 'v1', plural: 'namespaces' },
  ConfigMap: { prefix: '/api/v1', apiVersion: 'v1', plural: 'configmaps' },
  Secret: { prefix: '/api/v1', apiVersion: 'v1', plural: 'secrets' },
  Event: { prefix: '/apis/events.k8s.io/v1', apiVersion: 'events.k8s.io/v1', plural: 'events' },
  EndpointSlice: {
    prefix: '/apis/discovery.k8s.io/v1',
    apiVersion: 'discovery.k8s.io/v1',
    plural: 'endpointslices',
  },
  Lease: {
    prefix: '/apis/coordination.k8s.io/v1',
    apiVersion: 'coordination.k8s.io/v1',
    plural: 'leases',
  },
  StatefulSet: { prefix: '/apis/apps/v1', apiVersion: 'apps/v1', plural: 'statefulsets' },
  Deployment: { prefix: '/apis/apps/v1', apiVersion: 'apps/v1', plural: 'deployments' },
  Gadget: { prefix: '/apis/example.com/v1', apiVersion: 'example.com/v1', plural: 'gadgets' },
  Role: { prefix: `/apis/${RBAC}`, apiVersion: RBAC, plural: 'roles' },
  RoleBinding: { prefix: `/apis/${RBAC}`, apiVersion: RBAC, plural: 'rolebindings' },
  ClusterRole: { prefix: `/apis/${RBAC}`, apiVersion: RBAC, plural: 'clusterroles' },
  ClusterRoleBinding: {
    prefix: `/apis/${RBAC}`,
    apiVersion: RBAC,
    plural: 'clusterrolebindings',
  },
} as const;

export type KindName = keyof typeof KINDS;

export interface Answer {
  readonly status: number;
  readonly body: JsonValue;
}

/** A request that was refused; `status` is the HTTP status. */
export class RefusedError extends Error {
  readonly status: number;

  constructor(what: string, answer: Answer) {
    super(`${what}: ${answer.status} ${JSON.stringify(answer.body).slice(0, 500)}`);
    this.status = answer.status;
  }
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: KubeObject;
}

interface Access {
  readonly url: string;
  /** '' if the user has a certificate instead. */
  readonly token: string;
  readonly tls: { ca?: Buffer; cert?: Buffer; key?: Buffer };
}

export class TestCluster implements AsyncDisposable {
  readonly url: string;
  readonly kubeconfigPath: string;
  readonly #headers: Record<string, string>;
  readonly #agent: Agent;

  constructor(kubeconfigPath: string) {
    const access = accessOf(readFileSync(kubeconfigPath, 'utf8'));
    this.kubeconfigPath = kubeconfigPath;
    this.url = access.url;
    this.#headers = access.token === '' ? {} : { authorization: `Bearer ${access.token}` };
    this.#agent = new Agent({ connect: access.tls, bodyTimeout: 0 });
  }

  /** Any request; no status is an error. */
  async request(method: string, path: string, body?: unknown, contentType?: string): Promise<Answer> {
    const answer = await request(`${this.url}${path}`, {
      method,
      dispatcher: this.#agent,
      headers: {
        ...this.#headers,
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': contentType ?? 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, body: parseBody(text) };
  }

  async #expect(method: string, path: string, body?: unknown, contentType?: string): Promise<JsonValue> {
    const answer = await this.request(method, path, body, contentType);
    if (answer.status >= 300) throw new RefusedError(`${method} ${path}`, answer);
    return answer.body;
  }

  /** Undefined if it does not exist. */
  async find(kind: KindName, namespace: string, name: string): Promise<KubeObject | undefined> {
    const path = pathOf(kind, namespace, name);
    const answer = await this.request('GET', path);
    if (answer.status === 404) return undefined;
    if (answer.status >= 300) throw new RefusedError(`GET ${path}`, answer);
    return asObject(answer.body);
  }

  async get(kind: KindName, namespace: string, name: string): Promise<KubeObject> {
    return asObject(await this.#expect('GET', pathOf(kind, namespace, name)));
  }

  /** `namespace` '' lists all of them. */
  async list(kind: KindName, namespace: string, query = ''): Promise<KubeObject[]> {
    return (await this.listAt(kind, namespace, query)).items;
  }

  async listAt(
    kind: KindName,
    namespace: string,
    query = '',
  ): Promise<{ items: KubeObject[]; resourceVersion: string }> {
    const body = await this.#expect('GET', pathOf(kind, namespace, '') + query);
    const list = body as unknown as { items: KubeObject[] | null; metadata: { resourceVersion: string } }; // a List
    return { items: list.items ?? [], resourceVersion: list.metadata.resourceVersion };
  }

  async create(kind: KindName, object: KubeObject): Promise<KubeObject> {
    const { apiVersion } = KINDS[kind];
    const path = pathOf(kind, object.metadata.namespace ?? '', '');
    return asObject(await this.#expect('POST', path, { apiVersion, kind, ...object }));
  }

  /** PUT; guarded when the object carries a resourceVersion. */
  async update(kind: KindName, object: KubeObject): Promise<KubeObject> {
    const { namespace, name } = object.metadata;
    return asObject(await this.#expect('PUT', pathOf(kind, namespace ?? '', name), object));
  }

  /** JSON merge patch. `fieldManager` as another tool would set it. */
  async merge(kind: KindName, key: readonly [string, string], patch: unknown): Promise<KubeObject> {
    const path = pathOf(kind, key[0], key[1]);
    return asObject(await this.#expect('PATCH', path, patch, 'application/merge-patch+json'));
  }

  /** Server-side apply: creates the object, or takes its fields from other managers. */
  async apply(kind: KindName, object: KubeObject, fieldManager: string): Promise<KubeObject> {
    const { namespace = '', name } = object.metadata;
    const path = `${pathOf(kind, namespace, name)}?fieldManager=${fieldManager}&force=true`;
    return asObject(await this.#expect('PATCH', path, object, 'application/apply-patch+yaml'));
  }

  /** JSON merge patch of the status subresource. */
  async mergeStatus(kind: KindName, key: readonly [string, string], status: unknown): Promise<KubeObject> {
    const path = `${pathOf(kind, key[0], key[1])}/status`;
    return asObject(await this.#expect('PATCH', path, { status }, 'application/merge-patch+json'));
  }

  /** True if it existed. */
  async delete(kind: KindName, namespace: string, name: string): Promise<boolean> {
    const path = pathOf(kind, namespace, name);
    const answer = await this.request('DELETE', path);
    if (answer.status === 404) return false;
    if (answer.status >= 300) throw new RefusedError(`DELETE ${path}`, answer);
    return true;
  }

  async deleteAll(kind: KindName, namespace: string): Promise<void> {
    await this.#expect('DELETE', pathOf(kind, namespace, ''));
  }

  async ensureNamespace(name: string): Promise<void> {
    const answer = await this.request('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name },
    });
    if (answer.status >= 300 && answer.status !== 409) throw new RefusedError(`namespace ${name}`, answer);
  }

  /** Waits until the object exists and `holds` is true for it, and returns it. */
  async when(
    kind: KindName,
    [namespace, name]: readonly [string, string],
    holds: (object: KubeObject) => boolean = () => true,
    options: WaitOptions = {},
  ): Promise<KubeObject> {
    const found = await eventually(
      () => this.find(kind, namespace, name),
      (object) => object !== undefined && holds(object),
      { what: `${kind} ${namespace}/${name}`, ...options },
    );
    return found as KubeObject; // it exists
  }

  /** Waits until the object does not exist. */
  async whenGone(
    kind: KindName,
    [namespace, name]: readonly [string, string],
    options: WaitOptions = {},
  ): Promise<void> {
    await eventually(
      () => this.find(kind, namespace, name),
      (object) => object === undefined,
      { what: `the end of ${kind} ${namespace}/${name}`, ...options },
    );
  }

  /** Every event after `resourceVersion`, until `signal` aborts. Rejects when the stream ends before. */
  async watch(
    kind: KindName,
    namespace: string,
    options: { resourceVersion: string; signal: AbortSignal; onEvent: (event: WatchEvent) => void },
  ): Promise<void> {
    const query = `?watch=true&resourceVersion=${options.resourceVersion}`;
    const answer = await request(`${this.url}${pathOf(kind, namespace, '')}${query}`, {
      dispatcher: this.#agent,
      headers: { ...this.#headers, accept: 'application/json' },
      signal: options.signal,
    });
    let rest = '';
    const decoder = new TextDecoder();
    for await (const chunk of answer.body) {
      const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n'); // undici's bodies are bytes
      rest = lines.pop() ?? '';
      for (const line of lines) if (line !== '') options.onEvent(parseJson(line) as unknown as WatchEvent); // an API server's own
    }
    throw new Error(`the watch of ${kind} in ${this.url} ended`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }
}

function pathOf(kind: KindName, namespace: string, name: string): string {
  const { prefix, plural } = KINDS[kind];
  const scope = namespace === '' ? '' : `/namespaces/${namespace}`;
  return `${prefix}${scope}/${plural}${name === '' ? '' : `/${name}`}`;
}

function parseBody(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

function asObject(body: JsonValue): KubeObject {
  return body as unknown as KubeObject; // the response of an API server to a successful request
}

interface Kubeconfig {
  clusters: {
    cluster: {
      server: string;
      'certificate-authority'?: string;
      'certificate-authority-data'?: string;
    };
  }[];
  users?: {
    user: {
      token?: string;
      'client-certificate-data'?: string;
      'client-key-data'?: string;
    };
  }[];
}

/** Tests' kubeconfigs hold one cluster and one user. */
export function accessOf(text: string): Access {
  const config = parse(text) as Kubeconfig;
  const cluster = config.clusters[0]?.cluster;
  if (cluster === undefined) throw new Error('the kubeconfig has no cluster');
  const user = config.users?.[0]?.user ?? {};
  const tls: Access['tls'] = {};
  const [file, data] = [cluster['certificate-authority'], cluster['certificate-authority-data']];
  if (file !== undefined) tls.ca = readFileSync(file);
  if (data !== undefined) tls.ca = Buffer.from(data, 'base64');
  const [cert, key] = [user['client-certificate-data'], user['client-key-data']];
  if (cert !== undefined) tls.cert = Buffer.from(cert, 'base64');
  if (key !== undefined) tls.key = Buffer.from(key, 'base64');
  return { url: cluster.server.replace(/\/$/, ''), token: user.token ?? '', tls };
}
