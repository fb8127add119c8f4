/** The write-only fields of a key, and their removal from managedFields. */

import { isJsonObject, type JsonObject } from '../../../base/json.ts';
import {
  FieldSetBuilder,
  fromFieldsV1,
  toFieldsV1,
  type FieldSet,
} from '../../../apiserver/fields/field-set.ts';
import { metadataOf, objectField, objectList } from '../../../apiserver/metadata.ts';

/** A secret in `spec`, sealed in the store. */
export interface SealedField {
  /** The object in `spec` that contains it, such as `identity`. The secret is removed together with it. */
  readonly owner: string;
  readonly field: string;
}

export const SEALED_FIELDS: readonly SealedField[] = [
  { owner: 'identity', field: 'connectorData' },
  { owner: 'oidcLogin', field: 'idToken' },
  { owner: 'oidcLogin', field: 'accessToken' },
  { owner: 'oidcLogin', field: 'refreshToken' },
];

/** Unique among the fields of a key. */
export function sealedName({ owner, field }: SealedField): string {
  return `${owner}.${field}`;
}

/** The object in `spec` that contains the field, if any. */
export function holderOf(spec: JsonObject, { owner }: SealedField): JsonObject | undefined {
  const holder = spec[owner];
  return isJsonObject(holder) ? holder : undefined;
}

/** The object without its sealed fields; unchanged parts are shared. */
export function withoutSealed(object: JsonObject): JsonObject {
  const spec: JsonObject = { ...objectField(object, 'spec') };
  for (const place of SEALED_FIELDS) {
    const holder = holderOf(spec, place);
    if (!holder || !Object.hasOwn(holder, place.field)) continue;
    const { [place.field]: _secret, ...rest } = holder;
    spec[place.owner] = rest;
  }
  return { ...object, spec };
}

/**
 * Removes the write-only fields from `metadata.managedFields`: conflicts about fields that are never returned could not be explained, and
 * `f:key` would claim on every key that its manager had set it.
 */
export class FieldOwnershipStripper {
  readonly #fields: FieldSet;

  constructor() {
    const fields = new FieldSetBuilder();
    fields.insert(['f:spec', 'f:key']);
    for (const { owner, field } of SEALED_FIELDS) fields.insert(['f:spec', `f:${owner}`, `f:${field}`]);
    this.#fields = fields.build();
  }

  /** Changes `object.metadata`. */
  strip(object: JsonObject): void {
    const metadata = metadataOf(object);
    if (!Array.isArray(metadata['managedFields'])) return;
    const entries = objectList(metadata, 'managedFields').flatMap((entry) => {
      const fields = fromFieldsV1(entry['fieldsV1']);
      if (!fields || fields.intersection(this.#fields).isEmpty) return [entry];
      const left = fields.difference(this.#fields);
      return left.isEmpty ? [] : [{ ...entry, fieldsV1: toFieldsV1(left) }];
    });
    metadata['managedFields'] = entries;
  }
}
