/** Validates object metadata: the rules of kube-apiserver 1.37 (`ValidateObjectMeta`), in its words. */

import {
  jsonEquals,
  listField,
  objectField,
  objectList,
  text,
  type JsonArray,
  type JsonObject,
  type JsonValue,
} from '../base/json.ts';
import {
  forbiddenValue,
  invalidValue,
  itemErrors,
  problemErrors,
  requiredValue,
  tooLong,
  type FieldError,
} from './status.ts';
import { labelKeyProblem, labelValueProblem, pathSegmentProblem, type NameCheck } from '../kube/names.ts';

const ANNOTATIONS_BYTES_MAX = 256 * 1024;

// The finalizers by which a deletion waits for the garbage collector. An object has at most one of them.

/** Dependents stay, without their reference to the object. */
export const ORPHAN = 'orphan';
/** Dependents are deleted first. */
export const FOREGROUND = 'foregroundDeletion';

export interface MetadataRules {
  readonly checkName: NameCheck;
  readonly isNamespaced: boolean;
  readonly needsQualifiedFinalizers: boolean;
}

export function validateMetadata(metadata: JsonObject, rules: MetadataRules): FieldError[] {
  return [
    ...nameErrors(metadata, rules),
    ...labelErrors(objectField(metadata, 'labels')),
    ...annotationErrors(objectField(metadata, 'annotations')),
    ...ownerErrors(objectList(metadata, 'ownerReferences')),
    ...finalizerErrors(listField(metadata, 'finalizers')),
    ...(rules.needsQualifiedFinalizers ? unqualifiedErrors(listField(metadata, 'finalizers')) : []),
  ];
}

function nameErrors(metadata: JsonObject, rules: MetadataRules): FieldError[] {
  const [name, prefix] = [text(metadata, 'name'), text(metadata, 'generateName')];
  // As in a kube-apiserver, a letter replaces a dash at the end together with the character before it, whatever that is.
  const wrongPrefix = prefix === '' ? undefined : rules.checkName(prefix.replace(/.-$/su, 'a'));
  const isUnplaced = rules.isNamespaced && text(metadata, 'namespace') === '';
  return [
    ...problemErrors('metadata.generateName', prefix, wrongPrefix),
    ...(name === ''
      ? [requiredValue('metadata.name', 'name or generateName is required')]
      : problemErrors('metadata.name', name, rules.checkName(name) ?? pathSegmentProblem(name))),
    ...(isUnplaced ? [requiredValue('metadata.namespace')] : []),
  ];
}

/** Validates labels anywhere in an object, such as in a selector. */
function labelErrors(labels: JsonObject, field = 'metadata.labels'): FieldError[] {
  return Object.keys(labels).flatMap((key) => {
    const value = text(labels, key);
    return [
      ...problemErrors(field, key, labelKeyProblem(key)),
      ...problemErrors(field, value, labelValueProblem(value)),
    ].map((error) => ({ ...error, key }));
  });
}

function annotationErrors(annotations: JsonObject): FieldError[] {
  const field = 'metadata.annotations';
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const key of Object.keys(annotations)) {
    // Annotation keys may have upper-case letters in the prefix.
    for (const error of problemErrors(field, key, labelKeyProblem(key.toLowerCase())))
      errors.push({ ...error, key });
    bytes += Buffer.byteLength(key) + Buffer.byteLength(text(annotations, key));
  }
  if (bytes > ANNOTATIONS_BYTES_MAX) errors.push(tooLong(field, ANNOTATIONS_BYTES_MAX));
  return errors;
}

function ownerErrors(owners: readonly JsonObject[]): FieldError[] {
  const field = 'metadata.ownerReferences';
  const errors = itemErrors(owners, field, ownerReferenceErrors);
  const controllers = owners.filter((owner) => owner['controller'] === true);
  if (controllers.length > 1) {
    const names = controllers.map((owner) => `${text(owner, 'kind')}/${text(owner, 'name')}`).join(' and ');
    const detail = `Only one reference can have Controller set to true. Found "true" in references for ${names}`;
    errors.push(invalidValue(field, owners, detail));
  }
  return errors;
}

function ownerReferenceErrors(owner: JsonObject, path: string): FieldError[] {
  const apiVersion = text(owner, 'apiVersion');
  const missing = ['apiVersion', 'kind', 'name', 'uid'].filter((part) => text(owner, part) === '');
  const errors = missing.map((part) => requiredValue(`${path}.${part}`, 'must not be empty'));
  if (apiVersion !== '' && !GROUP_VERSION.test(apiVersion))
    errors.push(invalidValue(`${path}.apiVersion`, apiVersion, 'must be <group>/<version> or <version>'));
  if (isEvent(owner))
    errors.push(invalidValue(path, owner, '/v1, Kind=Event is disallowed from being an owner'));
  return errors;
}

