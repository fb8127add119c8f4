/** What Endpoints and EndpointSlices may be: the rules of kube-apiserver 1.37 (`ValidateEndpoints`, `ValidateEndpointSlice`), in its order and words,
 * after defaults. */

import { isIP, isIPv4, isIPv6 } from 'node:net';
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
  type Problem,
  type Rule,
  type TextProblem,
} from './field-rules.ts';
import { labelKeyProblem, labelProblem, labelValueProblem, subdomainProblem } from './names.ts';
import { canonicalAddress } from '../base/ip-address.ts';
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

/** Reports a text that is in `names` already, and adds it. */
export function reportRepeated(name: Field, names: Set<string>): void {
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
    if (addresses.isEmpty) addresses.required('', 'with at least 1 address');
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
      checkIp((ip) => inEveryVersion(notationProblem(ip)) ?? canonicalProblem(ip), {
        family: 'IPv6',
        isOfFamily: isIPv6,
      }),
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

// Which IP addresses and ranges endpoints and Services may have, as a kube-apiserver decides and says it; undefined: no problem.

/** Node accepts a zone (`fe80::1%eth0`), Kubernetes does not. */
function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
}

export function notationProblem(ip: string): string | Problem | undefined {
  if (!isAddress(ip) && isAddress(withoutLeadingZeros(ip))) return strict('must not have leading 0s');
  if (!isAddress(ip)) return 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
  return /^::ffff:[^:]+:[^:]+$/.test(canonicalAddress(ip))
    ? strict('must not be an IPv4-mapped IPv6 address')
    : undefined;
}

function inEveryVersion(problem: string | Problem | undefined): string | undefined {
  return typeof problem === 'object' ? problem.detail : problem;
}

/** The feature gate StrictIPCIDRValidation: on by default since 1.36, off before. */
function strict(detail: string): Problem {
  return { detail, since: '1.36' };
}

/** An EndpointSlice needs the canonical form (RFC 5952). */
function canonicalProblem(ip: string): Problem | undefined {
  const form = canonicalAddress(ip);
  return form === ip
    ? undefined
    : { detail: `must be in canonical form (${JSON.stringify(form)})`, since: '1.33' };
}

export function rangeProblem(text: string): string | undefined {
  const ip = withoutLeadingZeros(text);
  if (!isAddress(ip)) return 'must be a valid IP address';
  const form = canonicalAddress(ip);
  if (form === '0.0.0.0' || form === '::') return `may not be unspecified (${text})`;
  if (form.startsWith('127.') || form === '::1')
    return 'may not be in the loopback range (127.0.0.0/8, ::1/128)';
  if (form.startsWith('169.254.') || /^fe[89ab][0-9a-f]:/.test(form))
    return 'may not be in the link-local range (169.254.0.0/16, fe80::/10)';
  // Scope 2 with any flags: Go checks these bits only.
  if (form.startsWith('224.0.0.') || /^ff[0-9a-f]2:/.test(form))
    return 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)';
  return undefined;
}

/** Of a range such as `10.0.0.0/8`. */
export function networkProblem(range: string): string | Problem | undefined {
  const [, ip = '', digits = ''] = /^([^/]*)\/(\d{1,3})$/u.exec(range) ?? [];
  const bits = isIPv6(ip) ? 128 : 32;
  if (!isAddress(ip) || Number(digits) > bits)
    return 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
  if (digits !== String(Number(digits))) return strict('must not have leading 0s in IP or prefix length');
  if (notationProblem(ip) !== undefined) return strict('must not have an IPv4-mapped IPv6 address');
  const hostBits = BigInt(bits) - BigInt(digits);
  return (addressBits(ip) & ((1n << hostBits) - 1n)) === 0n
    ? undefined
    : strict('must not have bits set beyond the prefix length');
}

function addressBits(ip: string): bigint {
  if (!isIPv6(ip)) return ip.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n);
  const [left = '', right] = canonicalAddress(ip).split('::');
  const groups = (text: string | undefined): string[] => (text ? text.split(':') : []);
  const [first, last] = [groups(left), groups(right)];
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0');
  return [...first, ...zeros, ...last].reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}

/** Of the numbers of an IPv4 address, which old API servers ignored. */
function withoutLeadingZeros(text: string): string {
  return /^[\d.]+$/u.test(text) ? text.replace(/(^|\.)0+(?=\d)/gu, '$1') : text;
}

/** What a kube-apiserver warns of: an address that is valid in Endpoints and Services, but not in its canonical form. */
export function formWarning(ip: string): string | undefined {
  const form = canonicalAddress(ip);
  return form === ip
    ? undefined
    : `IPv6 address ${JSON.stringify(ip)} should be in RFC 5952 canonical format (${JSON.stringify(form)})`;
}

/** Of a range that has no `networkProblem`. */
export function rangeFormWarning(range: string): string | undefined {
  const [ip = '', bits = ''] = range.split('/');
  const form = `${canonicalAddress(ip)}/${bits}`;
  return form === range
    ? undefined
    : `IPv6 CIDR value ${JSON.stringify(range)} should be in RFC 5952 canonical format (${JSON.stringify(form)})`;
}
