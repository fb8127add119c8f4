/** Checks that an API server will accept a patched EndpointSlice. Only changes by patches are checked; values that the object had before
 * are left to the API server.
 */

import { checkIdentity } from './validate-endpoints.ts';
import {
  below,
  checkField,
  checkList,
  checkObject,
  checkString,
  describe,
  isAbsent,
  isOld,
  Refusal,
  refuse,
  rootPlace,
  type Place,
} from './place.ts';
import { dnsLabelProblem, dnsSubdomainProblem } from './name-syntax.ts';
import type { ResultProblem } from '../run.ts';
import { checkMetadata } from './validate-metadata.ts';
import type { JsonObject, JsonValue } from '../../../base/json.ts';

const PROTOCOLS = ['TCP', 'UDP', 'SCTP'];
const ADDRESS_TYPES = ['IPv4', 'IPv6', 'FQDN'];
const PORT_MAX = 65_535;
const ADDRESSES_MAX = 100;

/** The first problem of `after` that `before` did not have. */
export function validateEndpointSlice(before: JsonObject, after: JsonObject): ResultProblem | undefined {
  try {
    checkIdentity(before, after);
    checkMetadata(rootPlace('metadata', before, after));
    checkOneOf(rootPlace('addressType', before, after), ADDRESS_TYPES);
    checkList(rootPlace('endpoints', before, after), checkEndpoint);
    checkList(rootPlace('ports', before, after), checkPort);
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return { path: error.path, message: error.message };
    throw error;
  }
}

function checkEndpoint(endpoint: Place): void {
  checkObject(endpoint);
  const addresses = below(endpoint, 'addresses');
  const { now } = addresses;
  const isCountRight = Array.isArray(now) && now.length > 0 && now.length <= ADDRESSES_MAX;
  if (!isCountRight && !isOld(addresses))
    refuse(addresses.path, `must be a list of 1 to ${ADDRESSES_MAX} addresses, not ${describe(now)}`);
  checkList(addresses, (address) => {
    if (isAbsent(address.now) || address.now === '') refuse(address.path, 'is required');
    checkString(address);
  });
  checkField(below(endpoint, 'hostname'), dnsLabelProblem, 'optional');
  checkField(below(endpoint, 'nodeName'), dnsSubdomainProblem, 'optional');
  checkString(below(endpoint, 'zone'));
  for (const member of ['conditions', 'targetRef', 'hints']) {
    const place = below(endpoint, member);
    if (!isAbsent(place.now)) checkObject(place);
  }
}

function checkPort(port: Place): void {
  checkObject(port);
  const number = below(port, 'port');
  if (!isOld(number) && !isAbsent(number.now) && !isPortNumber(number.now))
    refuse(number.path, `must be a number from 1 to ${PORT_MAX}, not ${describe(number.now)}`);
  checkOneOf(below(port, 'protocol'), PROTOCOLS, 'optional');
  for (const member of ['name', 'appProtocol']) checkString(below(port, member));
}

function checkOneOf(place: Place, values: readonly string[], presence?: 'optional'): void {
  if (isOld(place) || (presence === 'optional' && isAbsent(place.now))) return;
  if (typeof place.now !== 'string' || !values.includes(place.now))
    refuse(place.path, `must be one of ${values.join(', ')}, not ${describe(place.now)}`);
}

function isPortNumber(value: JsonValue | undefined): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= PORT_MAX;
}
