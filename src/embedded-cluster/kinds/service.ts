/** Services. No cluster IP is allocated, because this cluster routes no traffic. */

import {
  cloneJson,
  isJsonObject,
  type JsonObject,
  listField,
  objectField,
  objectList,
  text,
} from '../../base/json.ts';
import { SERVICES } from '../../kube/object.ts';
import {
  duplicateValue,
  itemErrors,
  requiredValue,
  unsupportedValue,
  type FieldError,
} from '../../apiserver/status.ts';
import { defineResource, type ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import { AGE_COLUMN, NAME_COLUMN, textColumn } from '../../apiserver/objects/object-view.ts';
import { labelErrors } from '../../apiserver/metadata.ts';
import { labelProblem } from '../../kube/names.ts';
import { portErrors, portNumberErrors } from './endpoints.ts';

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
      if (previous) keepAllocated(spec, objectField(previous, 'spec'));
      allocate(spec);
    },
    validate,
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
  for (const port of objectList(spec, 'ports')) {
    if (text(port, 'protocol') === '') port['protocol'] = 'TCP';
    if (!port['targetPort']) port['targetPort'] = port['port'] ?? 0;
  }
  object['spec'] = spec;
}

const ALLOCATED = ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'];

/** An update that omits allocated fields keeps them. */
function keepAllocated(spec: JsonObject, previous: JsonObject): void {
  if ([spec, previous].some((one) => text(one, 'type') === 'ExternalName')) return;
  for (const field of ALLOCATED) {
    const isUnset = text(spec, field) === '' && listField(spec, field).length === 0;
    const had = previous[field];
    if (isUnset && had !== undefined) spec[field] = cloneJson(had);
  }
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

const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];

function validate(object: JsonObject): FieldError[] {
  const spec = objectField(object, 'spec');
  const type = text(spec, 'type');
  const ports = objectList(spec, 'ports');
  const errors: FieldError[] = [];
  const isHeadless = text(spec, 'clusterIP') === 'None';
  if (ports.length === 0 && !isHeadless && type !== 'ExternalName') errors.push(requiredValue('spec.ports'));
  const names = new Set<string>();
  const duplicates = itemErrors(ports, 'spec.ports', (port, path) => {
    const name = text(port, 'name');
    const isRepeated = name !== '' && names.has(name);
    names.add(name);
    return isRepeated ? [duplicateValue(`${path}.name`, name)] : [];
  });
  errors.push(
    ...itemErrors(ports, 'spec.ports', (port, path) => servicePortErrors(port, path, ports.length > 1)),
    ...duplicates,
  );
  errors.push(...labelErrors(objectField(spec, 'selector'), 'spec.selector'));
  if (!['ClientIP', 'None'].includes(text(spec, 'sessionAffinity'))) {
    errors.push(
      unsupportedValue('spec.sessionAffinity', text(spec, 'sessionAffinity'), ['ClientIP', 'None']),
    );
  }
  if (!TYPES.includes(type)) errors.push(unsupportedValue('spec.type', type, TYPES));
  return errors;
}

function servicePortErrors(port: JsonObject, path: string, isNameNeeded: boolean): FieldError[] {
  const isNumber = typeof port['targetPort'] === 'number';
  return [
    ...portErrors(port, path, isNameNeeded),
    ...(isNumber ? portNumberErrors(port['targetPort'], `${path}.targetPort`) : []),
  ];
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
    const node = port['nodePort'] ? `:${Number(port['nodePort'])}` : '';
    return `${Number(port['port'] ?? 0)}${node}/${text(port, 'protocol')}`;
  });
  return orNone(ports.join(','));
}

export function selectorText(object: JsonObject): string {
  const selector = objectField(object, 'spec')['selector'];
  if (!isJsonObject(selector)) return '<none>';
  return orNone(
    Object.keys(selector)
      .sort()
      .map((key) => `${key}=${text(selector, key)}`)
      .join(','),
  );
}
