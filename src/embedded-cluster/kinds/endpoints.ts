/** Endpoints. */

import { isIP } from 'node:net';
import { type JsonObject, listField, objectList, text } from '../../base/json.ts';
import { canonicalProblem, notationProblem, rangeProblem } from '../../kube/addresses.ts';
import { ENDPOINTS } from '../../kube/object.ts';
import {
  invalidValue,
  itemErrors,
  problemErrors,
  requiredValue,
  unsupportedValue,
  type FieldError,
} from '../../apiserver/status.ts';
import { defineResource, type ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import { AGE_COLUMN, NAME_COLUMN, textColumn } from '../../apiserver/objects/object-view.ts';
import { labelProblem, subdomainProblem } from '../../kube/names.ts';

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
        for (const port of objectList(subset, 'ports')) port['protocol'] ??= 'TCP';
      }
    },
    validate: (object) => itemErrors(objectList(object, 'subsets'), 'subsets', subsetErrors),
  });
}

const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];

function subsetErrors(subset: JsonObject, path: string): FieldError[] {
  const addresses = objectList(subset, 'addresses');
  const notReady = objectList(subset, 'notReadyAddresses');
  if (addresses.length === 0 && notReady.length === 0) {
    return [requiredValue(path, 'must specify `addresses` or `notReadyAddresses`')];
  }
  const ports = objectList(subset, 'ports');
  return [
    ...itemErrors(addresses, `${path}.addresses`, addressErrors),
    ...itemErrors(notReady, `${path}.notReadyAddresses`, addressErrors),
    ...itemErrors(ports, `${path}.ports`, (port, at) => portErrors(port, at, ports.length > 1)),
  ];
}

function addressErrors(address: JsonObject, path: string): FieldError[] {
  const [ip, hostname, { nodeName }] = [text(address, 'ip'), text(address, 'hostname'), address];
  return [
    ...problemErrors(`${path}.ip`, ip, notationProblem(ip)),
    ...problemErrors(`${path}.hostname`, hostname, hostname === '' ? undefined : labelProblem(hostname)),
    ...problemErrors(
      `${path}.nodeName`,
      nodeName,
      typeof nodeName === 'string' ? subdomainProblem(nodeName) : undefined,
    ),
    ...problemErrors(`${path}.ip`, ip, rangeProblem(ip)),
  ];
}

/** Of the name, the number and the protocol, which the ports of a Service have too. */
export function portErrors(port: JsonObject, path: string, isNameNeeded: boolean): FieldError[] {
  const [name, protocol] = [text(port, 'name'), text(port, 'protocol')];
  return [
    ...(name === '' && isNameNeeded ? [requiredValue(`${path}.name`)] : []),
    ...problemErrors(`${path}.name`, name, name === '' ? undefined : labelProblem(name)),
    ...portNumberErrors(port['port'], `${path}.port`),
    ...(PROTOCOLS.includes(protocol) ? [] : [unsupportedValue(`${path}.protocol`, protocol, PROTOCOLS)]),
  ];
}

export function portNumberErrors(port: unknown, path: string): FieldError[] {
  const isPort = typeof port === 'number' && port >= 1 && port <= 65535;
  return isPort ? [] : [invalidValue(path, port ?? 0, 'must be between 1 and 65535, inclusive')];
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

const ADDRESS_TYPES = ['FQDN', 'IPv4', 'IPv6'];

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
  const endpointErrors = (endpoint: JsonObject, path: string): FieldError[] => {
    const addresses = listField(endpoint, 'addresses').map(String);
    if (addresses.length === 0)
      return [requiredValue(`${path}.addresses`, 'must contain at least 1 address')];
    return itemErrors(addresses, `${path}.addresses`, (address, at) =>
      problemErrors(at, address, addressProblem(type, address)),
    );
  };
  return [...errors, ...itemErrors(objectList(next, 'endpoints'), 'endpoints', endpointErrors)];
}

function addressProblem(type: string, address: string): string | undefined {
  switch (type) {
    case 'IPv4':
      return isIP(address) === 4 ? ipProblem(address) : 'must be an IPv4 address';
    case 'IPv6':
      return isIP(address) === 6 ? ipProblem(address) : 'must be an IPv6 address';
    default:
      return undefined;
  }
}

function ipProblem(ip: string): string | undefined {
  return notationProblem(ip) ?? canonicalProblem(ip) ?? rangeProblem(ip);
}
