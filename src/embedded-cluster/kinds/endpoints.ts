/** Endpoints. */

import { isIP } from 'node:net';
import { type JsonObject, listField, objectList, text } from '../../base/json.ts';
import { ENDPOINTS_RULES, sliceRules } from '../../kube/endpoint-rules.ts';
import { ENDPOINTS } from '../../kube/object.ts';
import { invalidValue, type FieldError } from '../../apiserver/status.ts';
import { defineResource, type ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import { AGE_COLUMN, NAME_COLUMN, textColumn } from '../../apiserver/objects/object-view.ts';
import { subdomainProblem } from '../../kube/names.ts';
import { fieldErrors } from './field-errors.ts';

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
  });
}

const SHOWN_MAX = 3;

function addressText(object: JsonObject): string {
  const addresses = objectList(object, 'subsets').flatMap((subset) => {
    const ports = objectList(subset, 'ports').map((port) => `:${Number(port['port'] ?? 0)}`);
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
          objectList(object, 'ports').map((port) => (port['port'] ? `${Number(port['port'])}` : '<unset>')),
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
    validate,
  });
}

function shownText(values: readonly string[], none: string): string {
  if (values.length === 0) return none;
  const list = values.slice(0, SHOWN_MAX).join(',');
  return values.length > SHOWN_MAX ? `${list} + ${values.length - SHOWN_MAX} more...` : list;
}

function validate(next: JsonObject, previous: JsonObject | undefined): FieldError[] {
  const type = text(next, 'addressType');
  const errors = fieldErrors(next, sliceRules(next, undefined));
  if (previous && type !== text(previous, 'addressType'))
    errors.push(invalidValue('addressType', type, 'field is immutable'));
  return errors;
}
