/** Secrets and ConfigMaps: keys and values. */

import { setOwn, jsonEquals, type JsonObject, objectField, text } from '../../base/json.ts';
import { SECRETS } from '../../kube/object.ts';
import { forbiddenValue, invalidValue, problemErrors, type FieldError } from '../../apiserver/status.ts';
import { defineResource, type ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import { AGE_COLUMN, NAME_COLUMN, textColumn } from '../../apiserver/objects/object-view.ts';
import { dataKeyProblem, subdomainProblem } from '../../kube/names.ts';

const BYTES_MAX = 1024 * 1024;

export function secrets(types: TypeTable): ResourceDefinition {
  return defineResource({
    ...SECRETS,
    singular: 'secret',
    schema: types.get('Secret'),
    checkName: subdomainProblem,
    selectableFields: { type: (object) => text(object, 'type') },
    columns: [
      NAME_COLUMN,
      textColumn('Type', 'The type of the data.', (object) => text(object, 'type')),
      textColumn('Data', 'The number of keys.', (object) => count(object, 'data')),
      AGE_COLUMN,
    ],
    applyDefaults: (object) => {
      moveStringData(object);
      if (text(object, 'type') === '') object['type'] = 'Opaque';
    },
    validate: (next, previous) => [
      ...keyErrors(next, 'data'),
      ...sizeErrors(next, ['data']),
      ...immutableErrors(next, previous, ['data']),
      ...(previous && text(next, 'type') !== text(previous, 'type')
        ? [invalidValue('type', text(next, 'type'), 'field is immutable')]
        : []),
    ],
  });
}

/** Encodes plain values as base64; they take precedence over `data`. */
function moveStringData(object: JsonObject): void {
  const plain = objectField(object, 'stringData');
  const keys = Object.keys(plain);
  if (keys.length > 0) {
    const data: JsonObject = { ...objectField(object, 'data') };
    for (const key of keys) setOwn(data, key, Buffer.from(text(plain, key)).toString('base64'));
    const { type } = object;
    delete object['type'];
    object['data'] = data;
    if (type !== undefined) object['type'] = type;
  }
  delete object['stringData'];
}

export function configMaps(types: TypeTable): ResourceDefinition {
  return defineResource({
    group: '',
    version: 'v1',
    kind: 'ConfigMap',
    plural: 'configmaps',
    singular: 'configmap',
    isNamespaced: true,
    shortNames: ['cm'],
    schema: types.get('ConfigMap'),
    checkName: subdomainProblem,
    columns: [
      NAME_COLUMN,
      textColumn(
        'Data',
        'The number of keys.',
        (object) => count(object, 'data') + count(object, 'binaryData'),
      ),
      AGE_COLUMN,
    ],
    validate: (next, previous) => [
      ...keyErrors(next, 'data'),
      ...keyErrors(next, 'binaryData'),
      ...sharedKeyErrors(next),
      ...sizeErrors(next, ['data', 'binaryData']),
      ...immutableErrors(next, previous, ['data', 'binaryData']),
    ],
  });
}

function count(object: JsonObject, field: string): number {
  return Object.keys(objectField(object, field)).length;
}

function keyErrors(object: JsonObject, field: string): FieldError[] {
  return Object.keys(objectField(object, field)).flatMap((key) =>
    problemErrors(`${field}[${key}]`, key, dataKeyProblem(key)),
  );
}

function sharedKeyErrors(object: JsonObject): FieldError[] {
  const binary = objectField(object, 'binaryData');
  const shared = Object.keys(objectField(object, 'data')).filter((key) => Object.hasOwn(binary, key));
  return shared.map((key) => invalidValue(`data[${key}]`, key, 'duplicate of key present in binaryData'));
}

function sizeErrors(object: JsonObject, fields: readonly string[]): FieldError[] {
  const bytes = fields
    .flatMap((field) => Object.values(objectField(object, field)))
    .reduce<number>((sum, value) => sum + (typeof value === 'string' ? Buffer.byteLength(value) : 0), 0);
  if (bytes <= BYTES_MAX) return [];
  const message = `Too long: may not be more than ${BYTES_MAX} bytes`;
  return [{ reason: 'FieldValueTooLong', field: fields.length > 1 ? '[]' : 'data', message }];
}

function immutableErrors(
  next: JsonObject,
  previous: JsonObject | undefined,
  fields: readonly string[],
): FieldError[] {
  if (previous?.['immutable'] !== true) return [];
  const detail = 'field is immutable when `immutable` is set';
  const changed = fields.filter((field) => !jsonEquals(next[field], previous[field]));
  const errors = changed.map((field) => forbiddenValue(field, detail));
  return next['immutable'] === true ? errors : [forbiddenValue('immutable', detail), ...errors];
}
