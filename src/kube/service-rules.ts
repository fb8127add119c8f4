/** What a Service may be: the rules of kube-apiserver 1.37 (`ValidateService`), in its order and words, after defaults. Fields that it allocates or
 * sets itself may be absent. */

import { isIPv6 } from 'node:net';
import { isJsonObject, jsonEquals, type JsonObject, type JsonValue } from '../base/json.ts';
import {
  namedPorts,
  networkProblem,
  notationProblem,
  rangeProblem,
  reportRepeated,
} from './endpoint-rules.ts';
import {
  flag,
  list,
  map,
  oneOf,
  portNumber,
  integer,
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

export const EXTERNAL_NAME = 'ExternalName';
export const LOAD_BALANCER = 'LoadBalancer';
const HEADLESS = 'None';

const TYPES = ['ClusterIP', EXTERNAL_NAME, LOAD_BALANCER, 'NodePort'];
const FAMILIES = ['IPv4', 'IPv6'];
const POLICIES = ['Cluster', 'Local'];
const ONLY_BALANCED = "may only be used when `type` is 'LoadBalancer'";
const AFFINITY_SECONDS_MAX = 86_400;

export function isHeadless(spec: JsonObject): boolean {
  return spec['clusterIP'] === HEADLESS;
}

export function typeOf(spec: JsonObject): string {
  const { type } = spec;
  return typeof type === 'string' && type !== '' ? type : 'ClusterIP';
}

/** Fields that only Services of these types have. */
export const TYPES_OF_FIELD: Readonly<Record<string, readonly string[]>> = {
  allocateLoadBalancerNodePorts: [LOAD_BALANCER],
  loadBalancerClass: [LOAD_BALANCER],
  loadBalancerSourceRanges: [LOAD_BALANCER],
  healthCheckNodePort: [LOAD_BALANCER],
  ipFamilyPolicy: ['ClusterIP', 'NodePort', LOAD_BALANCER],
  clusterIP: ['ClusterIP', 'NodePort', LOAD_BALANCER],
  clusterIPs: ['ClusterIP', 'NodePort', LOAD_BALANCER],
  ipFamilies: ['ClusterIP', 'NodePort', LOAD_BALANCER],
};

/** Has an address or a port of the nodes, so a policy for traffic from outside. */
export function isExternallyAccessible(spec: JsonObject): boolean {
  const { externalIPs } = spec;
  return (
    [LOAD_BALANCER, 'NodePort'].includes(typeOf(spec)) ||
    (typeOf(spec) === 'ClusterIP' && Array.isArray(externalIPs) && externalIPs.length > 0)
  );
}

/** The spec without the fields of another type that an update leaves as they were: an API server drops them. */
export function withoutOtherTypes(spec: JsonObject, old: JsonObject): JsonObject {
  const isOfType = (field: string): boolean =>
    field === 'externalTrafficPolicy'
      ? isExternallyAccessible(spec)
      : (TYPES_OF_FIELD[field]?.includes(typeOf(spec)) ?? true);
  return Object.fromEntries(
    Object.entries(spec).filter(([field, value]) => isOfType(field) || !jsonEquals(value, old[field])),
  );
}

export const SERVICE_RULES: readonly FieldRule[] = [['spec', checkSpec]];

function checkSpec(spec: Field): void {
  if (!spec.isAbsent && !isJsonObject(spec.value)) spec.wrongType('an object');
  const object = isJsonObject(spec.value) ? spec.value : {};
  const type = typeOf(object);
  const ports = spec.member('ports');
  if (ports.isEmpty && !isHeadless(object) && type !== EXTERNAL_NAME)
    ports.required('', `for the type ${type}`);
  if (isHeadless(object) && [LOAD_BALANCER, 'NodePort'].includes(type))
    spec
      .member('clusterIP')
      .invalid(`may not be set to 'None' for ${type} services`, HEADLESS, spec.member('clusterIPs').item(0));
  if (type === EXTERNAL_NAME) checkExternalName(spec);
  checkPorts(ports);
  for (const [key, rule] of SELECTION_FIELDS) rule(spec.member(key));
  checkClusterIps(spec, type);
  for (const [key, rule] of OTHER_FIELDS) rule(spec.member(key));
  checkRepeatedPorts(ports);
  checkSourceRanges(spec, type);
  checkFieldsOfTypes(spec, object);
  oneOf(POLICIES, 'optional')(spec.member('internalTrafficPolicy'));
  oneOf(['PreferClose', 'PreferSameZone', 'PreferSameNode'], 'optional')(spec.member('trafficDistribution'));
}

function checkExternalName(spec: Field): void {
  for (const key of ['clusterIPs', 'ipFamilies', 'ipFamilyPolicy']) {
    if (!spec.member(key).isEmpty) spec.member(key).forbidden('may not be set for ExternalName services');
  }
  const name = spec.member('externalName');
  const cname = name.text.replace(/\.$/u, '');
  if (cname !== '') name.invalid(subdomainProblem(cname), cname);
  else if (name.isEmpty) name.required('', `for the type ${EXTERNAL_NAME}`);
}

function checkAffinity(config: Field): void {
  const seconds = config.member('clientIP').member('timeoutSeconds');
  struct(['clientIP', struct(['timeoutSeconds', integer])])(config);
  if (typeof seconds.value === 'number' && (seconds.value <= 0 || seconds.value > AFFINITY_SECONDS_MAX))
    seconds.invalid(`must be greater than 0 and less than ${AFFINITY_SECONDS_MAX}`);
}

const checkPorts: Rule = namedPorts(
  struct(
    ['name', textOf('may be empty', labelProblem)],
    ['port', portNumber],
    ['protocol', oneOf(PROTOCOLS, 'may be empty')],
    ['targetPort', targetPort],
    ['appProtocol', textOf('optional', labelKeyProblem)],
    ['nodePort', integer],
  ),
);

/** The number or the name of a port; an empty one becomes the number of the Service's port. */
function targetPort(field: Field): void {
  if (isDefaulted(field) && field.sibling('port')?.isEmpty === false) return;
  if (typeof field.value === 'string') field.invalid(portNameProblem(field.value));
  else if (field.isAbsent || typeof field.value === 'number') portNumber(field);
  else field.wrongType('a whole number or the name of a port');
}

function isDefaulted({ value, isAbsent }: Field): boolean {
  return isAbsent || value === '' || value === 0;
}

function portNameProblem(name: string): string | undefined {
  if (name.length > PORT_NAME_MAX) return `must be no more than ${PORT_NAME_MAX} characters`;
  if (!/^[-a-z0-9]+$/u.test(name))
    return 'must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)';
  if (!/[a-z]/u.test(name)) return 'must contain at least one letter (a-z)';
  if (name.includes('--')) return 'must not contain consecutive hyphens';
  return /^-|-$/u.test(name) ? 'must not begin or end with a hyphen' : undefined;
}

const PORT_NAME_MAX = 15;

function ipProblem(ip: string): ReturnType<TextProblem> {
  return notationProblem(ip) ?? rangeProblem(ip);
}

const SELECTION_FIELDS: readonly FieldRule[] = [
  ['selector', map(labelKeyProblem, labelValueProblem)],
  ['sessionAffinity', oneOf(['ClientIP', 'None'], 'may be empty')],
  ['sessionAffinityConfig', checkAffinity],
];

const OTHER_FIELDS: readonly FieldRule[] = [
  ['externalIPs', list(textOf('required', ipProblem))],
  ['type', oneOf(TYPES, 'may be empty')],
  ['loadBalancerIP', text],
  ['externalName', text],
  ['publishNotReadyAddresses', flag],
  ['allocateLoadBalancerNodePorts', flag],
];

/** `clusterIPs` may be absent: an API server sets it to `clusterIP`. */
function checkClusterIps(spec: Field, type: string): void {
  const [ip, ips] = [spec.member('clusterIP'), spec.member('clusterIPs')];
  const isChecked = type !== EXTERNAL_NAME && ips.items.length > 0;
  text(ip);
  if (!ips.isAbsent && !Array.isArray(ips.value)) ips.wrongType('a list');
  if (isChecked && ip.isEmpty) ips.invalid('must be empty when `clusterIP` is not specified');
  else if (isChecked && ips.items[0] !== ip.value) ips.invalid('first value must match `clusterIP`');
  const families = checkFamilies(spec);
  if (isChecked) checkClusterIpItems(ips, families);
}

function checkFamilies(spec: Field): readonly JsonValue[] {
  const families = spec.member('ipFamilies');
  const seen = new Set<string>();
  list((family) => {
    oneOf(FAMILIES, 'optional')(family);
    reportRepeated(family, seen);
  })(families.afresh());
  oneOf(['PreferDualStack', 'RequireDualStack', 'SingleStack'], 'optional')(spec.member('ipFamilyPolicy'));
  return families.items;
}

function checkClusterIpItems(ips: Field, families: readonly JsonValue[]): void {
  const isNone = ips.items[0] === HEADLESS;
  if (isNone && ips.items.length > 1) ips.invalid("'None' must be the first and only value");
  const wrong = ips.items.map((_, index) => {
    const problem = isNone && index === 0 ? undefined : notationProblem(ips.item(index).text);
    ips.item(index).invalid(problem, ips.item(index).text);
    return problem;
  });
  if (ips.items.length > 2) ips.invalid('may only hold up to 2 values');
  if (isNone || wrong.some((problem) => problem !== undefined)) return;
  const familyOf = (ip: JsonValue): string => (typeof ip === 'string' && isIPv6(ip) ? 'IPv6' : 'IPv4');
  if (new Set(ips.items.map(familyOf)).size < Math.min(2, ips.items.length))
    ips.invalid('may specify no more than one IP for each IP family');
  for (const [index, ip] of ips.items.entries()) {
    const family = families[index];
    if (typeof family === 'string' && FAMILIES.includes(family) && family !== familyOf(ip))
      ips.item(index).invalid(`expected an ${family} value as indicated by \`ipFamilies[${index}]\``);
  }
}

function checkRepeatedPorts(ports: Field): void {
  const seen = new Set<string>();
  const isRepeated = (...identity: readonly (JsonValue | undefined)[]): boolean => {
    const id = JSON.stringify(identity);
    const isKnown = seen.has(id);
    seen.add(id);
    return isKnown;
  };
  for (const index of ports.items.keys()) {
    const port = ports.item(index);
    const [name, number, nodePort] = [port.member('name'), port.member('port'), port.member('nodePort')];
    const protocol = port.member('protocol').text || 'TCP';
    if (name.text !== '' && isRepeated('name', name.text)) name.report({ reason: 'Duplicate' });
    if (!nodePort.isEmpty && isRepeated('nodePort', protocol, nodePort.value))
      nodePort.report({ reason: 'Duplicate' });
    if (isJsonObject(port.value) && isRepeated('port', protocol, number.value))
      number.report({ reason: 'Duplicate' }, repeatedPort(protocol, number.value), port);
  }
}

/** As a kube-apiserver shows the port: a struct of its own, of which it compares two fields. */
function repeatedPort(protocol: string, port: JsonValue = 0): JsonObject {
  return { Name: '', Protocol: protocol, AppProtocol: null, Port: port, TargetPort: 0, NodePort: 0 };
}

/** A kube-apiserver ignores spaces around a range, and names the field with a capital letter. */
function checkSourceRanges(spec: Field, type: string): void {
  const named = spec.member('LoadBalancerSourceRanges');
  const ranges = spec.member('loadBalancerSourceRanges');
  if (!ranges.isEmpty && type !== LOAD_BALANCER)
    ranges.report({ reason: 'Forbidden', detail: ONLY_BALANCED }, ranges.value, named);
  if (!ranges.isAbsent && !Array.isArray(ranges.value)) ranges.wrongType('a list');
  for (const [index, range] of ranges.items.entries()) {
    const item = ranges.item(index);
    if (typeof range === 'string')
      item.invalid(networkProblem(range.trim()), range.trim(), named.item(index));
    else item.wrongType('a string');
  }
}

function checkFieldsOfTypes(spec: Field, object: JsonObject): void {
  const type = typeOf(object);
  const isBalanced = type === LOAD_BALANCER;
  if (type === 'ClusterIP') {
    for (const index of spec.member('ports').items.keys()) {
      const nodePort = spec.member('ports').item(index).member('nodePort');
      if (!nodePort.isEmpty) nodePort.forbidden("may not be used when `type` is 'ClusterIP'");
    }
  }
  for (const key of ['allocateLoadBalancerNodePorts', 'loadBalancerClass']) {
    const field = spec.member(key);
    if (!field.isAbsent && !isBalanced) field.forbidden(ONLY_BALANCED);
  }
  if (isBalanced) textOf('optional', labelKeyProblem)(spec.member('loadBalancerClass'));
  const policy = spec.member('externalTrafficPolicy');
  if (isExternallyAccessible(object)) oneOf(POLICIES, 'may be empty')(policy);
  else if (!policy.isEmpty) policy.invalid('may only be set for externally-accessible services');
  const health = spec.member('healthCheckNodePort');
  if (!health.isEmpty && !(isBalanced && policy.value === 'Local'))
    health.invalid("may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
}
