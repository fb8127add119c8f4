/** Cases for the status sentences about EndpointSlices and Services. */

import type { KubeObject } from '../../../src/kube/object.ts';
import { stored } from '../../cli/live/memory-clusters.ts';
import {
  ALL_KINDS,
  configWith,
  event,
  hostWeb,
  object,
  selecting,
  service,
  sliceOf,
  web,
  type Case,
} from './status-fixtures.ts';

const aliasOf = (externalName: string): KubeObject =>
  object('Service', 'shop/alias', { spec: { type: 'ExternalName', externalName } });

const MAPPED = configWith({
  sync:
    '    endpointSlices: {enabled: true}\n' +
    '    namespaces: {enabled: true, mappings: {byName: {shop: shared}}}',
});

export const KIND_CASES: Readonly<Record<string, Case>> = {
  'a slice that is in step': {
    config: ALL_KINDS,
    virtual: [sliceOf('web')],
    after: (clusters) => clusters,
    key: 'shop/web-1',
    expected: ['synced', '', 'EndpointSlice "shop/web-1" is synced to "host/web-1-x-shop-x-vc"'],
  },
  'an alias of a Service with a selector': {
    config: ALL_KINDS,
    virtual: [aliasOf('web.shop.svc'), selecting()],
    after: (clusters) => clusters,
    key: 'shop/alias',
    expected: [
      'pending',
      'NoEffect',
      /^Service "shop\/alias" is synced to "host\/alias-x-shop-x-vc", without effect: spec\.externalName names Service "shop\/web"/,
    ],
  },
  'a copy of which the host makes no slice': {
    virtual: [web()],
    after: (clusters) => clusters,
    facts: { events: [event('NoEffect', 'The host has made no EndpointSlice of the copy.')] },
    expected: [
      'pending',
      'NoEffect',
      'Endpoints "shop/web" is synced to "host/web-x-shop-x-vc", without effect: the host has made no EndpointSlice of the copy',
    ],
  },
  'an alias of a Service that is copied': {
    config: ALL_KINDS,
    virtual: [aliasOf('web.shop.svc'), service()],
    after: (clusters) => clusters,
    key: 'shop/alias',
    expected: ['synced', '', 'Service "shop/alias" is synced to "host/alias-x-shop-x-vc"'],
  },
  'an alias of a Service that is copied by now': {
    config: ALL_KINDS,
    virtual: [aliasOf('web.shop.svc'), service()],
    after: (clusters) => clusters,
    facts: {
      events: [event('NoEffect', 'spec.externalName names Service "shop/web", which is not copied.')],
    },
    key: 'shop/alias',
    expected: ['synced', '', 'Service "shop/alias" is synced to "host/alias-x-shop-x-vc"'],
  },
  'a slice of a Service with a selector': {
    config: ALL_KINDS,
    virtual: [sliceOf('web'), selecting()],
    key: 'shop/web-1',
    expected: [
      'skipped',
      'service has a selector',
      /Service "shop\/web" has a selector, so it is not copied either: no Pods are synced/,
    ],
  },
  'a slice of another manager for a Service with a selector, beside vCluster': {
    config: configWith({ sync: '    endpointSlices: {enabled: true}' }),
    virtual: [sliceOf('web', 'mesh.example.com'), selecting()],
    key: 'shop/web-1',
    expected: [
      'skipped',
      'service has a selector',
      `EndpointSlice "shop/web-1" is not copied: Service "shop/web" has a selector, so its addresses on the host are those of its Pods there; slices of the manager "mesh.example.com" are copied for Services without a selector only`,
    ],
  },
  'a slice of the EndpointSlice controller, beside vCluster': {
    config: configWith({ sync: '    endpointSlices: {enabled: true}' }),
    virtual: [sliceOf('web', 'endpointslice-controller.k8s.io')],
    key: 'shop/web-1',
    expected: [
      'skipped',
      'made by the EndpointSlice controller',
      /created it, and the host's own controller creates the host EndpointSlices$/,
    ],
  },
  'a slice without a Service, where one is required': {
    config: `${ALL_KINDS}\n  requireService: true\n`,
    virtual: [sliceOf('web')],
    key: 'shop/web-1',
    expected: [
      'skipped',
      'no service',
      /is not copied: there is no Service "shop\/web", and endpointSyncer\.requireService/,
    ],
  },
  'a slice without the label of a Service': {
    config: ALL_KINDS,
    virtual: [object('EndpointSlice', 'shop/web-1')],
    key: 'shop/web-1',
    expected: [
      'skipped',
      'no service name',
      /has no label kubernetes\.io\/service-name, so it belongs to no Service$/,
    ],
  },
  'a slice of the EndpointSlice controller': {
    config: ALL_KINDS,
    virtual: [sliceOf('web', 'endpointslice-controller.k8s.io')],
    key: 'shop/web-1',
    expected: [
      'skipped',
      'made by the EndpointSlice controller',
      `EndpointSlice "shop/web-1" is not copied: the virtual cluster's EndpointSlice controller created it for the Pods of Service "shop/web", and no Pods are synced`,
    ],
  },
  'a mirrored slice': {
    config: ALL_KINDS,
    virtual: [sliceOf('web', 'endpointslicemirroring-controller.k8s.io')],
    key: 'shop/web-1',
    expected: [
      'skipped',
      'mirrored from Endpoints',
      /it mirrors the Endpoints of Service "shop\/web", which are synced, and the host mirrors their copy$/,
    ],
  },
  'a slice whose address type changes': {
    config: ALL_KINDS,
    virtual: [sliceOf('web')],
    after: ({ virtual, host }) => ({
      virtual: virtual.map((one) => stored({ ...one, addressType: 'IPv6' }, one)),
      host,
    }),
    key: 'shop/web-1',
    expected: [
      'pending',
      'differs',
      /"host\/web-1-x-shop-x-vc" is about to be deleted and created again: it cannot be updated in place/,
    ],
  },
  'a foreign slice': {
    config: ALL_KINDS,
    virtual: [sliceOf('web')],
    host: [object('EndpointSlice', 'host/web-1-x-shop-x-vc')],
    key: 'shop/web-1',
    expected: [
      'refused',
      'NotManaged',
      /EndpointSlice "host\/web-1-x-shop-x-vc" that this syncer did not create/,
    ],
  },
  'a slice that would join a Service of the host': {
    config: MAPPED,
    virtual: [sliceOf('web')],
    host: [object('Service', 'shared/web')],
    key: 'shop/web-1',
    expected: [
      'refused',
      'NotManaged',
      /the host Service "shared\/web" is not the copy of this object.s Service/,
    ],
  },
  'a copy for which a Service of the host has appeared': {
    config: MAPPED,
    virtual: [sliceOf('web')],
    after: ({ virtual, host }) => ({ virtual, host: [...host, object('Service', 'shared/web')] }),
    key: 'shop/web-1',
    expected: [
      'pending',
      'its host Service is not the copy of its Service',
      /"shared\/web-1" is about to be deleted: its host Service is not the copy of its Service/,
    ],
  },
  'slices are not synced': {
    config: configWith({ sync: '    endpointSlices: {enabled: false}' }),
    virtual: [sliceOf('web')],
    key: 'shop/web-1',
    expected: [
      'skipped',
      'disabled',
      'EndpointSlice "shop/web-1" is not synced: sync.toHost.endpointSlices.enabled is false',
    ],
  },
  'a Service that is in step': {
    config: ALL_KINDS,
    virtual: [web(), service()],
    after: (clusters) => clusters,
    kind: 'Service',
    expected: ['synced', '', `Service "shop/web" is synced to "${hostWeb}"`],
  },
  'a Service that selects Pods': {
    config: ALL_KINDS,
    virtual: [selecting()],
    expected: [
      'skipped',
      'selects Pods',
      /it has a selector, and no Pods are synced that it could select on the host$/,
    ],
  },
  'a Service without Endpoints': {
    config: ALL_KINDS,
    virtual: [service()],
    expected: [
      'skipped',
      'no synced endpoints',
      /not copied yet: it has no Endpoints or EndpointSlices that are synced, and is neither of type LoadBalancer nor ExternalName$/,
    ],
  },
  'a Service whose Endpoints have gone': {
    config: ALL_KINDS,
    virtual: [web(), service()],
    after: ({ virtual, host }) => ({ virtual: virtual.filter(({ kind }) => kind !== 'Endpoints'), host }),
    kind: 'Service',
    expected: ['synced', '', /./],
  },
  'a status that is due': {
    config: ALL_KINDS,
    virtual: [web(), service({ type: 'LoadBalancer' })],
    after: ({ virtual, host }) => ({
      virtual,
      host: host.map((one) =>
        one.kind === 'Service'
          ? stored({ ...one, status: { loadBalancer: { ingress: [{ ip: '1.1.1.1' }] } } }, one)
          : one,
      ),
    }),
    kind: 'Service',
    expected: ['pending', 'differs', /a change on the host is about to be copied to the virtual cluster/],
  },
  'Services are left to vCluster': {
    virtual: [service()],
    expected: [
      'skipped',
      'disabled',
      'Service "shop/web" is not synced: endpointSyncer.services is vcluster',
    ],
  },
};
