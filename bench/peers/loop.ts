/** A minimal syncer: lists and watches the virtual Endpoints or EndpointSlices, translates names, writes to the host. No ownership checks, no
 * back-sync, no Services, no retries, no metrics. Shows the lower limit that API servers and Node impose.
 *
 * Usage: loop.ts VIRTUAL_KUBECONFIG HOST_KUBECONFIG VCLUSTER HOST_NAMESPACE endpoints|endpointslices
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

interface Referrer {
  targetRef?: Record<string, string>;
}

/** An Endpoints or an EndpointSlice. */
interface Synced {
  apiVersion?: string;
  kind?: string;
  metadata: Meta;
  subsets?: { addresses?: Referrer[] }[];
  addressType?: string;
  endpoints?: Referrer[];
  ports?: unknown;
}

interface Kind {
  readonly kind: string;
  readonly apiVersion: string;
  /** Of its group and version. */
  readonly path: string;
  /** Everything but metadata. */
  readonly content: (object: Synced) => Partial<Synced>;
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

const SERVICE = 'kubernetes.io/service-name';

const KINDS: Readonly<Record<string, Kind>> = {
  endpoints: {
    kind: 'Endpoints',
    apiVersion: 'v1',
    path: '/api/v1',
    content: ({ metadata, subsets = [] }) => ({
      subsets: subsets.map((subset) => ({
        ...subset,
        addresses: (subset.addresses ?? []).map((address) => withHostPod(address, metadata)),
      })),
    }),
  },
  endpointslices: {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    path: '/apis/discovery.k8s.io/v1',
    content: ({ metadata, addressType = 'IPv4', endpoints = [], ports }) => ({
      addressType,
      endpoints: endpoints.map((endpoint) => withHostPod(endpoint, metadata)),
      ports,
    }),
  },
};

const [virtualFile = '', hostFile = '', vcluster = '', hostNamespace = '', resource = ''] =
  process.argv.slice(2);
const kind = KINDS[resource];
if (kind === undefined) throw new Error(`unknown resource "${resource}"; use endpoints or endpointslices`);
const { path: groupPath, kind: kindName, apiVersion, content } = kind;
const virtual = connect(virtualFile);
const host = connect(hostFile);
const virtualPath = `${groupPath}/${resource}`;
const hostPath = `${groupPath}/namespaces/${hostNamespace}/${resource}`;

/** Host name → resourceVersion of the copy. */
const copies = new Map<string, string>();
const queue = new Map<string, Synced>();
const busy = new Set<string>();

const existing = await listAll(host, hostPath);
const unchanged = new Map<string, string>();
for (const copy of existing.items) {
  copies.set(copy.metadata.name, copy.metadata.resourceVersion ?? '');
  unchanged.set(copy.metadata.name, stateOf(copy));
}
const listed = await listAll(virtual, virtualPath);
for (const object of listed.items) {
  const copy = translate(object);
  if (unchanged.get(copy.metadata.name) !== stateOf(copy)) enqueue(object);
}
await watch(listed.resourceVersion);

function enqueue(object: Synced): void {
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

async function write(object: Synced): Promise<void> {
  const copy = translate(object);
  const { name } = copy.metadata;
  const over = copies.get(name);
  const stored =
    over === undefined
      ? await host.json<Synced>('POST', hostPath, copy)
      : await host.json<Synced>('PUT', `${hostPath}/${name}`, {
          ...copy,
          metadata: { ...copy.metadata, resourceVersion: over },
        });
  copies.set(name, stored.metadata.resourceVersion ?? '');
}

function translate(object: Synced): Synced {
  const { name, namespace = '', uid = '', labels = {}, annotations = {} } = object.metadata;
  const service = labels[SERVICE];
  return {
    apiVersion,
    kind: kindName,
    metadata: {
      name: hostName(name, namespace),
      namespace: hostNamespace,
      labels: {
        ...labels,
        ...(service === undefined ? {} : { [SERVICE]: hostName(service, namespace) }),
        'vcluster.loft.sh/managed-by': vcluster,
        'vcluster.loft.sh/namespace': namespace,
      },
      annotations: { ...annotations, 'vcluster.loft.sh/object-name': name, [UID]: uid },
    },
    ...content(object),
  };
}

function withHostPod<T extends Referrer>(referrer: T, { namespace = '' }: Meta): T {
  const ref = referrer.targetRef;
  if (ref?.['kind'] !== 'Pod') return referrer;
  const { uid: _uid, resourceVersion: _version, ...kept } = ref;
  const name = hostName(ref['name'] ?? '', ref['namespace'] ?? namespace);
  return { ...referrer, targetRef: { ...kept, name, namespace: hostNamespace } };
}

function hostName(name: string, namespace: string): string {
  return `${name}-x-${namespace}-x-${vcluster}`;
}

/** Equal for a copy and the translation of its original when there is nothing to write. */
function stateOf({ metadata, subsets, addressType, endpoints, ports }: Synced): string {
  return JSON.stringify([metadata.labels, subsets, addressType, endpoints, ports]);
}

async function listAll(
  cluster: Cluster,
  path: string,
): Promise<{ items: Synced[]; resourceVersion: string }> {
  const list = await cluster.json<{ items: Synced[]; metadata: { resourceVersion: string } }>('GET', path);
  return { items: list.items, resourceVersion: list.metadata.resourceVersion };
}

async function watch(resourceVersion: string): Promise<void> {
  const { body } = await virtual.send('GET', `${virtualPath}?watch=true&resourceVersion=${resourceVersion}`);
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') continue;
      const event = JSON.parse(line) as { type: string; object: Synced }; // an API server's own
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
    const { statusCode, body: responseBody } = await request(`${server}${path}`, {
      method: method as 'GET', // undici's type lists the known methods
      dispatcher,
      headers: { authorization, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: statusCode, body: responseBody };
  };
  return {
    send,
    async json<T>(method: string, path: string, body?: unknown): Promise<T> {
      const response = await send(method, path, body);
      const chunks: Uint8Array[] = [];
      for await (const chunk of response.body) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString();
      if (response.status >= 300)
        throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 300)}`);
      return JSON.parse(text) as T; // a response of an API server
    },
  };
}
