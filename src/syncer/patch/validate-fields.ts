/** Checks of single fields: places in a patched object, each with its value before the patches, so that a check covers only changes and reports a
 * path; names and IP addresses as kube-apiserver 1.36 validates them. */

import { isJsonObject, jsonEquals, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import { canonicalProblem, isAddress, notationProblem, rangeProblem } from '../../kube/addresses.ts';
import {
  isDnsLabel,
  isDnsSubdomain,
  isQualifiedName,
  LABEL_LENGTH_MAX,
  NAME_LENGTH_MAX,
} from '../../kube/names.ts';
import type { ConcretePath } from '../translate/types.ts';

/** A path as a linked list, so that valid places allocate no array. */
interface Trail {
  readonly above: Trail | undefined;
  readonly step: string | number;
}

/** Thrown at the first problem, which ends the validation. */
export class Refusal extends Error {
  readonly path: ConcretePath;

  constructor(trail: Trail, message: string) {
    super(message);
    const path: (string | number)[] = [];
    for (let at: Trail | undefined = trail; at !== undefined; at = at.above) path.unshift(at.step);
    this.path = path;
  }
}

export function refuse(trail: Trail, message: string | undefined): void {
  if (message !== undefined) throw new Refusal(trail, message);
}

export interface Place {
  readonly path: Trail;
  readonly now: JsonValue | undefined;
  readonly old: JsonValue | undefined;
  readonly isNew: boolean;
}

export function rootPlace(key: string, before: JsonObject, after: JsonObject): Place {
  return {
    path: { above: undefined, step: key },
    now: ownValue(after, key),
    old: ownValue(before, key),
    isNew: false,
  };
}

export function member(object: JsonValue | undefined, key: string): JsonValue | undefined {
  return isJsonObject(object) ? ownValue(object, key) : undefined;
}

export function below(place: Place, key: string): Place {
  const { path, now, old, isNew } = place;
  return {
    path: { above: path, step: key },
    now: member(now, key),
    old: member(old, key),
    isNew: isNew || old === undefined,
  };
}

export function isOld({ now, old, isNew }: Place): boolean {
  return !isNew && (now === old || jsonEquals(now, old));
}

/** Go reads null as the empty value of the field. */
export function isAbsent(value: JsonValue | undefined): value is null | undefined {
  return value === undefined || value === null;
}

/** `optional`: null and absent are fine, an empty string is a value; `may be empty`: an empty string is absent. */
export function checkField(
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

/** Checks every element that was not in the list before; null is an empty list. */
export function checkList(place: Place, checkElement: (element: Place) => void): void {
  const { now, old, path } = place;
  if (isAbsent(now) || (now === old && !place.isNew)) return;
  if (!Array.isArray(now)) {
    refuse(path, isOld(place) ? undefined : `must be a list, not ${describe(now)}`);
    return;
  }
  const before = Array.isArray(old) ? old : [];
  // The same element was not changed. If the length differs, elements have moved, so indices do not correspond.
  const untouched: ReadonlySet<JsonValue> = new Set(before);
  const isAligned = !place.isNew && before.length === now.length;
  for (const [at, element] of now.entries()) {
    if (untouched.has(element) && isJsonObject(element)) continue;
    const was = isAligned ? before[at] : undefined;
    try {
      checkElement({ path: { above: path, step: at }, now: element, old: was, isNew: was === undefined });
    } catch (error) {
      // An expression on the whole list returns elements that are equal but not identical.
      if (!before.some((one) => jsonEquals(one, element))) throw error;
    }
  }
}

export function checkObject(place: Place): void {
  if (!isJsonObject(place.now) && !isOld(place))
    refuse(place.path, `must be an object, not ${describe(place.now)}`);
}

export function checkString(place: Place): void {
  const { now, path } = place;
  if (isAbsent(now) || typeof now === 'string' || isOld(place)) return;
  refuse(path, `must be a string, not ${describe(now)}`);
}

export function describe(value: JsonValue | undefined): string {
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (isJsonObject(value)) return 'an object';
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

export function dnsLabelProblem(text: string): string | undefined {
  if (text.length > LABEL_LENGTH_MAX)
    return `must have at most ${LABEL_LENGTH_MAX} characters, ${show(text)} has ${text.length}`;
  if (isDnsLabel(text)) return undefined;
  return `must be a DNS label (a-z, 0-9 and "-", not at its edges), not ${show(text)}`;
}

export function domainNameProblem(text: string): string | undefined {
  const name = text.replace(/\.$/u, '');
  if (!name.includes('.')) return `must be a full DNS name with a dot, not ${show(text)}`;
  const wrong = name.split('.').find((label) => dnsLabelProblem(label) !== undefined);
  return wrong === undefined ? dnsSubdomainProblem(name) : dnsLabelProblem(wrong);
}

export function dnsSubdomainProblem(text: string): string | undefined {
  if (text.length > NAME_LENGTH_MAX)
    return `must have at most ${NAME_LENGTH_MAX} characters, ${show(text)} has ${text.length}`;
  if (isDnsSubdomain(text)) return undefined;
  return `must be a DNS name (a-z, 0-9, "-" and "."), not ${show(text)}`;
}

/** `name` or `prefix/name`: label keys, finalizers, application protocols. */
export function qualifiedNameProblem(text: string): string | undefined {
  const parts = text.split('/');
  const name = parts.at(-1) ?? '';
  if (parts.length > 2) return `must be NAME or PREFIX/NAME, not ${show(text)}`;
  if (parts.length === 2) {
    const prefix = parts[0] ?? '';
    if (!isDnsSubdomain(prefix)) {
      return `must have a DNS name before the "/", not ${show(text)}`;
    }
  }
  if (name.length > LABEL_LENGTH_MAX)
    return `must have at most ${LABEL_LENGTH_MAX} characters in its name, ${show(text)} has ${name.length}`;
  if (isQualifiedName(name)) return undefined;
  return `must be made of letters, digits, "-", "_" and ".", with a letter or digit at both edges, not ${show(text)}`;
}

/** Same syntax as a label key, but case-insensitive. */
export function annotationKeyProblem(key: string): string | undefined {
  return qualifiedNameProblem(key.toLowerCase());
}

export function labelValueProblem(value: string): string | undefined {
  if (value === '') return undefined;
  if (value.length > LABEL_LENGTH_MAX)
    return `must have at most ${LABEL_LENGTH_MAX} characters, ${show(value)} has ${value.length}`;
  if (isQualifiedName(value)) return undefined;
  return `must be made of letters, digits, "-", "_" and ".", with a letter or digit at both edges, not ${show(value)}`;
}

function show(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

export function endpointIpProblem(text: string): string | undefined {
  if (!isAddress(text)) return `must be an IP address, not ${show(text)}`;
  const problem = notationProblem(text) ?? rangeProblem(text);
  return problem && `${problem}: ${show(text)}`;
}

/** Of an EndpointSlice. */
export function sliceIpProblem(text: string): string | undefined {
  const problem = endpointIpProblem(text);
  if (problem !== undefined) return problem;
  const notCanonical = canonicalProblem(text);
  return notCanonical && `${notCanonical}, not ${show(text)}`;
}
