/** Checks that an API server will accept a patched Endpoints. The rules are kube-apiserver 1.36's (types of `v1.Endpoints`,
 * `ValidateEndpoints`, `ValidateObjectMeta`). Only changes by patches are checked; values that the object had before are left to the API
 * server.
 */

import { endpointIpProblem } from './endpoint-ip.ts';
import { dnsLabelProblem, dnsSubdomainProblem, qualifiedNameProblem } from './name-syntax.ts';
import {
  below,
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
} from './place.ts';
import { checkMetadata } from './validate-metadata.ts';
import type { ResultProblem } from '../run.ts';
import { jsonEquals, type JsonObject, type JsonValue } from '../../../base/json.ts';

const PROTOCOLS: readonly JsonValue[] = ['TCP', 'UDP', 'SCTP'];

/** Validates an object of any kind. For kinds other than Endpoints, only the metadata is checked. */
export function validateObject(before: JsonObject, after: JsonObject): ResultProblem | undefined {
  return before['kind'] === 'Endpoints' && before['apiVersion'] === 'v1'
    ? validateEndpoints(before, after)
    : firstProblem(() => checkMetadata(rootPlace('metadata', before, after)));
}

/** The first problem of `after` that `before` did not have. */
export function validateEndpoints(before: JsonObject, after: JsonObject): ResultProblem | undefined {
  return firstProblem(() => {
    checkIdentity(before, after);
    checkMetadata(rootPlace('metadata', before, after));
    checkSubsets(rootPlace('subsets', before, after));
  });
}

function firstProblem(check: () => void): ResultProblem | undefined {
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
    !PROTOCOLS.includes(protocol.now)
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
