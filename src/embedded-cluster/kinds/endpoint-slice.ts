/** EndpointSlices of discovery.k8s.io. */

import { isIP } from 'node:net';
import type { JsonObject } from '../../base/json.ts';
import { invalidValue, requiredValue, unsupportedValue, type FieldError } from '../../apiserver/status.ts';
import { defineResource, type ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import { AGE_COLUMN, NAME_COLUMN, textColumn } from '../../apiserver/objects/object-view.ts';
import { listField, objectList, text } from '../../apiserver/metadata.ts';
import { subdomainProblem } from '../../kube/names.ts';
import { reservedAddress } from './endpoints.ts';

const ADDRESS_TYPES = ['FQDN', 'IPv4', 'IPv6'];
const SHOWN_MAX = 3;

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
  const errors: FieldError[] = [];
  if (type === '') errors.push(requiredValue('addressType'));
  else if (!ADDRESS_TYPES.includes(type)) errors.push(unsupportedValue('addressType', type, ADDRESS_TYPES));
  if (previous && type !== text(previous, 'addressType')) {
    errors.push(invalidValue('addressType', type, 'field is immutable'));
  }
  for (const [index, endpoint] of objectList(next, 'endpoints').entries()) {
    const path = `endpoints[${index}].addresses`;
    const addresses = listField(endpoint, 'addresses').map(String);
    if (addresses.length === 0) errors.push(requiredValue(path, 'must contain at least 1 address'));
    for (const [at, address] of addresses.entries()) {
      const wrong = addressProblem(type, address);
      if (wrong) errors.push(invalidValue(`${path}[${at}]`, address, wrong));
    }
  }
  return errors;
}

function addressProblem(type: string, address: string): string | undefined {
  switch (type) {
    case 'IPv4':
      return isIP(address) === 4 ? reservedAddress(address) : 'must be an IPv4 address';
    case 'IPv6':
      return isIP(address) === 6 ? reservedAddress(address) : 'must be an IPv6 address';
    default:
      return undefined;
  }
}
