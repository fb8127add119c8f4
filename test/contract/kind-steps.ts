/** Behaviour of single kinds, and the deletion of a namespace. */

import { APPLY, EP, TABLE, MERGE_PATCH, STRATEGIC, endpoints, send } from './step.ts';
import type { Step } from './transcript.ts';

const SVC = '/api/v1/namespaces/{ns}/services';
const ALLOCATED = 'no cluster IP is allocated here';

const KINDS: Step[] = [
  send.POST(
    'service',
    SVC,
    { metadata: { name: 'web' }, spec: { selector: { app: 'web' }, ports: [{ port: 80 }] } },
    { differs: ALLOCATED },
  ),
  send.POST('service-headless', SVC, {
    metadata: { name: 'headless' },
    spec: {
      clusterIP: 'None',
      ports: [
        { name: 'a', port: 80, targetPort: 'http' },
        { name: 'b', port: 81, protocol: 'UDP' },
      ],
    },
  }),
  send.POST('service-invalid', SVC, {
    metadata: { name: 'x' },
    spec: { ports: [{ port: 0 }, { port: 80 }], type: 'Nope', sessionAffinity: 'Maybe' },
  }),
  send.POST('service-no-ports', SVC, { metadata: { name: 'x' }, spec: {} }),
  send.POST('service-bad-name', SVC, { metadata: { name: '1x' }, spec: { clusterIP: 'None' } }),
  send.PATCH(
    'service-strategic',
    `${SVC}/headless`,
    {
      spec: {
        ports: [
          { port: 80, targetPort: 8080 },
          { port: 90, name: 'c' },
        ],
      },
    },
    { headers: STRATEGIC },
  ),
  send.PATCH(
    'service-strategic-order',
    `${SVC}/headless`,
    {
      spec: {
        '$setElementOrder/ports': [{ port: 90 }, { port: 80 }],
        ports: [{ port: 81, $patch: 'delete' }],
      },
    },
    { headers: STRATEGIC },
  ),
  send.PATCH(
    'service-apply',
    `${SVC}/headless?fieldManager=m`,
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'headless' },
      spec: { ports: [{ port: 99, protocol: 'TCP', name: 'd' }] },
    },
    { headers: APPLY },
  ),
  send.PUT(
    'service-status',
    `${SVC}/headless/status`,
    {
      metadata: { name: 'headless' },
      spec: { clusterIP: 'None', ports: [{ port: 1 }] },
      status: { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } },
    },
    { differs: 'a kube-apiserver keeps the ingress of LoadBalancer Services only', ourStatus: 200 },
  ),
  send.POST('service-endpoints', EP, endpoints('headless')),
  send.POST('secret-kept', '/api/v1/namespaces/{ns}/secrets', {
    metadata: { name: 'kept' },
    data: { b: 'Yg==', c: 'Yg==' },
    type: 'a/b',
  }),
  send.POST(
    'pod-kept',
    '/api/v1/namespaces/{ns}/pods',
    {
      metadata: { name: 'kept' },
      spec: {
        nodeName: 'n1',
        containers: [
          { name: 'c', image: 'i' },
          { name: 'd', image: 'i@sha256:00' },
        ],
      },
    },
    { differs: 'admission adds tolerations and a priority' },
  ),
  send.PATCH(
    'pod-status',
    '/api/v1/namespaces/{ns}/pods/kept/status',
    {
      status: {
        phase: 'Running',
        podIP: '10.2.3.4',
        podIPs: [{ ip: '10.2.3.4' }],
        containerStatuses: [
          { name: 'c', ready: true, restartCount: 2, image: 'i', imageID: '', state: { running: {} } },
          {
            name: 'd',
            ready: false,
            restartCount: 0,
            image: 'i',
            imageID: '',
            state: { waiting: { reason: 'CrashLoopBackOff' } },
          },
        ],
      },
    },
    { headers: STRATEGIC, differs: 'as for the creation' },
  ),
  send.DELETE('service-web-delete', `${SVC}/web`, undefined, { differs: ALLOCATED }),
  send.POST('service-kept', SVC, {
    metadata: { name: 'kept' },
    spec: {
      clusterIP: 'None',
      selector: { a: 'b', c: 'd' },
      ports: [
        { name: 'x', port: 1 },
        { name: 'y', port: 2, protocol: 'UDP' },
      ],
    },
  }),
  send.POST('service-external', SVC, {
    metadata: { name: 'ext' },
    spec: { type: 'ExternalName', externalName: 'example.com' },
  }),
  send.DELETE('service-delete', `${SVC}/headless`, undefined, { differs: 'as for the status before' }),
  send.GET('service-endpoints-gone', `${EP}/headless`),
  send.POST(
    'pod',
    '/api/v1/namespaces/{ns}/pods',
    {
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'c', image: 'i:1', ports: [{ containerPort: 80 }] }] },
    },
    { differs: 'admission adds tolerations and a priority' },
  ),
  send.POST('pod-invalid', '/api/v1/namespaces/{ns}/pods', { metadata: { name: 'x' }, spec: {} }),
  send.DELETE('pod-delete', '/api/v1/namespaces/{ns}/pods/p', undefined, {
    differs: 'as for the creation',
  }),
  send.POST('secret', '/api/v1/namespaces/{ns}/secrets', {
    metadata: { name: 's' },
    data: { b: 'Yg==' },
    stringData: { a: 'ä' },
  }),
  send.POST(
    'secret-bad-base64',
    '/api/v1/namespaces/{ns}/secrets',
    { metadata: { name: 'x' }, data: { b: '%%%' } },
    { differs: 'the message names the field' },
  ),
  send.POST('secret-bad-key', '/api/v1/namespaces/{ns}/secrets', {
    metadata: { name: 'x' },
    data: { 'a b': 'Yg==' },
  }),
  send.PATCH('secret-type', '/api/v1/namespaces/{ns}/secrets/s', { type: 'other' }, { headers: MERGE_PATCH }),
  send.PATCH(
    'secret-string-patch',
    '/api/v1/namespaces/{ns}/secrets/s',
    { stringData: { a: 'new' } },
    { headers: MERGE_PATCH },
  ),
  send.DELETE('secret-delete', '/api/v1/namespaces/{ns}/secrets/s'),
  send.POST('configmap', '/api/v1/namespaces/{ns}/configmaps', {
    metadata: { name: 'c' },
    data: { a: 'b' },
    binaryData: { c: 'Yg==' },
    immutable: true,
  }),
  send.PATCH(
    'configmap-immutable',
    '/api/v1/namespaces/{ns}/configmaps/c',
    { data: { a: 'c' } },
    { headers: MERGE_PATCH },
  ),
  send.POST('slice', '/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices', {
    metadata: { name: 'e', labels: { 'kubernetes.io/service-name': 'x' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
    ports: [{ port: 80 }],
  }),
  send.POST('slice-bare', '/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices', {
    metadata: { name: 'bare' },
    addressType: 'IPv6',
  }),
  send.PATCH(
    'slice-type',
    '/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices/bare',
    { addressType: 'IPv4' },
    { headers: MERGE_PATCH },
  ),
  send.PATCH(
    'slice-change',
    '/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices/bare',
    { ports: [{ port: 1 }] },
    { headers: MERGE_PATCH },
  ),
  send.POST('lease', '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases', {
    metadata: { name: 'l2' },
    spec: { holderIdentity: '', leaseTransitions: 0, acquireTime: '2026-01-01T00:00:00Z' },
  }),
  send.POST('lease-micro', '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases', {
    metadata: { name: 'l4' },
    spec: { holderIdentity: '', leaseTransitions: 0, acquireTime: '2026-01-01T02:00:00.000000+02:00' },
  }),
  send.POST('lease-invalid', '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases', {
    metadata: { name: 'l3' },
    spec: { leaseDurationSeconds: 0, leaseTransitions: -1 },
  }),
  send.POST('event', '/api/v1/namespaces/{ns}/events', {
    metadata: { name: 'e1' },
    involvedObject: { kind: 'Endpoints', name: 'a', namespace: '{ns}' },
    reason: 'R',
    message: 'M',
    type: 'Normal',
    firstTimestamp: '2026-01-01T00:00:00Z',
    count: 3,
    source: { component: 'c' },
  }),
  send.POST('event-other-namespace', '/api/v1/namespaces/{ns}/events', {
    metadata: { name: 'e2' },
    involvedObject: { namespace: 'other' },
  }),
  send.GET('event-as-group', '/apis/events.k8s.io/v1/namespaces/{ns}/events/e1'),
  send.POST('group-event', '/apis/events.k8s.io/v1/namespaces/{ns}/events', {
    metadata: { name: 'e3' },
    eventTime: '2026-01-01T00:00:00.000001Z',
    reportingController: 'c.d',
    reportingInstance: 'i',
    action: 'A',
    reason: 'R',
    note: 'N',
    type: 'Warning',
    regarding: { kind: 'Endpoints', name: 'a', namespace: '{ns}' },
  }),
  send.GET('group-event-as-core', '/api/v1/namespaces/{ns}/events/e3'),
  send.POST('group-event-invalid', '/apis/events.k8s.io/v1/namespaces/{ns}/events', {
    metadata: { name: 'e4' },
    regarding: { namespace: '{ns}' },
  }),
  send.PATCH(
    'group-event-series',
    '/apis/events.k8s.io/v1/namespaces/{ns}/events/e3',
    { series: { count: 2, lastObservedTime: '2026-01-01T00:00:01.000000Z' } },
    { headers: MERGE_PATCH },
  ),
  send.PATCH(
    'group-event-changed',
    '/apis/events.k8s.io/v1/namespaces/{ns}/events/e3',
    { note: 'other' },
    { headers: MERGE_PATCH },
  ),
  send.GET(
    'events-of',
    '/api/v1/namespaces/{ns}/events?fieldSelector=involvedObject.name%3Da,involvedObject.kind%3DEndpoints,reason%3DR,type%3DWarning',
  ),
  ...['services', 'secrets', 'configmaps', 'events?fieldSelector=reason%3DR', 'pods'].map((plural) =>
    send.GET(`${plural.split('?')[0]}-table`, `/api/v1/namespaces/{ns}/${plural}`, undefined, {
      headers: TABLE,
    }),
  ),
  ...[
    'discovery.k8s.io/v1/namespaces/{ns}/endpointslices',
    'coordination.k8s.io/v1/namespaces/{ns}/leases',
    'events.k8s.io/v1/namespaces/{ns}/events?fieldSelector=reason%3DR',
  ].map((path) => send.GET(`${path.split('/')[0]}-table`, `/apis/${path}`, undefined, { headers: TABLE })),
  send.GET('namespace-table', '/api/v1/namespaces/{ns}', undefined, { headers: TABLE }),
  send.POST(
    'review',
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    { spec: { resourceAttributes: { verb: 'get', resource: 'endpoints', namespace: '{ns}' } } },
    { differs: 'no managers are written on what is not stored' },
  ),
  send.POST(
    'review-empty',
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    { spec: {} },
    { differs: 'the wording of a kube-apiserver prints a Go struct' },
  ),
  send.GET('review-get', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'),
  send.DELETE('namespace-default', '/api/v1/namespaces/default'),
  send.POST('namespace-invalid', '/api/v1/namespaces', { metadata: { name: 'A.b' } }),
  send.PATCH(
    'namespace-label',
    '/api/v1/namespaces/{ns}',
    { metadata: { labels: { 'kubernetes.io/metadata.name': 'x', y: 'z' } } },
    { headers: MERGE_PATCH },
  ),
  send.POST('namespace-hold', '/api/v1/namespaces/{ns}/configmaps', {
    metadata: { name: 'held', finalizers: ['a.b/c'] },
  }),
  send.DELETE('namespace-delete', '/api/v1/namespaces/{ns}'),
  send.POST('namespace-terminating', EP, endpoints('late')),
];

export const KIND_STEPS: readonly Step[] = [...KINDS];
