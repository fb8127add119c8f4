/** What the page shows first: one example for each patch mode, for each recipe of docs/patches.md, and for EndpointSlices, and names and definitions for completion. */

import type { JsonObject, JsonValue } from '../../base/json.ts';
import { configJsonSchema } from '../../config/schema/schema.ts';
import type { Config } from '../../config/config.ts';
import type { PatchConfig } from '../../config/types.ts';
import { printObject } from '../output/objects.ts';

interface PageExample extends JsonObject {
  title: string;
  patches: string;
  virtual: string;
  host: string;
  isReverse: boolean;
}

const WEB = `apiVersion: v1
kind: Endpoints
metadata:
  name: web
  namespace: shop
  labels:
    app: web
  annotations:
    example.com/owner: checkout
    example.com/secret: web-tls
    example.com/selector: app=web,release=stable
    example.com/upstream: db.shop.svc.cluster.local
    example.com/zones: "a,b"
subsets:
  - addresses:
      - ip: 10.20.0.11
        hostname: web-0
        targetRef: {kind: Pod, name: web-0, namespace: shop}
      - ip: 10.20.0.12
        hostname: web-1
    ports:
      - {name: http, port: 8080, protocol: TCP}
`;

/** The copy of \`web\` on the host, where another client has changed the owner. */
const WEB_COPY = `apiVersion: v1
kind: Endpoints
metadata:
  name: web-x-shop-x-my-vcluster
  namespace: team-a
  annotations:
    example.com/owner: team-payments
    vcluster.loft.sh/object-name: web
    vcluster.loft.sh/object-namespace: shop
    vcluster.loft.sh/object-kind: /v1, Kind=Endpoints
    vcluster.loft.sh/object-host-name: web-x-shop-x-my-vcluster
    vcluster.loft.sh/object-host-namespace: team-a
  labels:
    vcluster.loft.sh/managed-by: my-vcluster
    vcluster.loft.sh/namespace: shop
subsets:
  - addresses:
      - ip: 10.20.0.11
    ports:
      - {name: http, port: 8080, protocol: TCP}
`;

const WEB_SLICE = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-1
  namespace: shop
  labels:
    kubernetes.io/service-name: web
addressType: IPv4
endpoints:
  - addresses: [10.20.0.11]
    hostname: web-0
    targetRef: {kind: Pod, name: web-0, namespace: shop}
  - addresses: [10.20.0.12]
    hostname: web-1
ports:
  - {name: http, port: 8080, protocol: TCP}
`;

const WEB_SERVICE = `apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
  annotations:
    example.com/owner: checkout
spec:
  type: ClusterIP
  ports:
    - {name: http, port: 8080, protocol: TCP}
`;

export const PAGE_EXAMPLES: readonly PageExample[] = [
  example(
    'Expression, with its reverse',
    `- path: metadata.annotations["example.com/owner"]
  expression: '"team-" + value'
  reverseExpression: 'value.replace(/^team-/, "")'
`,
  ),
  {
    ...example(
      'Expression, host to virtual',
      `- path: metadata.annotations["example.com/owner"]
  expression: '"team-" + value'
  reverseExpression: 'value.replace(/^team-/, "")'
`,
    ),
    host: WEB_COPY,
    isReverse: true,
  },
  example(
    'Wildcard and context',
    `- path: subsets[*].addresses[*].hostname
  expression: value + "-" + context.vcluster.name
`,
  ),
  example(
    'Filter',
    `- path: subsets[*].addresses[?(@.ip.endsWith(".11"))].hostname
  expression: value + "-first"
`,
  ),
  example(
    'Reference to a Secret',
    `- path: metadata.annotations["example.com/secret"]
  reference: {apiVersion: v1, kind: Secret}
`,
    `${WEB}---
apiVersion: v1
kind: Secret
metadata: {name: web-tls, namespace: shop}
type: Opaque
data: {token: c2VjcmV0}
`,
  ),
  example(
    'References in a JSON text',
    `- path: metadata.annotations["example.com/mounts"]
  reference: {apiVersion: v1, kind: Secret, namePath: '[*].secret'}
- path: metadata.annotations["example.com/mounts"]
  reference: {apiVersion: v1, kind: ConfigMap, namePath: '[*].config'}
`,
    `apiVersion: v1
kind: Endpoints
metadata:
  name: web
  namespace: shop
  annotations:
    example.com/mounts: '[ {"path": "/tls", "secret": "web-tls"}, {"path": "/etc/web", "config": "web"} ]'
