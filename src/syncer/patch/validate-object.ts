/** Checks that an API server will accept a patched Endpoints or EndpointSlice. The rules are kube-apiserver 1.36's (types of `v1.Endpoints`,
 * `ValidateEndpoints`, `ValidateObjectMeta`). Only changes by patches are checked; values that the object had before are left to the API server. */

import { isIPv4, isIPv6 } from 'node:net';
import {
  endpointIpProblem,
  sliceIpProblem,
  dnsLabelProblem,
  dnsSubdomainProblem,
  qualifiedNameProblem,
  below,
  domainNameProblem,
  checkField,
  checkList,
  checkObject,
  checkString,
  describe,
  isAbsent,
  isOld,
  member,
  Refusal,
  refuse,
  rootPlace,
  type Place,
  annotationKeyProblem,
  labelValueProblem,
} from './validate-fields.ts';
import type { ResultProblem } from './pipeline.ts';
import { jsonEquals, type JsonObject, type JsonValue, isJsonObject } from '../../base/json.ts';

/** Validates an object of any kind. For kinds other than Endpoints and EndpointSlices, only the metadata is checked. */
export function validateObject(before: JsonObject, after: JsonObject): ResultProblem | undefined {
  const { apiVersion, kind } = before;
  if (kind === 'Endpoints' && apiVersion === 'v1') return validateEndpoints(before, after);
  if (kind === 'EndpointSlice' && apiVersion === 'discovery.k8s.io/v1')
    return validateEndpointSlice(before, after);
  return firstProblem(() => checkMetadata(rootPlace('metadata', before, after)));
}

/** The first problem of `after` that `before` did not have. */
export function validateEndpoints(before: JsonObject, after: JsonObject): ResultProblem | undefined {
  return firstProblem(() => {
    checkIdentity(before, after);
    checkMetadata(rootPlace('metadata', before, after));
    checkSubsets(rootPlace('subsets', before, after));
  });
}

export function firstProblem(check: () => void): ResultProblem | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return { path: error.path, message: error.message };
    throw error;
  }
}

export function checkIdentity(before: JsonObject, after: JsonObject): void {
  for (const key of ['apiVersion', 'kind']) {
    const place = rootPlace(key, before, after);
    if (!isUnchanged(place)) refuse(place.path, `a patch may not change ${key}`);
  }
  const metadata = rootPlace('metadata', before, after);
  for (const key of ['name', 'namespace']) {
    const place = below(metadata, key);
    if (!isUnchanged(place)) refuse(place.path, `a patch may not change metadata.${key}`);
  }
}

/** Also true if both are absent. */
function isUnchanged({ now, old }: Place): boolean {
  return now === old || jsonEquals(now, old);
}

function checkSubsets(subsets: Place): void {
  checkList(subsets, (subset) => {
    checkObject(subset);
    const [ready, notReady] = [below(subset, 'addresses'), below(subset, 'notReadyAddresses')];
    checkList(ready, checkAddress);
    checkList(notReady, checkAddress);
    const wasEmpty = !subset.isNew && isEmptyList(ready.old) && isEmptyList(notReady.old);
    if (isEmptyList(ready.now) && isEmptyList(notReady.now) && !wasEmpty) {
      refuse(subset.path, 'must have addresses or notReadyAddresses');
    }
    checkPorts(below(subset, 'ports'));
  });
}

function isEmptyList(value: JsonValue | undefined): boolean {
  return !Array.isArray(value) || value.length === 0;
}

function checkAddress(address: Place): void {
  checkObject(address);
  const ip = below(address, 'ip');
  checkField(ip, endpointIpProblem, 'required');
  checkField(below(address, 'hostname'), dnsLabelProblem, 'may be empty');
  checkField(below(address, 'nodeName'), dnsSubdomainProblem, 'optional');
  const target = below(address, 'targetRef');
  if (isAbsent(target.now) || isOld(target)) return;
  checkObject(target);
  for (const key of ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']) {
    checkString(below(target, key));
  }
}

