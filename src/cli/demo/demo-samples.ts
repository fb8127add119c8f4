/** The demo's configuration with all four patch modes, and sample objects that use them. */

import type { KubeObject } from '../../kube/object.ts';
import { SCHEMA_MODELINE } from '../print-schema.ts';

export const DEMO_NAME = 'demo';
export const DEMO_HOST_NAMESPACE = 'team-demo';
const NAMESPACE = 'shop';

/** The configuration of the demo, as a user would write it. */
export function demoConfig(files: { readonly virtual: string; readonly host: string }): string {
  return `${SCHEMA_MODELINE}# The configuration of the running demo. A change below sync is applied immediately.
sync:
  toHost:
    endpoints:
      enabled: true
      patches:
        # expression and reverseExpression: the host sees "team-payments", the virtual cluster "payments".
        - path: metadata.annotations["shop.example.com/owner"]
          expression: '"team-" + value'
          reverseExpression: 'value.startsWith("team-") ? value.slice(5) : value'
        # A wildcard: every address. An expression can read the context.
        - path: subsets[*].addresses[*].hostname
          expression: 'value + "-" + context.vcluster.name'
        # reference: the name of a ConfigMap is translated to its host name, and the ConfigMap is imported.
        - path: metadata.annotations["shop.example.com/settings"]
          reference: {apiVersion: v1, kind: ConfigMap}
        # labels: the value is a label selector; its keys are translated like label keys.
        - path: metadata.annotations["shop.example.com/selector"]
          labels: {}

endpointSyncer:
  name: ${DEMO_NAME}
  services: sync
  virtual: {kubeconfig: ${JSON.stringify(files.virtual)}}
  host: {kubeconfig: ${JSON.stringify(files.host)}, namespace: ${DEMO_HOST_NAMESPACE}}
  http: {bindAddress: "127.0.0.1:0"}
`;
}

export interface DemoSample {
  readonly service?: KubeObject;
  readonly endpoints: KubeObject;
  /** Why it is not synced; undefined if it is. */
  readonly notSynced?: string;
}

export const DEMO_SAMPLES: readonly DemoSample[] = [
  {
    service: service('db', {}),
    endpoints: endpoints('db', ['10.20.0.11', '10.20.0.12'], {
      'shop.example.com/owner': 'payments',
      'shop.example.com/settings': 'db-settings',
      'shop.example.com/selector': 'app=db,release=stable',
    }),
  },
  {
    service: service('legacy-mainframe', {}),
    endpoints: endpoints('legacy-mainframe', ['192.0.2.7'], { 'shop.example.com/owner': 'billing' }),
  },
  {
    service: service('web', { selector: { app: 'web' } }),
    endpoints: endpoints('web', ['10.20.1.5'], {}),
    notSynced: 'its Service has a selector, so the host builds them itself',
  },
];

/** Named by the reference in the first sample, so it is imported into the host. */
export const DEMO_SETTINGS: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'db-settings', namespace: NAMESPACE },
  data: { 'pool-size': '20' },
};

export const DEMO_NAMESPACE: KubeObject = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: NAMESPACE },
};

function service(name: string, spec: { selector?: Record<string, string> }): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: NAMESPACE },
    spec: { ports: [{ name: 'main', port: 80, targetPort: 8080, protocol: 'TCP' }], ...spec },
  };
}

function endpoints(name: string, ips: readonly string[], annotations: Record<string, string>): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name, namespace: NAMESPACE, annotations, labels: { app: name } },
    subsets: [
      {
        addresses: ips.map((ip, i) => ({
          ip,
          hostname: `${name}-${i}`,
          targetRef: { kind: 'Pod', name: `${name}-${i}`, namespace: NAMESPACE },
        })),
        ports: [{ name: 'main', port: 8080, protocol: 'TCP' }],
      },
    ],
  };
}
