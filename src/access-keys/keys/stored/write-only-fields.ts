/** Fields of a key that clients write and never read: where they are, and how nobody comes to own them. */

import { isJsonObject, type JsonObject } from '../../../base/json.ts';
import {
  FieldSetBuilder,
  fromFieldsV1,
  toFieldsV1,
  type FieldSet,
} from '../../../apiserver/fields/field-set.ts';
import { metadataOf, objectField, objectList } from '../../../apiserver/validation/metadata.ts';

/** A secret in `spec`, sealed in the store. */
export interface SealedField {
  /** `identity`: the object in `spec` that holds it. When that goes, the secret goes with it. */
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

/** The object in `spec` that holds the field, if there is one. */
export function holderOf(spec: JsonObject, { owner }: SealedField): JsonObject | undefined {
  const holder = spec[owner];
  return isJsonObject(holder) ? holder : undefined;
}

/** The object without any sealed field; shares what it does not change. */
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
 * Takes the write-only fields out of `metadata.managedFields`. Who owned a field that nobody sees would be told of conflicts that nobody
 * can explain, and `f:key` would say on every key that its owner had set it.
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
  disown(object: JsonObject): void {
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