---
apiVersion: v1
kind: Secret
metadata: {name: web-tls, namespace: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
`,
  ),
  example(
    'Label selector',
    `- path: metadata.annotations["example.com/selector"]
  labels: {}
`,
  ),
  example(
    'EndpointSlice',
    `- path: endpoints[*].hostname
  expression: value + "-" + context.vcluster.name
`,
    WEB_SLICE,
  ),
  example(
    'Configuration for several kinds',
    `sync:
  toHost:
    endpoints:
      patches:
        - path: subsets[*].addresses[*].hostname
          expression: value + "-" + context.vcluster.name
    endpointSlices:
      enabled: true
      patches:
        - path: endpoints[*].hostname
          expression: value + "-" + context.vcluster.name
endpointSyncer:
  services: sync
`,
    `${WEB}---
${WEB_SLICE}---
${WEB_SERVICE}`,
  ),
  example(
    'Add an annotation',
    `- path: metadata.annotations
  expression: 'value["example.com/synced"] = "true"; value'
`,
  ),
  example(
    'Remove an annotation',
    `- path: metadata.annotations["example.com/owner"]
  expression: "null"
`,
  ),
  example(
    'Rename a key',
    `- path: metadata.annotations
  expression: |-
    value["example.com/team"] = value["example.com/owner"];
    delete value["example.com/owner"];
    value
`,
  ),
  example(
    'Default for a missing value',
    `- path: metadata.annotations
  expression: 'value["example.com/tier"] ??= "standard"; value'
`,
  ),
  example(
    'DNS name of a Service',
    `- path: metadata.annotations["example.com/upstream"]
  expression: virtualToHostDNS(value)
`,
  ),
  example(
    'Split and join',
    `- path: metadata.annotations["example.com/zones"]
  expression: value.split(",").map((zone) => "eu-" + zone).join(",")
`,
  ),
  example(
    'Base64',
    `- path: metadata.annotations["example.com/owner"]
  expression: base64.encode(value)
  reverseExpression: base64.decode(value)
`,
  ),
  example(
    'Mask a value',
    `- path: metadata.annotations["example.com/secret"]
  expression: value.slice(0, 2) + "*".repeat(value.length - 2)
`,
  ),
  example(
    "Value from the virtual cluster's configuration",
    `- path: metadata.annotations["example.com/owner"]
  expression: value + "@" + context.vcluster.config.controlPlane.distro.k8s.image.repository
`,
  ),
  example(
    'Different value for each namespace',
    `- path: metadata.annotations["example.com/owner"]
  expression: '({shop: "retail", billing: "finance"})[context.virtualObject.metadata.namespace] ?? value'
`,
  ),
];

function example(title: string, patches: string, virtual = WEB): PageExample {
  return { title, patches, virtual, host: '', isReverse: false };
}

// The data that the page requests when it opens: names, examples, and the definitions of the JSON Schema for completion.

/** The patches of the configuration, if it has some, come before the examples. `sample`: the objects of the demo, as YAML. */
export function startState(config: Config, sample?: string): JsonValue {
  const schema = JSON.parse(configJsonSchema()) as JsonObject; // what it prints
  const [first] = PAGE_EXAMPLES;
  const patches = configuredPatches(config);
  const own =
    patches === undefined || first === undefined
      ? []
      : [
          {
            ...first,
            title: 'Your configuration',
            patches: printObject(patches, 'yaml'),
            virtual: sample ?? patchedSamples(config),
          },
        ];
  const names = { name: config.name, hostNamespace: config.host.namespace };
  const definitions = schema['definitions'] ?? {};
  return { ...names, isDemo: sample !== undefined, examples: [...own, ...PAGE_EXAMPLES], definitions };
}

/** An object of each kind that the configuration patches, and the Endpoints without which a Service is not copied. */
function patchedSamples({ sync: { endpoints, endpointSlices, services } }: Config): string {
  const samples = [
    { patches: [...endpoints.patches, ...services.patches], sample: WEB },
    { patches: endpointSlices.patches, sample: WEB_SLICE },
    { patches: services.patches, sample: WEB_SERVICE },
  ];
  return samples.flatMap(({ patches, sample }) => (patches.length === 0 ? [] : [sample])).join('---\n');
}

/** A list of patches where only Endpoints have some, else the part of the configuration that the editor can hold; undefined: there are none. */
function configuredPatches({ sync, services }: Config): JsonObject | undefined {
  const { endpoints, endpointSlices, services: servicesSync } = sync;
  if (endpointSlices.patches.length + servicesSync.patches.length === 0)
    return endpoints.patches.length === 0 ? undefined : { patches: plain(endpoints.patches) };
  const toHost = {
    endpoints: { enabled: endpoints.enabled, patches: plain(endpoints.patches) },
    endpointSlices: { enabled: endpointSlices.enabled, patches: plain(endpointSlices.patches) },
    ...(servicesSync.patches.length === 0
      ? {}
      : { services: { enabled: servicesSync.enabled, patches: plain(servicesSync.patches) } }),
  };
  return {
    sync: { toHost },
    endpointSyncer: { services: { mode: services.mode, allow: [...services.allow] } },
  };
}

function plain(patches: readonly PatchConfig[]): JsonValue {
  return patches as unknown as JsonValue; // as the file has them
}
