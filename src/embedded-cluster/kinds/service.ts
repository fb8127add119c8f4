/** Services. No cluster IP is allocated, because this cluster routes no traffic. */

import {
  cloneJson,
  isJsonObject,
  jsonEquals,
  type JsonObject,
  listField,
  numberField,
  objectField,
  objectList,
  text,
} from '../../base/json.ts';
import { formWarning, rangeFormWarning } from '../../kube/endpoint-rules.ts';
import { metadataOf, SERVICES } from '../../kube/object.ts';
import { SERVICE_RULES, withoutOtherTypes } from '../../kube/service-rules.ts';
import { defineResource, type ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import { AGE_COLUMN, NAME_COLUMN, textColumn } from '../../apiserver/objects/object-view.ts';
import { labelProblem } from '../../kube/names.ts';
import { fieldErrors, fieldWarning, itemWarnings } from './field-errors.ts';

export function services(types: TypeTable): ResourceDefinition {
  const schema = types.get('Service');
  return defineResource({
    ...SERVICES,
    singular: 'service',
    shortNames: ['svc'],
    categories: ['all'],
    schema,
    checkName: labelProblem,
    hasStatus: true,
    strategy: { allowsCreateOnUpdate: true, returnsDeleted: true },
    selectableFields: {
      'spec.clusterIP': (object) => text(objectField(object, 'spec'), 'clusterIP'),
      'spec.type': (object) => text(objectField(object, 'spec'), 'type'),
    },
    columns: [
      NAME_COLUMN,
      textColumn('Type', 'The type of the Service.', (object) => text(objectField(object, 'spec'), 'type')),
      textColumn('Cluster-IP', 'The cluster IP of the Service.', (object) =>
        orNone(text(objectField(object, 'spec'), 'clusterIP')),
      ),
      textColumn('External-IP', 'External addresses of the Service.', externalText),
      textColumn('Port(s)', 'The ports of the Service.', portsText),
      AGE_COLUMN,
      textColumn('Selector', 'Labels of the Pods of the Service.', selectorText, 1),
    ],
    applyDefaults,
    prepare: (next, previous) => {
      const spec = objectField(next, 'spec');
      next['spec'] = previous ? updated(spec, objectField(previous, 'spec')) : spec;
      allocate(objectField(next, 'spec'));
    },
    validate: (object) => fieldErrors(object, SERVICE_RULES),
    warnings: (object) => [...warnings(object)],
  });
}

const AFFINITY_SECONDS = 3 * 60 * 60;

function applyDefaults(object: JsonObject): void {
  const spec = objectField(object, 'spec');
  if (text(spec, 'type') === '') spec['type'] = 'ClusterIP';
  if (text(spec, 'sessionAffinity') === '') spec['sessionAffinity'] = 'None';
  if (spec['sessionAffinity'] === 'ClientIP') {
    spec['sessionAffinityConfig'] ??= { clientIP: { timeoutSeconds: AFFINITY_SECONDS } };
  }
  if (spec['type'] !== 'ExternalName') spec['internalTrafficPolicy'] ??= 'Cluster';
  if (isExternallyAccessible(spec)) spec['externalTrafficPolicy'] ||= 'Cluster';
  for (const port of objectList(spec, 'ports')) {
    if (text(port, 'protocol') === '') port['protocol'] = 'TCP';
    if (!port['targetPort']) port['targetPort'] = port['port'] ?? 0;
  }
  object['spec'] = spec;
}

function isExternallyAccessible(spec: JsonObject): boolean {
  const type = text(spec, 'type');
  if (type === 'LoadBalancer' || type === 'NodePort') return true;
  return type === 'ClusterIP' && listField(spec, 'externalIPs').length > 0;
}

const TOPOLOGY_HINTS = 'service.kubernetes.io/topology-aware-hints';

/** `GetWarningsForService` of kube-apiserver 1.37. */
function* warnings(object: JsonObject): Generator<string> {
  const spec = objectField(object, 'spec');
  const [type, externalIps] = [text(spec, 'type'), listField(spec, 'externalIPs')];
  const isHeadless = type === 'ClusterIP' && text(spec, 'clusterIP') === 'None';
  const isExternalName = type === 'ExternalName';
  const hasExternalIps = externalIps.length > 0;
  if (objectField(metadataOf(object), 'annotations')[TOPOLOGY_HINTS] !== undefined)
    yield `annotation ${TOPOLOGY_HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead`;
  if (!isHeadless) yield* itemWarnings('spec.clusterIPs', listField(spec, 'clusterIPs'), formWarning);
  if (isHeadless) {
    if (text(spec, 'loadBalancerIP') !== '') yield 'spec.loadBalancerIP is ignored for headless services';
    if (hasExternalIps) yield 'spec.externalIPs is ignored for headless services';
    if (spec['sessionAffinity'] !== 'None') yield 'spec.SessionAffinity is ignored for headless services';
  }
  yield* itemWarnings('spec.externalIPs', externalIps, formWarning);
  if (hasExternalIps && !isHeadless && !isExternalName)
    yield 'spec.externalIPs is deprecated and may no longer be implemented in some clusters';
  yield* fieldWarning('spec.loadBalancerIP', formWarning(text(spec, 'loadBalancerIP')));
  yield* itemWarnings(
    'spec.loadBalancerSourceRanges',
    listField(spec, 'loadBalancerSourceRanges'),
    rangeFormWarning,
  );
  if (isExternalName && hasExternalIps) yield 'spec.externalIPs is ignored when spec.type is "ExternalName"';
  if (!isExternalName && text(spec, 'externalName') !== '')
    yield 'spec.externalName is ignored when spec.type is not "ExternalName"';
  if (spec['trafficDistribution'] === 'PreferClose')
    yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"';
}

const ALLOCATED = ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'];

/** An update that omits allocated fields keeps them, and one that changes the type loses those that the type does not have. */
function updated(next: JsonObject, previous: JsonObject): JsonObject {
  const spec = withoutOtherTypes(next, previous);
  const ports = objectList(spec, 'ports');
  const nodePorts = [ports, objectList(previous, 'ports')].map((all) =>
    all.map((port) => port['nodePort'] ?? 0),
  );
  if (
    spec['type'] !== previous['type'] &&
    spec['type'] === 'ClusterIP' &&
    jsonEquals(nodePorts[0], nodePorts[1])
  )
    for (const port of ports) delete port['nodePort'];
  if ([spec, previous].some((one) => text(one, 'type') === 'ExternalName')) return spec;
  for (const field of ALLOCATED) {
    const isUnset = text(spec, field) === '' && listField(spec, field).length === 0;
    const had = previous[field];
    if (isUnset && had !== undefined) spec[field] = cloneJson(had);
  }
  return spec;
}

/** Sets `clusterIPs` and the IP families. */
function allocate(spec: JsonObject): void {
  if (text(spec, 'type') === 'ExternalName') return;
  const clusterIp = text(spec, 'clusterIP');
  if (clusterIp !== '' && listField(spec, 'clusterIPs').length === 0) spec['clusterIPs'] = [clusterIp];
  // The addresses of a headless Service without a selector are managed externally, and may have both families.
  const isOpen = clusterIp === 'None' && Object.keys(objectField(spec, 'selector')).length === 0;
  if (listField(spec, 'ipFamilies').length === 0) spec['ipFamilies'] = isOpen ? ['IPv4', 'IPv6'] : ['IPv4'];
  spec['ipFamilyPolicy'] ??= isOpen ? 'RequireDualStack' : 'SingleStack';
}

function orNone(value: string): string {
  return value === '' ? '<none>' : value;
}

function externalText(object: JsonObject): string {
  const spec = objectField(object, 'spec');
  if (text(spec, 'type') === 'ExternalName') return text(spec, 'externalName');
  const balancer = objectField(objectField(object, 'status'), 'loadBalancer');
  const ingress = objectList(balancer, 'ingress').map(
    (entry) => text(entry, 'ip') || text(entry, 'hostname'),
  );
  return orNone([...ingress, ...listField(spec, 'externalIPs').map(String)].join(','));
}

function portsText(object: JsonObject): string {
  const ports = objectList(objectField(object, 'spec'), 'ports').map((port) => {
    const nodePort = numberField(port, 'nodePort');
    const node = nodePort ? `:${nodePort}` : '';
    return `${numberField(port, 'port')}${node}/${text(port, 'protocol')}`;
  });
  return orNone(ports.join(','));
}

function selectorText(object: JsonObject): string {
  const selector = objectField(object, 'spec')['selector'];
  if (!isJsonObject(selector)) return '<none>';
  return orNone(
    Object.keys(selector)
      .sort()
      .map((key) => `${key}=${text(selector, key)}`)
      .join(','),
  );
}
