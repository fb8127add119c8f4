/**
 * Is a patched object still an Endpoints that an API server takes? The rules are kube-apiserver 1.36's (types of `v1.Endpoints`,
 * `ValidateEndpoints`, `ValidateObjectMeta`). Only what the patches brought in is refused: a value that the object had before, right or
 * wrong, is the tenant's and the API server's affair.
 */

import { endpointIpProblem } from './endpoint-ip.ts';
import {
  annotationKeyProblem,
  labelValueProblem,
  dnsLabelProblem,
  dnsSubdomainProblem,
  qualifiedNameProblem,
} from './name-syntax.ts';
import type { ResultProblem } from './run.ts';
import { isJsonObject, jsonEquals, ownValue, type JsonObject, type JsonValue } from '../lib/json.ts';
import type { ConcretePath } from '../translate/types.ts';

/** `core/v1` and `apimachinery`: the sum over all keys and values. */
const ANNOTATION_BYTES_MAX = 256 * 1024;
const PROTOCOLS: readonly JsonValue[] = ['TCP', 'UDP', 'SCTP'];

/** The first thing that is wrong with `after` and was not so in `before`. */
export function validateEndpoints(before: JsonObject, after: JsonObject): ResultProblem | undefined {
  try {
    checkIdentity(before, after);
    checkMetadata(rootPlace('metadata', before, after));
    checkSubsets(rootPlace('subsets', before, after));
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return { path: error.path, message: error.message };
    throw error;
  }
}

class Refusal extends Error {
  readonly path: ConcretePath;

  constructor(path: ConcretePath, message: string) {
    super(message);
    this.path = path;
  }
}

function refuse(path: ConcretePath, message: string | undefined): void {
  if (message !== undefined) throw new Refusal(path, message);
}

/** A member and what stood in its place before. */
interface Place {
  readonly path: ConcretePath;
  readonly now: JsonValue | undefined;
  readonly old: JsonValue | undefined;
  /** It is part of something that was not there before, so nothing in it is old. */
  readonly isNew: boolean;
}

function rootPlace(path: string, before: JsonObject, after: JsonObject): Place {
  return { path: [path], now: ownValue(after, path), old: ownValue(before, path), isNew: false };
}

function member(object: JsonValue | undefined, key: string): JsonValue | undefined {
  return isJsonObject(object) ? ownValue(object, key) : undefined;
}

function below(place: Place, key: string): Place {
  const { path, now, old, isNew } = place;
  return {
    path: [...path, key],
    now: member(now, key),
    old: member(old, key),
    isNew: isNew || old === undefined,
  };
}

/** What a patch did not change is not its fault. */
function isOld({ now, old, isNew }: Place): boolean {
  return !isNew && (now === old || jsonEquals(now, old));
}

/** Go reads null as the empty value of the field. */
function isAbsent(value: JsonValue | undefined): value is null | undefined {
  return value === undefined || value === null;
}

function checkIdentity(before: JsonObject, after: JsonObject): void {
  for (const key of ['apiVersion', 'kind']) {
    if (ownValue(before, key) !== ownValue(after, key)) refuse([key], `a patch may not change ${key}`);
  }
  for (const key of ['name', 'namespace']) {
    if (member(member(before, 'metadata'), key) !== member(member(after, 'metadata'), key)) {
      refuse(['metadata', key], `a patch may not change metadata.${key}`);
    }
  }
}

function checkMetadata(place: Place): void {
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
    // The key was there before, so whatever is wrong with it was, too.
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
    // It had no name before either, and needed one as much as now.
    const was = oldCount > 1 && Array.isArray(ports.old) ? member(ports.old[at], 'name') : 'named';
    if (!isAbsent(was) && was !== '')
      refuse([...ports.path, at, 'name'], 'is required where there are several ports');
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

/** `optional`: null and absent are fine, an empty string is a value; `may be empty`: an empty string is absent. */
function checkField(
  place: Place,
  problem: (text: string) => string | undefined,
  presence: 'required' | 'optional' | 'may be empty',
): void {
  const { now, path } = place;
  if (isOld(place)) return;
  if (isAbsent(now)) {
    refuse(path, presence === 'required' ? 'is required' : undefined);
    return;
  }
  checkString(place);
  if (typeof now === 'string' && (now !== '' || presence !== 'may be empty')) refuse(path, problem(now));
}

/** Every element that was not in the list before; null is an empty list. */
function checkList(place: Place, checkElement: (element: Place) => void): void {
  const { now, old, path } = place;
  if (isAbsent(now) || (now === old && !place.isNew)) return;
  if (!Array.isArray(now)) {
    refuse(path, isOld(place) ? undefined : `must be a list, not ${describe(now)}`);
    return;
  }
  const before = Array.isArray(old) ? old : [];
  // What is the same object was not touched; a list of another length has lost or moved elements, so their places say nothing.
  const untouched: ReadonlySet<JsonValue> = new Set(before);
  const isAligned = !place.isNew && before.length === now.length;
  for (const [at, element] of now.entries()) {
    if (untouched.has(element) && isJsonObject(element)) continue;
    const was = isAligned ? before[at] : undefined;
    try {
      checkElement({ path: [...path, at], now: element, old: was, isNew: was === undefined });
    } catch (error) {
      // An expression on the whole list gives equal elements, not the same ones.
      if (!before.some((one) => jsonEquals(one, element))) throw error;
    }
  }
}

function checkObject(place: Place): void {
  if (!isJsonObject(place.now) && !isOld(place))
    refuse(place.path, `must be an object, not ${describe(place.now)}`);
}

function checkString(place: Place): void {
  const { now, path } = place;
  if (isAbsent(now) || typeof now === 'string' || isOld(place)) return;
  refuse(path, `must be a string, not ${describe(now)}`);
}

function describe(value: JsonValue | undefined): string {
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (isJsonObject(value)) return 'an object';
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