function checkPorts(ports: Place): void {
  const count = Array.isArray(ports.now) ? ports.now.length : 0;
  const oldCount = Array.isArray(ports.old) ? ports.old.length : 0;
  checkList(ports, checkPort);
  if (count < 2 || !Array.isArray(ports.now)) return;
  for (const [at, port] of ports.now.entries()) {
    const name = member(port, 'name');
    if (!isAbsent(name) && name !== '') continue;
    // The name was already missing, and already required, before the patches.
    const was = oldCount > 1 && Array.isArray(ports.old) ? member(ports.old[at], 'name') : 'named';
    if (!isAbsent(was) && was !== '')
      refuse(
        { above: { above: ports.path, step: at }, step: 'name' },
        'is required where there are several ports',
      );
  }
}

function checkPort(port: Place): void {
  checkObject(port);
  checkField(below(port, 'name'), dnsLabelProblem, 'may be empty');
  checkField(below(port, 'appProtocol'), qualifiedNameProblem, 'optional');
  const protocol = below(port, 'protocol');
  checkString(protocol);
  // Empty is defaulted to TCP.
  if (
    !isOld(protocol) &&
    !isAbsent(protocol.now) &&
    protocol.now !== '' &&
    !(typeof protocol.now === 'string' && PROTOCOLS.includes(protocol.now))
  ) {
    refuse(protocol.path, `must be TCP, UDP or SCTP, not ${describe(protocol.now)}`);
  }
  const number = below(port, 'port');
  if (isOld(number)) return;
  const value = number.now;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > 65535) {
    refuse(number.path, `must be a whole number from 1 to 65535, not ${describe(value)}`);
  }
}

export const PROTOCOLS = ['TCP', 'UDP', 'SCTP'];
const ADDRESS_TYPES = ['IPv4', 'IPv6', 'FQDN'];
const PORT_MAX = 65_535;
const ADDRESSES_MAX = 100;

export function validateEndpointSlice(before: JsonObject, after: JsonObject): ResultProblem | undefined {
  return firstProblem(() => {
    checkIdentity(before, after);
    checkMetadata(rootPlace('metadata', before, after));
    checkOneOf(rootPlace('addressType', before, after), ADDRESS_TYPES);
    const type = after['addressType'];
    checkList(rootPlace('endpoints', before, after), (endpoint) => checkEndpoint(endpoint, type));
    const ports = rootPlace('ports', before, after);
    checkList(ports, checkSlicePort);
    checkPortNames(ports);
  });
}

function checkEndpoint(endpoint: Place, addressType: JsonValue | undefined): void {
  checkObject(endpoint);
  const addresses = below(endpoint, 'addresses');
  const { now } = addresses;
  const isCountRight = Array.isArray(now) && now.length > 0 && now.length <= ADDRESSES_MAX;
  if (!isCountRight && !isOld(addresses))
    refuse(addresses.path, `must be a list of 1 to ${ADDRESSES_MAX} addresses, not ${describe(now)}`);
  checkList(addresses, (address) =>
    checkField(address, (text) => addressProblem(text, addressType), 'required'),
  );
  checkField(below(endpoint, 'hostname'), dnsLabelProblem, 'optional');
  checkField(below(endpoint, 'nodeName'), dnsSubdomainProblem, 'optional');
  checkString(below(endpoint, 'zone'));
  for (const member of ['conditions', 'targetRef', 'hints']) {
    const place = below(endpoint, member);
    if (!isAbsent(place.now)) checkObject(place);
  }
}

function checkSlicePort(port: Place): void {
  checkObject(port);
  const number = below(port, 'port');
  if (!isOld(number) && !isAbsent(number.now) && !isPortNumber(number.now))
    refuse(number.path, `must be a number from 1 to ${PORT_MAX}, not ${describe(number.now)}`);
  checkOneOf(below(port, 'protocol'), PROTOCOLS, 'optional');
  checkField(below(port, 'name'), dnsLabelProblem, 'may be empty');
  checkField(below(port, 'appProtocol'), qualifiedNameProblem, 'optional');
}

function addressProblem(text: string, addressType: JsonValue | undefined): string | undefined {
  if (addressType === 'FQDN') return domainNameProblem(text);
  if (addressType !== 'IPv4' && addressType !== 'IPv6') return undefined;
  const isOfType = addressType === 'IPv6' ? isIPv6(text) : isIPv4(text);
  return isOfType ? sliceIpProblem(text) : `must be an ${addressType} address, not ${describe(text)}`;
}

