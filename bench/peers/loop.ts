/**
 * The least that a syncer can be: list and watch the virtual Endpoints, translate names, write to the host. No ownership, no back-sync,
 * no Services, no retries, no metrics. It shows what the API servers and Node allow at all.
 *
 * Usage: loop.ts VIRTUAL_KUBECONFIG HOST_KUBECONFIG VCLUSTER HOST_NAMESPACE
 */

import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import { parse } from 'yaml';

interface Meta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

interface Endpoints {
  apiVersion?: string;
  kind?: string;
  metadata: Meta;
  subsets?: { addresses?: { targetRef?: Record<string, string> }[] }[];
}

interface Cluster {
  send(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: AsyncIterable<Uint8Array> }>;
  json<T>(method: string, path: string, body?: unknown): Promise<T>;
}

const IN_FLIGHT = 10;
const UID = 'vcluster.loft.sh/object-uid';

const [virtualFile = '', hostFile = '', vcluster = '', hostNamespace = ''] = process.argv.slice(2);
const virtual = connect(virtualFile);
const host = connect(hostFile);
const hostPath = `/api/v1/namespaces/${hostNamespace}/endpoints`;

/** Host name → the resourceVersion to update over. */
const copies = new Map<string, string>();
const queue = new Map<string, Endpoints>();
const busy = new Set<string>();

const existing = await listAll(host, hostPath);
const unchanged = new Map<string, string>();
for (const copy of existing.items) {
  copies.set(copy.metadata.name, copy.metadata.resourceVersion ?? '');
  unchanged.set(copy.metadata.name, JSON.stringify([copy.metadata.labels, copy.subsets]));
}
const listed = await listAll(virtual, '/api/v1/endpoints');
for (const object of listed.items) {
  const copy = translate(object);
  if (unchanged.get(copy.metadata.name) !== JSON.stringify([copy.metadata.labels, copy.subsets]))
    enqueue(object);
}
await watch(listed.resourceVersion);

function enqueue(object: Endpoints): void {
  queue.set(`${object.metadata.namespace}/${object.metadata.name}`, object);
  void pump();
}

async function pump(): Promise<void> {
  for (const [key, object] of queue) {
    if (busy.size >= IN_FLIGHT) return;
    if (busy.has(key)) continue;
    queue.delete(key);
    busy.add(key);
    void write(object).finally(() => {
      busy.delete(key);
      void pump();
    });
  }
}

async function write(object: Endpoints): Promise<void> {
  const copy = translate(object);
  const { name } = copy.metadata;
  const over = copies.get(name);
  const stored =
    over === undefined
      ? await host.json<Endpoints>('POST', hostPath, copy)
      : await host.json<Endpoints>('PUT', `${hostPath}/${name}`, {
          ...copy,
          metadata: { ...copy.metadata, resourceVersion: over },
        });
  copies.set(name, stored.metadata.resourceVersion ?? '');
}

function translate({ metadata, subsets }: Endpoints): Endpoints {
  const { name, namespace = '', uid = '', labels = {}, annotations = {} } = metadata;
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: {
      name: `${name}-x-${namespace}-x-${vcluster}`,
      namespace: hostNamespace,
      labels: { ...labels, 'vcluster.loft.sh/managed-by': vcluster, 'vcluster.loft.sh/namespace': namespace },
      annotations: { ...annotations, 'vcluster.loft.sh/object-name': name, [UID]: uid },
    },
    subsets: (subsets ?? []).map((subset) => ({
      ...subset,
      addresses: (subset.addresses ?? []).map((address) => {
        const ref = address.targetRef;
        if (ref?.['kind'] !== 'Pod') return address;
        const { uid: _uid, resourceVersion: _version, ...kept } = ref;
        const podName = `${ref['name']}-x-${ref['namespace'] ?? namespace}-x-${vcluster}`;
        return { ...address, targetRef: { ...kept, name: podName, namespace: hostNamespace } };
      }),
    })),
  };
}

async function listAll(
  cluster: Cluster,
  path: string,
): Promise<{ items: Endpoints[]; resourceVersion: string }> {
  const list = await cluster.json<{ items: Endpoints[]; metadata: { resourceVersion: string } }>('GET', path);
  return { items: list.items, resourceVersion: list.metadata.resourceVersion };
}

async function watch(resourceVersion: string): Promise<void> {
  const { body } = await virtual.send(
    'GET',
    `/api/v1/endpoints?watch=true&resourceVersion=${resourceVersion}`,
  );
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') continue;
      const event = JSON.parse(line) as { type: string; object: Endpoints }; // an API server's own
      if (event.type === 'ADDED' || event.type === 'MODIFIED') enqueue(event.object);
      else if (event.type === 'DELETED')
        await host.send('DELETE', `${hostPath}/${translate(event.object).metadata.name}`);
    }
  }
}

function connect(kubeconfigFile: string): Cluster {
  const config = parse(readFileSync(kubeconfigFile, 'utf8')) as {
    clusters: { cluster: { server: string; 'certificate-authority': string } }[];
    users: { user: { token: string } }[];
  }; // written by the benchmark
  const { server, 'certificate-authority': caFile } = config.clusters[0]?.cluster ?? {
    server: '',
    'certificate-authority': '',
  };
  const dispatcher = new Agent({
    connections: IN_FLIGHT + 1,
    connect: { ca: readFileSync(caFile) },
    bodyTimeout: 0,
  });
  const authorization = `Bearer ${config.users[0]?.user.token}`;
  const send: Cluster['send'] = async (method, path, body) => {
    const { statusCode, body: answer } = await request(`${server}${path}`, {
      method: method as 'GET', // undici's type lists the known methods
      dispatcher,
      headers: { authorization, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: statusCode, body: answer };
  };
  return {
    send,
    async json<T>(method: string, path: string, body?: unknown): Promise<T> {
      const answer = await send(method, path, body);
      const chunks: Uint8Array[] = [];
      for await (const chunk of answer.body) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString();
      if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 300)}`);
      return JSON.parse(text) as T; // what an API server answers
    },
  };
}
