/** Checks that an API server accepts a patched Service, and that no patch gives the copy what the translation withholds. The rules are those of
 * kube-apiserver 1.36 (`ValidateService`). Only changes by patches are checked. */

import { isIP, isIPv4 } from 'node:net';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { ResultProblem } from '../patch/pipeline.ts';
import {
  below,
  checkField,
  checkList,
  checkObject,
  checkString,
  describe,
  dnsLabelProblem,
  dnsSubdomainProblem,
  endpointIpProblem,
  isAbsent,
  isOld,
  member,
  qualifiedNameProblem,
  refuse,
  rootPlace,
  type Place,
} from '../patch/validate-fields.ts';
import {
  checkIdentity,
  checkMetadata,
  checkOneOf,
  firstProblem,
  isPortNumber,
  PROTOCOLS,
} from '../patch/validate-object.ts';
import { listAt } from '../translate/content.ts';

export const EXTERNAL_NAME = 'ExternalName';
export const LOAD_BALANCER = 'LoadBalancer';
export const HEADLESS = 'None';

/** Fields that only Services of these types have. */
export const TYPES_OF_FIELD: Readonly<Record<string, readonly string[]>> = {
  allocateLoadBalancerNodePorts: [LOAD_BALANCER],
  loadBalancerClass: [LOAD_BALANCER],
  loadBalancerSourceRanges: [LOAD_BALANCER],
  healthCheckNodePort: [LOAD_BALANCER],
  internalTrafficPolicy: ['ClusterIP', 'NodePort', LOAD_BALANCER],
  ipFamilyPolicy: ['ClusterIP', 'NodePort', LOAD_BALANCER],
  clusterIP: ['ClusterIP', 'NodePort', LOAD_BALANCER],
  clusterIPs: ['ClusterIP', 'NodePort', LOAD_BALANCER],
  ipFamilies: ['ClusterIP', 'NodePort', LOAD_BALANCER],
};

const VALUES: Readonly<Record<string, readonly string[]>> = {
  type: ['ClusterIP', EXTERNAL_NAME, LOAD_BALANCER, 'NodePort'],
  sessionAffinity: ['ClientIP', 'None'],
  externalTrafficPolicy: ['Cluster', 'Local'],
  internalTrafficPolicy: ['Cluster', 'Local'],
  ipFamilyPolicy: ['PreferDualStack', 'RequireDualStack', 'SingleStack'],
  trafficDistribution: ['PreferClose', 'PreferSameNode', 'PreferSameZone'],
};
const FLAGS = ['allocateLoadBalancerNodePorts', 'publishNotReadyAddresses'];
/** Allocated by the host for its copy. */
const ALLOCATED = ['clusterIP', 'clusterIPs', 'healthCheckNodePort'];
const IS_ALLOCATED = 'is allocated by the host, so a patch may not set it';
const AFFINITY_SECONDS_MAX = 86_400;
/** The kubelet's: no load balancer may expose it. */
const KUBELET_PORT = 10_250;

/** The first problem of `after` that `before` did not have. `withheld`: address fields that the configuration does not allow. */
export function validateService(
  before: JsonObject,
  after: JsonObject,
  withheld: readonly string[],
): ResultProblem | undefined {
  return firstProblem(() => {
    checkIdentity(before, after);
    checkMetadata(rootPlace('metadata', before, after));
    const status = rootPlace('status', before, after);
    if (!isOld(status)) refuse(status.path, 'is kept by each cluster, so a patch may not set it');
    const spec = rootPlace('spec', before, after);
    if (spec.now === spec.old) return;
    if (!isJsonObject(spec.now)) refuse(spec.path, `must be an object, not ${describe(spec.now)}`);
    checkWithheld(spec, withheld);
    checkSpec(spec);
    checkPorts(below(spec, 'ports'), spec.now);
  });
}

function checkWithheld(spec: Place, withheld: readonly string[]): void {
  const selector = below(spec, 'selector');
  if (!isUnset(selector.now) && !isOld(selector))
    refuse(selector.path, 'is never copied: a selector would match Pods of the host');
  for (const field of withheld) {
    const place = below(spec, field);
    if (isUnset(place.now) || isOld(place)) continue;
    refuse(
      place.path,
      `takes traffic of the host, so it is copied only if endpointSyncer.services.allow names ${field}`,
    );
  }
  const clusterIp = below(spec, 'clusterIP');
  if ((clusterIp.old === HEADLESS) !== (clusterIp.now === HEADLESS))
    refuse(clusterIp.path, 'a patch may not change whether a Service is headless');
  for (const field of ALLOCATED) {
    const place = below(spec, field);
    if (!isUnset(place.now) && !isOld(place)) refuse(place.path, IS_ALLOCATED);
  }
  const families = below(spec, 'ipFamilies');
  if (!isUnset(families.now) && !isOld(families))
    refuse(families.path, 'is that of the virtual Service, so a patch may not set it');
}

