/** What is particular to a kind, and the end of a namespace. */

import { APPLY, EP, TABLE, MERGE_PATCH, STRATEGIC, endpoints, step } from './step.ts';
import type { Step } from './transcript.ts';

const SVC = '/api/v1/namespaces/{ns}/services';
const ALLOCATED = 'no cluster IP is allocated here';

const KINDS: Step[] = [
  step(
    'service',
    'POST',
    SVC,
    { metadata: { name: 'web' }, spec: { selector: { app: 'web' }, ports: [{ port: 80 }] } },
    { differs: ALLOCATED },
  ),
  step('service-headless', 'POST', SVC, {
    metadata: { name: 'headless' },
    spec: {
      clusterIP: 'None',
      ports: [
        { name: 'a', port: 80, targetPort: 'http' },
        { name: 'b', port: 81, protocol: 'UDP' },
      ],
    },
  }),
  step('service-invalid', 'POST', SVC, {
    metadata: { name: 'x' },
    spec: { ports: [{ port: 0 }, { port: 80 }], type: 'Nope', sessionAffinity: 'Maybe' },
  }),
  step('service-no-ports', 'POST', SVC, { metadata: { name: 'x' }, spec: {} }),
  step('service-bad-name', 'POST', SVC, { metadata: { name: '1x' }, spec: { clusterIP: 'None' } }),
  step(
    'service-strategic',
    'PATCH',
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
  step(
    'service-strategic-order',
    'PATCH',
    `${SVC}/headless`,
    {
      spec: {
        '$setElementOrder/ports': [{ port: 90 }, { port: 80 }],
        ports: [{ port: 81, $patch: 'delete' }],
      },
    },
    { headers: STRATEGIC },
  ),
  step(
    'service-apply',
    'PATCH',
    `${SVC}/headless?fieldManager=m`,
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'headless' },
      spec: { ports: [{ port: 99, protocol: 'TCP', name: 'd' }] },
    },
    { headers: APPLY },
  ),
  step(
    'service-status',
    'PUT',
    `${SVC}/headless/status`,
    {
      metadata: { name: 'headless' },
      spec: { clusterIP: 'None', ports: [{ port: 1 }] },
      status: { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } },
    },
    { differs: 'a kube-apiserver keeps the ingress of LoadBalancer Services only', ourStatus: 200 },
  ),
  step('service-endpoints', 'POST', EP, endpoints('headless')),
  step('secret-kept', 'POST', '/api/v1/namespaces/{ns}/secrets', {
    metadata: { name: 'kept' },
    data: { b: 'Yg==', c: 'Yg==' },
    type: 'a/b',
  }),
  step(
    'pod-kept',
    'POST',
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
  step(
    'pod-status',
    'PATCH',
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
  step('service-web-delete', 'DELETE', `${SVC}/web`, undefined, { differs: ALLOCATED }),
  step('service-kept', 'POST', SVC, {
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
  step('service-external', 'POST', SVC, {
    metadata: { name: 'ext' },
    spec: { type: 'ExternalName', externalName: 'example.com' },
  }),
  step('service-delete', 'DELETE', `${SVC}/headless`, undefined, { differs: 'as for the status before' }),
  step('service-endpoints-gone', 'GET', `${EP}/headless`),
  step(
    'pod',
    'POST',
    '/api/v1/namespaces/{ns}/pods',
    {
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'c', image: 'i:1', ports: [{ containerPort: 80 }] }] },
    },
    { differs: 'admission adds tolerations and a priority' },
  ),
  step('pod-invalid', 'POST', '/api/v1/namespaces/{ns}/pods', { metadata: { name: 'x' }, spec: {} }),
  step('pod-delete', 'DELETE', '/api/v1/namespaces/{ns}/pods/p', undefined, {
    differs: 'as for the creation',
  }),
  step('secret', 'POST', '/api/v1/namespaces/{ns}/secrets', {
    metadata: { name: 's' },
    data: { b: 'Yg==' },
    stringData: { a: 'ä' },
  }),
  step('secret-bad-base64', 'POST', '/api/v1/namespaces/{ns}/secrets', {
    metadata: { name: 'x' },
    data: { b: '%%%' },
  }),
  step('secret-bad-key', 'POST', '/api/v1/namespaces/{ns}/secrets', {
    metadata: { name: 'x' },
    data: { 'a b': 'Yg==' },
  }),
  step(
    'secret-type',
    'PATCH',
    '/api/v1/namespaces/{ns}/secrets/s',
    { type: 'other' },
    { headers: MERGE_PATCH },
  ),
  step(
    'secret-string-patch',
    'PATCH',
    '/api/v1/namespaces/{ns}/secrets/s',
    { stringData: { a: 'new' } },
    { headers: MERGE_PATCH },
  ),
  step('secret-delete', 'DELETE', '/api/v1/namespaces/{ns}/secrets/s'),
  step('configmap', 'POST', '/api/v1/namespaces/{ns}/configmaps', {
    metadata: { name: 'c' },
    data: { a: 'b' },
    binaryData: { c: 'Yg==' },
    immutable: true,
  }),
  step(
    'configmap-immutable',
    'PATCH',
    '/api/v1/namespaces/{ns}/configmaps/c',
    { data: { a: 'c' } },
    { headers: MERGE_PATCH },
  ),
  step('slice', 'POST', '/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices', {
    metadata: { name: 'e', labels: { 'kubernetes.io/service-name': 'x' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
    ports: [{ port: 80 }],
  }),
  step('slice-bare', 'POST', '/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices', {
    metadata: { name: 'bare' },
    addressType: 'IPv6',
  }),
  step(
    'slice-type',
    'PATCH',
    '/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices/bare',
    { addressType: 'IPv4' },
    { headers: MERGE_PATCH },
  ),
  step(
    'slice-change',
    'PATCH',
    '/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices/bare',
    { ports: [{ port: 1 }] },
    { headers: MERGE_PATCH },
  ),
  step('lease', 'POST', '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases', {
    metadata: { name: 'l2' },
    spec: { holderIdentity: '', leaseTransitions: 0, acquireTime: '2026-01-01T00:00:00Z' },
  }),
  step('lease-micro', 'POST', '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases', {
    metadata: { name: 'l4' },
    spec: { holderIdentity: '', leaseTransitions: 0, acquireTime: '2026-01-01T02:00:00.000000+02:00' },
  }),
  step('lease-invalid', 'POST', '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases', {
    metadata: { name: 'l3' },
    spec: { leaseDurationSeconds: 0, leaseTransitions: -1 },
  }),
  step('event', 'POST', '/api/v1/namespaces/{ns}/events', {
    metadata: { name: 'e1' },
    involvedObject: { kind: 'Endpoints', name: 'a', namespace: '{ns}' },
    reason: 'R',
    message: 'M',
    type: 'Normal',
    firstTimestamp: '2026-01-01T00:00:00Z',
    count: 3,
    source: { component: 'c' },
  }),
  step('event-other-namespace', 'POST', '/api/v1/namespaces/{ns}/events', {
    metadata: { name: 'e2' },
    involvedObject: { namespace: 'other' },
  }),
  step('event-as-group', 'GET', '/apis/events.k8s.io/v1/namespaces/{ns}/events/e1'),
  step('group-event', 'POST', '/apis/events.k8s.io/v1/namespaces/{ns}/events', {
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
  step('group-event-as-core', 'GET', '/api/v1/namespaces/{ns}/events/e3'),
  step('group-event-invalid', 'POST', '/apis/events.k8s.io/v1/namespaces/{ns}/events', {
    metadata: { name: 'e4' },
    regarding: { namespace: '{ns}' },
  }),
  step(
    'group-event-series',
    'PATCH',
    '/apis/events.k8s.io/v1/namespaces/{ns}/events/e3',
    { series: { count: 2, lastObservedTime: '2026-01-01T00:00:01.000000Z' } },
    { headers: MERGE_PATCH },
  ),
  step(
    'group-event-changed',
    'PATCH',
    '/apis/events.k8s.io/v1/namespaces/{ns}/events/e3',
    { note: 'other' },
    { headers: MERGE_PATCH },
  ),
  step(
    'events-of',
    'GET',
    '/api/v1/namespaces/{ns}/events?fieldSelector=involvedObject.name%3Da,involvedObject.kind%3DEndpoints,reason%3DR,type%3DWarning',
  ),
  ...['services', 'secrets', 'configmaps', 'events?fieldSelector=reason%3DR', 'pods'].map((plural) =>
    step(`${plural.split('?')[0]}-table`, 'GET', `/api/v1/namespaces/{ns}/${plural}`, undefined, {
      headers: TABLE,
    }),
  ),
  ...[
    'discovery.k8s.io/v1/namespaces/{ns}/endpointslices',
    'coordination.k8s.io/v1/namespaces/{ns}/leases',
    'events.k8s.io/v1/namespaces/{ns}/events?fieldSelector=reason%3DR',
  ].map((path) => step(`${path.split('/')[0]}-table`, 'GET', `/apis/${path}`, undefined, { headers: TABLE })),
  step('namespace-table', 'GET', '/api/v1/namespaces/{ns}', undefined, { headers: TABLE }),
  step(
    'review',
    'POST',
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    { spec: { resourceAttributes: { verb: 'get', resource: 'endpoints', namespace: '{ns}' } } },
    { differs: 'no managers are written on what is not stored' },
  ),
  step(
    'review-empty',
    'POST',
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    { spec: {} },
    { differs: 'the wording of a kube-apiserver prints a Go struct' },
  ),
  step('review-get', 'GET', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'),
  step('namespace-default', 'DELETE', '/api/v1/namespaces/default'),
  step('namespace-invalid', 'POST', '/api/v1/namespaces', { metadata: { name: 'A.b' } }),
  step(
    'namespace-label',
    'PATCH',
    '/api/v1/namespaces/{ns}',
    { metadata: { labels: { 'kubernetes.io/metadata.name': 'x', y: 'z' } } },
    { headers: MERGE_PATCH },
  ),
  step('namespace-hold', 'POST', '/api/v1/namespaces/{ns}/configmaps', {
    metadata: { name: 'held', finalizers: ['a.b/c'] },
  }),
  step('namespace-delete', 'DELETE', '/api/v1/namespaces/{ns}'),
  step('namespace-terminating', 'POST', EP, endpoints('late')),
];

export const KIND_STEPS: readonly Step[] = [...KINDS];