const GROUP_VERSION = /^([^/]*\/)?[^/]+$/u;

/** Events are too short-lived to own objects. */
function isEvent(owner: JsonObject): boolean {
  return text(owner, 'kind') === 'Event' && text(owner, 'apiVersion') === 'v1';
}

function finalizerErrors(finalizers: JsonArray): FieldError[] {
  const field = 'metadata.finalizers';
  const errors = finalizers.flatMap((finalizer) =>
    problemErrors(field, finalizer, labelKeyProblem(typeof finalizer === 'string' ? finalizer : '')),
  );
  if (finalizers.includes(ORPHAN) && finalizers.includes(FOREGROUND)) {
    errors.push({
      ...invalidValue(field, '', ''),
      message: `Invalid value: ${goStrings(finalizers)}: finalizer orphan and foregroundDeletion cannot be both set`,
    });
  }
  return errors;
}

const KNOWN_FINALIZERS = [FOREGROUND, 'kubernetes', ORPHAN];

function unqualifiedErrors(finalizers: JsonArray): FieldError[] {
  const detail = 'name is neither a standard finalizer name nor is it fully qualified';
  return finalizers.flatMap((finalizer, index) => {
    if (typeof finalizer !== 'string') return [];
    if (finalizer.includes('/') || KNOWN_FINALIZERS.includes(finalizer)) return [];
    return [invalidValue(`metadata.finalizers[${index}]`, finalizer, detail)];
  });
}

/** Of the finalizers in the spec of a namespace. A kube-apiserver names none of them by its index. */
export function specFinalizerErrors(finalizers: JsonArray): FieldError[] {
  const field = 'spec.finalizers';
  return finalizers.flatMap((finalizer) => {
    const name = typeof finalizer === 'string' ? finalizer : '';
    const problem = labelKeyProblem(name);
    if (problem !== undefined) return [invalidValue(field, name, problem)];
    return unqualifiedErrors([name]).map((error) => ({ ...error, field }));
  });
}

/** Validates immutable metadata. Fields that the server maintains have been restored before. */
export function validateMetadataUpdate(next: JsonObject, previous: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ['name', 'namespace', 'uid', 'creationTimestamp']) {
    if (text(next, field) !== text(previous, field)) {
      errors.push(invalidValue(`metadata.${field}`, text(next, field), 'field is immutable'));
    }
  }
  for (const field of ['deletionTimestamp', 'deletionGracePeriodSeconds']) {
    if (!jsonEquals(next[field], previous[field])) {
      errors.push(invalidValue(`metadata.${field}`, next[field] ?? null, 'field is immutable'));
    }
  }
  if (text(previous, 'deletionTimestamp') !== '') {
    const before = new Set(listField(previous, 'finalizers'));
    const added = listField(next, 'finalizers').filter((finalizer) => !before.has(finalizer));
    if (added.length > 0) {
      const detail = `no new finalizers can be added if the object is being deleted, found new finalizers ${goStrings(added)}`;
      errors.push(forbiddenValue('metadata.finalizers', detail));
    }
  }
  return errors;
}

function goStrings(values: JsonArray): string {
  return `[]string{${values.map((value) => JSON.stringify(value)).join(', ')}}`;
}

/** uids in more than one owner reference; only the first reference of each is stored, with a warning. */
export function duplicateOwners(metadata: JsonObject): string[] {
  const seen = new Set<string>();
  const duplicates = new Set<string>();
  for (const owner of objectList(metadata, 'ownerReferences')) {
    const uid = text(owner, 'uid');
    if (seen.has(uid)) duplicates.add(uid);
    seen.add(uid);
  }
  return [...duplicates];
}

export function withoutDuplicateOwners(metadata: JsonObject): JsonObject {
  if (duplicateOwners(metadata).length === 0) return metadata;
  const firstOfUid = new Map<string, JsonObject>();
  for (const owner of objectList(metadata, 'ownerReferences')) {
    const uid = text(owner, 'uid');
    if (!firstOfUid.has(uid)) firstOfUid.set(uid, owner);
  }
  return { ...metadata, ownerReferences: [...firstOfUid.values()] };
}

export function hasCollectorFinalizer(finalizers: readonly JsonValue[]): boolean {
  return finalizers.some(isOfCollector);
}

export function withoutCollectorFinalizers(finalizers: readonly JsonValue[]): JsonArray {
  return finalizers.filter((name) => !isOfCollector(name));
}

function isOfCollector(name: JsonValue): boolean {
  return name === ORPHAN || name === FOREGROUND;
}