function checkSpec(spec: Place): void {
  for (const [field, values] of Object.entries(VALUES)) checkOneOf(below(spec, field), values, 'optional');
  const type = typeOf(spec.now);
  for (const [field, types] of Object.entries(TYPES_OF_FIELD)) {
    const place = below(spec, field);
    if (!isUnset(place.now) && !isOld(place) && !types.includes(type))
      refuse(place.path, `needs the type ${types.join(', ')}, not ${type}`);
  }
  if (member(spec.now, 'clusterIP') === HEADLESS && type !== 'ClusterIP')
    refuse(below(spec, 'type').path, `must be ClusterIP for a headless Service, not ${type}`);
  for (const field of FLAGS) {
    const { path, now } = below(spec, field);
    if (!isAbsent(now) && typeof now !== 'boolean')
      refuse(path, `must be true or false, not ${describe(now)}`);
  }
  checkField(below(spec, 'loadBalancerClass'), qualifiedNameProblem, 'may be empty');
  checkString(below(spec, 'loadBalancerIP'));
  checkList(below(spec, 'externalIPs'), (ip) => checkField(ip, endpointIpProblem, 'required'));
  checkList(below(spec, 'loadBalancerSourceRanges'), (range) => checkField(range, cidrProblem, 'required'));
  checkExternalName(below(spec, 'externalName'), type);
  const affinity = below(spec, 'sessionAffinityConfig');
  for (const place of [affinity, below(affinity, 'clientIP')]) if (!isAbsent(place.now)) checkObject(place);
  checkAffinity(below(below(affinity, 'clientIP'), 'timeoutSeconds'));
}

function checkExternalName(name: Place, type: string): void {
  if (type === EXTERNAL_NAME && isUnset(name.now)) refuse(name.path, 'is required for the type ExternalName');
  checkField(name, (text) => dnsSubdomainProblem(text.replace(/\.$/, '')), 'may be empty');
}

function checkAffinity({ path, now }: Place): void {
  if (isAbsent(now)) return;
  const isValid = typeof now === 'number' && Number.isInteger(now) && now > 0 && now <= AFFINITY_SECONDS_MAX;
  if (!isValid) refuse(path, `must be a number from 1 to ${AFFINITY_SECONDS_MAX}, not ${describe(now)}`);
}

function checkPorts(ports: Place, spec: JsonValue | undefined): void {
  const type = typeOf(spec);
  const isOpen = type === EXTERNAL_NAME || member(spec, 'clusterIP') === HEADLESS;
  if (isUnset(ports.now) && !isOpen) refuse(ports.path, `must not be empty for the type ${type}`);
  const allocated = listAt({ ports: ports.old ?? null }, 'ports').map((port) => member(port, 'nodePort'));
  checkList(ports, (port) => checkPort(port, allocated));
  const all = listAt({ ports: ports.now ?? null }, 'ports');
  const [names, numbers] = [new Set<JsonValue>(), new Set<string>()];
  for (const [at, port] of all.entries()) {
    const place = (step: string) => ({ above: { above: ports.path, step: at }, step });
    const [name = '', number] = [member(port, 'name'), member(port, 'port')];
    if (isUnset(name) && all.length > 1) refuse(place('name'), 'is required where there are several ports');
    if (!isUnset(name) && names.has(name))
      refuse(place('name'), `is that of another port: ${describe(name)}`);
    const id = JSON.stringify([member(port, 'protocol') ?? 'TCP', number]);
    if (numbers.has(id)) refuse(place('port'), `is that of another port: ${describe(number)}`);
    if (type === LOAD_BALANCER && number === KUBELET_PORT)
      refuse(place('port'), `must not be ${KUBELET_PORT}, the kubelet's, for the type LoadBalancer`);
    names.add(name);
    numbers.add(id);
  }
}

function checkPort(port: Place, allocated: readonly (JsonValue | undefined)[]): void {
  checkObject(port);
  checkField(below(port, 'name'), dnsLabelProblem, 'may be empty');
  checkField(below(port, 'appProtocol'), qualifiedNameProblem, 'optional');
  checkOneOf(below(port, 'protocol'), PROTOCOLS, 'optional');
  const number = below(port, 'port');
  if (!isOld(number) && !isPortNumber(number.now))
    refuse(number.path, `must be a number from 1 to 65535, not ${describe(number.now)}`);
  const target = below(port, 'targetPort');
  if (!isOld(target) && !isAbsent(target.now) && target.now !== 0 && !isPortNumber(target.now)) {
    const isName = typeof target.now === 'string' && (target.now === '' || PORT_NAME.test(target.now));
    if (!isName)
      refuse(
        target.path,
        `must be a number from 1 to 65535 or the name of a port, not ${describe(target.now)}`,
      );
  }
  const nodePort = below(port, 'nodePort');
  if (!isUnset(nodePort.now) && !allocated.includes(nodePort.now)) refuse(nodePort.path, IS_ALLOCATED);
}

/** An IANA service name. */
const PORT_NAME = /^(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(?:-[a-z0-9]+)*$/;

function cidrProblem(text: string): string | undefined {
  const [address = '', length = ''] = text.trim().split('/');
  const isValid =
    isIP(address) !== 0 &&
    /^\d{1,3}$/.test(length) &&
    Number(length) <= (isIPv4(address) ? 32 : 128) &&
    text.trim() === `${address}/${length}`;
  return isValid ? undefined : `must be a range such as 10.0.0.0/8, not ${describe(text)}`;
}

/** As Go reads the field: its empty value. */
function isUnset(value: JsonValue | undefined): boolean {
  if (isAbsent(value) || value === '' || value === 0) return true;
  return Array.isArray(value) ? value.length === 0 : isJsonObject(value) && Object.keys(value).length === 0;
}

export function typeOf(spec: JsonValue | undefined): string {
  const type = member(spec, 'type');
  return typeof type === 'string' && type !== '' ? type : 'ClusterIP';
}
