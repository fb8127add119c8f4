/** Endpoints. */

import { isIP } from 'node:net';
import {
  jsonEquals,
  type JsonObject,
  listField,
  numberField,
  objectField,
  objectList,
  text,
} from '../../base/json.ts';
import { ENDPOINTS_RULES, formWarning, sliceRules } from '../../kube/endpoint-rules.ts';
import { ENDPOINTS, metadataOf } from '../../kube/object.ts';
import { invalidValue, type FieldError } from '../../apiserver/status.ts';
import { defineResource, type ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import { AGE_COLUMN, NAME_COLUMN, textColumn } from '../../apiserver/objects/object-view.ts';
import { subdomainProblem } from '../../kube/names.ts';
import { fieldErrors, fieldWarning } from './field-errors.ts';

export function endpoints(types: TypeTable): ResourceDefinition {
  return defineResource({
    ...ENDPOINTS,
    singular: 'endpoints',
    shortNames: ['ep'],
    schema: types.get('Endpoints'),
    checkName: subdomainProblem,
    strategy: {
      allowsCreateOnUpdate: true,
      deprecation: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
    },
    columns: [
      NAME_COLUMN,
      textColumn('Endpoints', 'Ready addresses with their ports.', addressText),
      AGE_COLUMN,
    ],
    applyDefaults: (object) => {
      for (const subset of objectList(object, 'subsets')) {
        for (const port of objectList(subset, 'ports')) port['protocol'] ||= 'TCP';
      }
    },
    validate: (object) => fieldErrors(object, ENDPOINTS_RULES),
    warnings: endpointsWarnings,
  });
}

function endpointsWarnings(object: JsonObject): string[] {
  if (isOfController(object, 'endpoints.kubernetes.io/managed-by', ['endpoint-controller'])) return [];
  return objectList(object, 'subsets').flatMap((subset, index) =>
    ['addresses', 'notReadyAddresses'].flatMap((list) =>
      objectList(subset, list).flatMap((address, at) =>
        fieldWarning(`subsets[${index}].${list}[${at}].ip`, formWarning(text(address, 'ip'))),
      ),
    ),
  );
}

/** The controllers write canonical addresses. */
function isOfController(object: JsonObject, label: string, controllers: readonly string[]): boolean {
  return controllers.includes(text(objectField(metadataOf(object), 'labels'), label));
}

const SHOWN_MAX = 3;

function addressText(object: JsonObject): string {
  const addresses = objectList(object, 'subsets').flatMap((subset) => {
    const ports = objectList(subset, 'ports').map((port) => `:${numberField(port, 'port')}`);
    const ips = objectList(subset, 'addresses').map((address) => text(address, 'ip'));
    if (ports.length === 0) return ips;
    return ports.flatMap((port) => ips.map((ip) => (isIP(ip) === 6 ? `[${ip}]${port}` : ip + port)));
  });
  return shownText(addresses, '<none>');
}

// EndpointSlices of discovery.k8s.io.

export function endpointSlices(types: TypeTable): ResourceDefinition {
  return defineResource({
    group: 'discovery.k8s.io',
    version: 'v1',
    kind: 'EndpointSlice',
    plural: 'endpointslices',
    singular: 'endpointslice',
    isNamespaced: true,
    schema: types.get('discovery.EndpointSlice'),
    checkName: subdomainProblem,
    hasGeneration: true,
    strategy: { countsLabels: true },
    columns: [
      NAME_COLUMN,
      textColumn('AddressType', 'IPv4, IPv6 or FQDN.', (object) => text(object, 'addressType')),
      textColumn('Ports', 'Ports of the endpoints.', (object) =>
        shownText(
          objectList(object, 'ports').map((port) =>
            typeof port['port'] === 'number' ? `${port['port']}` : text(port, 'name'),
          ),
          '<unset>',
        ),
      ),
      textColumn('Endpoints', 'Addresses.', (object) =>
        shownText(
          objectList(object, 'endpoints').flatMap((endpoint) => listField(endpoint, 'addresses').map(String)),
          '<unset>',
        ),
      ),
      AGE_COLUMN,
    ],
    applyDefaults: (object) => {
      for (const port of objectList(object, 'ports')) {
        port['name'] ??= '';
        port['protocol'] ??= 'TCP';
      }
    },
    prepare: (object, previous) => {
      for (const list of ['endpoints', 'ports'])
        if (listField(object, list).length === 0) object[list] = null;
      // Only requests in v1beta1 could write it: a list of that time keeps it until it changes.
      if (previous && jsonEquals(previous['endpoints'], object['endpoints'])) return;
      for (const endpoint of objectList(object, 'endpoints')) delete endpoint['deprecatedTopology'];
    },
    validate,
    warnings: (object, isCreated) =>
      isCreated && object['addressType'] === 'FQDN'
        ? ['spec.addressType: FQDN endpoints are deprecated']
        : [],
  });
}

function shownText(values: readonly string[], none: string): string {
  if (values.length === 0) return none;
  const list = values.slice(0, SHOWN_MAX).join(',');
  return values.length > SHOWN_MAX ? `${list} + ${values.length - SHOWN_MAX} more...` : list;
}

function validate(next: JsonObject, previous: JsonObject | undefined): FieldError[] {
  const isKept = previous !== undefined && jsonEquals(previous['endpoints'], next['endpoints']);
  // Those of a list that is the same were accepted by an earlier version; a changed list is validated as a whole.
  const errors = fieldErrors(next, sliceRules(next, undefined)).filter(
    ({ field }) => !isKept || !field.startsWith('endpoints'),
  );
  if (previous && text(next, 'addressType') !== text(previous, 'addressType'))
    errors.push(invalidValue('addressType', null, 'field is immutable'));
  return [...errors.filter((error) => !isDeclared(error)), ...errors.filter(isDeclared)];
}

/** By the declarative rules of 1.37 (`zz_generated.validations.go`), which follow the others. */
function isDeclared({ field, reason }: FieldError): boolean {
  return field.endsWith('].addresses') && reason !== 'FieldValueInvalid';
}