function checkPortNames({ now, old, path }: Place): void {
  const repeated = repeatedName(now);
  if (repeated === undefined || repeatedName(old) !== undefined) return;
  const place = { above: { above: path, step: repeated.at }, step: 'name' };
  refuse(place, `must be different for each port, ${describe(repeated.name)} is repeated`);
}

/** A port without a name has the name ''. */
function repeatedName(ports: JsonValue | undefined): { at: number; name: string } | undefined {
  if (!Array.isArray(ports)) return undefined;
  const names = ports.map((port) => member(port, 'name') ?? '');
  const at = names.findIndex((name, index) => names.indexOf(name) < index);
  const name = names[at];
  return typeof name === 'string' ? { at, name } : undefined;
}

export function checkOneOf(place: Place, values: readonly string[], presence?: 'optional'): void {
  if (isOld(place) || (presence === 'optional' && isAbsent(place.now))) return;
  if (typeof place.now !== 'string' || !values.includes(place.now))
    refuse(place.path, `must be one of ${values.join(', ')}, not ${describe(place.now)}`);
}

export function isPortNumber(value: JsonValue | undefined): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= PORT_MAX;
}

/** Kubernetes' `TotalAnnotationSizeLimitB`: the sum over all keys and values. */
const ANNOTATION_BYTES_MAX = 256 * 1024;

export function checkMetadata(place: Place): void {
  if (place.now === place.old) return;
  if (!isAbsent(place.now)) checkObject(place);
  checkMap(below(place, 'labels'), (key) => qualifiedNameProblem(key), labelValueProblem);
  checkMap(below(place, 'annotations'), annotationKeyProblem, () => undefined);
  checkAnnotationSize(below(place, 'annotations'));
  const finalizers = below(place, 'finalizers');
  checkList(finalizers, (item) => {
    checkString(item);
    if (typeof item.now === 'string') refuse(item.path, qualifiedNameProblem(item.now));
  });
  checkOwners(below(place, 'ownerReferences'));
  for (const key of [
    'generateName',
    'resourceVersion',
    'selfLink',
    'creationTimestamp',
    'deletionTimestamp',
  ]) {
    checkString(below(place, key));
  }
}

function checkMap(
  place: Place,
  keyProblem: (key: string) => string | undefined,
  valueProblem: (value: string) => string | undefined,
): void {
  if (isOld(place) || isAbsent(place.now)) return;
  if (!isJsonObject(place.now)) {
    refuse(place.path, `must be a map of strings, not ${describe(place.now)}`);
    return;
  }
  for (const key of Object.keys(place.now)) {
    const value = below(place, key);
    if (isOld(value)) continue;
    // An invalid key that existed before was not added by a patch.
    if (value.old === undefined) refuse(value.path, keyProblem(key)?.replace(/^/, 'its key '));
    checkString(value);
    if (typeof value.now === 'string') refuse(value.path, valueProblem(value.now));
  }
}

function checkAnnotationSize({ path, now, old }: Place): void {
  const bytes = mapBytes(now);
  if (bytes > ANNOTATION_BYTES_MAX && bytes > mapBytes(old)) {
    refuse(path, `must have at most ${ANNOTATION_BYTES_MAX} bytes in all, these are ${bytes}`);
  }
}

function mapBytes(map: JsonValue | undefined): number {
  if (!isJsonObject(map)) return 0;
  return Object.entries(map).reduce(
    (sum, [key, value]) =>
      sum + Buffer.byteLength(key) + (typeof value === 'string' ? Buffer.byteLength(value) : 0),
    0,
  );
}

function checkOwners(place: Place): void {
  checkList(place, (owner) => {
    checkObject(owner);
    for (const key of ['apiVersion', 'kind', 'name', 'uid']) {
      const field = below(owner, key);
      checkString(field);
      if (isAbsent(field.now) || field.now === '') refuse(field.path, 'must not be empty');
    }
    for (const key of ['controller', 'blockOwnerDeletion']) {
      const field = below(owner, key);
      if (!isAbsent(field.now) && typeof field.now !== 'boolean') {
        refuse(field.path, `must be true or false, not ${describe(field.now)}`);
      }
    }
  });
}
