/** What Endpoints and EndpointSlices may be: the rules of kube-apiserver 1.36 (`ValidateEndpoints`, `ValidateEndpointSlice`), in its order and words,
 * after defaults. */

import { isIPv4, isIPv6 } from 'node:net';
import { canonicalProblem, notationProblem, rangeProblem } from './addresses.ts';
import {
  flag,
  integer,
  list,
  oneOf,
  portNumber,
  PROTOCOLS,
  struct,
  text,
  textOf,
  type Field,
  type FieldRule,
  type Rule,
  type TextProblem,
} from './field-rules.ts';
import { labelKeyProblem, labelProblem, labelValueProblem, subdomainProblem } from './names.ts';
import { isJsonObject, type JsonObject } from '../base/json.ts';

const REFERENCE = struct(
  ...['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map(
    (key): FieldRule => [key, text],
  ),
);

const ADDRESS = struct(
  ['ip', textOf('required', notationProblem)],
  ['hostname', textOf('may be empty', labelProblem)],
  ['nodeName', textOf('optional', subdomainProblem)],
  ['ip', textOf('required', rangeProblem)],
  ['targetRef', REFERENCE],
);

const PORT = struct(
  ['name', textOf('may be empty', labelProblem)],
  ['port', portNumber],
  ['protocol', oneOf(PROTOCOLS, 'may be empty')],
  ['appProtocol', textOf('optional', labelKeyProblem)],
);

const LISTS = struct(
  ['addresses', list(ADDRESS)],
  ['notReadyAddresses', list(ADDRESS)],
  ['ports', namedPorts(PORT)],
);

function subset(field: Field): void {
  const lists = [field.member('addresses'), field.member('notReadyAddresses')];
  if (isJsonObject(field.value) && lists.every(({ isEmpty }) => isEmpty))
    field.required('must specify `addresses` or `notReadyAddresses`');
  LISTS(field);
}

/** Each of several ports needs a name. All are checked, because one more changes what the others need. */
export function namedPorts(rule: Rule): Rule {
  return (ports) => {
    const areSeveral = ports.items.length > 1;
    list((port) => {
      const name = port.member('name');
      if (areSeveral && isJsonObject(port.value) && name.isEmpty)
        name.required('', 'where there are several ports');
      rule(port);
    })(ports.afresh());
  };
}

export const ENDPOINTS_RULES: readonly FieldRule[] = [['subsets', list(subset)]];

const ADDRESS_TYPES = ['FQDN', 'IPv4', 'IPv6'];
const ENDPOINTS_MAX = 1000;
const ADDRESSES_MAX = 100;
const PORTS_MAX = 20_000;
const HINTS_MAX = 8;

const SLICE_PORT = struct(
  ['name', textOf('may be empty', labelProblem)],
  ['protocol', oneOf(PROTOCOLS, 'optional')],
  ['appProtocol', textOf('optional', labelKeyProblem)],
  // Its range is not checked.
  ['port', integer],
);

function slicePorts(ports: Field): void {
  const names = new Set<string>();
  list((port) => {
    SLICE_PORT(port);
    reportRepeated(port.member('name'), names);
  }, PORTS_MAX)(ports.afresh());
}

function reportRepeated(name: Field, names: Set<string>): void {
  if (!name.isAbsent && typeof name.value !== 'string') return;
  if (names.has(name.text)) name.report({ reason: 'Duplicate' }, name.text);
  names.add(name.text);
}

/** Of zones or nodes, each of them once. */
function hintsFor(problem: (name: string) => string | undefined): Rule {
  return (hints) => {
    const names = new Set<string>();
    const name: Rule = (field) => {
      reportRepeated(field, names);
      textOf('required', problem)(field);
    };
    list(struct(['name', name]), HINTS_MAX)(hints.afresh());
  };
}

function addressesOf(check: (address: Field, addresses: Field) => void): Rule {
  return (addresses) => {
    if (addresses.isEmpty) addresses.required('must contain at least 1 address');
    if (addresses.items.length > ADDRESSES_MAX) addresses.report({ reason: 'TooMany', max: ADDRESSES_MAX });
    list((address) => {
      if (typeof address.value === 'string') check(address, addresses);
      else address.wrongType('a string');
    })(addresses);
  };
}

function checkIp(
  problem: TextProblem,
  { family, isOfFamily }: { readonly family: string; readonly isOfFamily: (ip: string) => boolean },
): Rule {
  return addressesOf((address, addresses) => {
    const ip = address.text;
    const wrong = problem(ip);
    address.invalid(wrong);
    if (wrong !== undefined) return;
    if (!isOfFamily(ip)) address.invalid(`must be an ${family} address`, ip, addresses);
    address.invalid(rangeProblem(ip));
  });
}

function checkDomainName(address: Field): void {
  const name = address.text.replace(/\.$/u, '');
  const labels = name.split('.');
  const wrong = labels.find((label) => labelProblem(label) !== undefined);
  const problem = subdomainProblem(name);
  if (address.text === '') address.required();
  else if (problem !== undefined) address.invalid(problem, name);
  else if (labels.length < 2)
    address.invalid('should be a domain with at least two segments separated by dots', name);
  else if (wrong !== undefined) address.invalid(labelProblem(wrong), wrong);
}

function endpointsWith(addresses: Rule): Rule {
  const endpoint = struct(
    ['addresses', addresses],
    ['nodeName', textOf('optional', subdomainProblem)],
    ['hostname', textOf('optional', labelProblem)],
    ['hints', struct(['forZones', hintsFor(labelValueProblem)], ['forNodes', hintsFor(subdomainProblem)])],
    ['zone', text],
    ['conditions', struct(['ready', flag], ['serving', flag], ['terminating', flag])],
    ['targetRef', REFERENCE],
  );
  return list(endpoint, ENDPOINTS_MAX);
}

const ENDPOINTS_OF_TYPE = new Map<string, Rule>([
  ['IPv4', endpointsWith(checkIp(notationProblem, { family: 'IPv4', isOfFamily: isIPv4 }))],
  [
    'IPv6',
    endpointsWith(
      checkIp((ip) => notationProblem(ip) ?? canonicalProblem(ip), { family: 'IPv6', isOfFamily: isIPv6 }),
    ),
  ],
  ['FQDN', endpointsWith(addressesOf(checkDomainName))],
]);
const ENDPOINTS_OF_NO_TYPE = endpointsWith(addressesOf(text));

export function sliceRules(slice: JsonObject, old: JsonObject | undefined): readonly FieldRule[] {
  const type = slice['addressType'];
  const rule = (typeof type === 'string' ? ENDPOINTS_OF_TYPE.get(type) : undefined) ?? ENDPOINTS_OF_NO_TYPE;
  return [
    ['addressType', oneOf(ADDRESS_TYPES, 'required')],
    ['ports', slicePorts],
    ['endpoints', (endpoints) => rule(type === old?.['addressType'] ? endpoints : endpoints.afresh())],
  ];
}
