/**
 * Decodes raw JSON into the canonical form of an object: fields in the order of the schema, empty optional fields omitted, unknown fields
 * dropped and reported. Equal objects decode to equal JSON, so that a comparison tells whether something changed.
 */

import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../base/json.ts';
import { DEPTH_MAX, FIELD_PROBLEMS_MAX, OBJECT_FIELDS_MAX } from '../limits.ts';
import { badRequest, tooManyFields } from '../status.ts';
import { DecodeError, decodeScalar, pathText, wrongType, zeroOf, type Place } from './decode-scalar.ts';
import {
  isLeaf,
  type Field,
  type ListSchema,
  type MapSchema,
  type ObjectSchema,
  type Schema,
} from './object-schema.ts';

export interface Decoded {
  readonly value: JsonObject;
  /** Paths of fields that the schema does not have, `spec.ports[0].bogus`. */
  readonly unknownFields: readonly string[];
}

/** Throws {@link DecodeError}. `apiVersion` and `kind` are dropped silently: the caller has checked them. */
export function decodeObject(schema: ObjectSchema, input: JsonObject): Decoded {
  const decoder = new Decoder();
  const value = decoder.object(schema, input, ROOT);
  return { value, unknownFields: decoder.unknownFields };
}

/** An empty object of a kind: only the fields that are always written. */
export function emptyObject(schema: ObjectSchema): JsonObject {
  return new Decoder().object(schema, {}, ROOT);
}

const ROOT: Place = { parent: undefined, step: '', struct: '' };
const TYPE_FIELDS = ['apiVersion', 'kind'];

class Decoder {
  readonly unknownFields: string[] = [];
  #depth = 0;
  /** See `OBJECT_FIELDS_MAX`. */
  #fields = 0;
  /** Inside of a value that field managers own as a whole. */
  #isInLeaf = false;

  object(schema: ObjectSchema, input: JsonObject, at: Place): JsonObject {
    for (const key of Object.keys(input)) {
      if (schema.fields.has(key) || (at === ROOT && TYPE_FIELDS.includes(key))) continue;
      if (this.unknownFields.length >= FIELD_PROBLEMS_MAX) break;
      this.unknownFields.push(pathText({ parent: at, step: key, struct: '' }));
    }
    const output: JsonObject = {};
    for (const field of schema.fields.values()) {
      const sent = ownValue(input, field.name);
      if (sent === undefined && !field.isAlwaysWritten) continue;
      const value = this.#field(field, sent, { parent: at, step: field.name, struct: schema.name });
      if (value !== undefined) output[field.name] = value;
    }
    return output;
  }

  #field(field: Field, input: JsonValue | undefined, at: Place): JsonValue | undefined {
    const { schema } = field;
    if (input === undefined || input === null) {
      if (!field.isAlwaysWritten) return undefined;
      return field.isPointer ? null : this.#zero(schema, at);
    }
    const value = this.#value(schema, input, at);
    if (field.isPointer || field.isAlwaysWritten || !isEmpty(value)) return value;
    return undefined;
  }

  #zero(schema: Schema, at: Place): JsonValue {
    if (schema.type === 'object') return this.object(schema, {}, at);
    if (schema.type !== 'scalar') return null;
    return zeroOf(schema);
  }

  #value(schema: Schema, input: JsonValue, at: Place): JsonValue {
    if (++this.#depth > DEPTH_MAX) throw new DecodeError('json: exceeded max depth');
    const wasInLeaf = this.#isInLeaf;
    if (!wasInLeaf && ++this.#fields > OBJECT_FIELDS_MAX) throw tooManyFields(OBJECT_FIELDS_MAX);
    this.#isInLeaf ||= isLeaf(schema);
    try {
      switch (schema.type) {
        case 'scalar':
          return decodeScalar(schema, input, at);
        case 'list':
          return this.#list(schema, input, at);
        case 'map':
          return this.#map(schema, input, at);
        case 'object':
          if (!isJsonObject(input)) throw wrongType(input, at, goTypeOf(schema));
          return this.object(schema, input, at);
      }
    } finally {
      this.#isInLeaf = wasInLeaf;
      this.#depth--;
    }
  }

  #list(schema: ListSchema, input: JsonValue, at: Place): JsonValue {
    if (!Array.isArray(input)) throw wrongType(input, at, goTypeOf(schema));
    return input.map((item, index) => {
      const place = { parent: at, step: index, struct: '' };
      return item === null ? this.#zero(schema.items, place) : this.#value(schema.items, item, place);
    });
  }

  #map(schema: MapSchema, input: JsonValue, at: Place): JsonValue {
    if (!isJsonObject(input)) throw wrongType(input, at, goTypeOf(schema));
    const output: JsonObject = {};
    for (const key of Object.keys(input).sort()) {
      const item = input[key] ?? null;
      const place = { parent: at, step: key, struct: '' };
      setOwn(
        output,
        key,
        item === null ? this.#zero(schema.values, place) : this.#value(schema.values, item, place),
      );
    }
    return output;
  }
}

function isEmpty(value: JsonValue): boolean {
  if (value === '' || value === 0 || value === false || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  if (typeof value !== 'object') return false;
  for (const _key in value) return false;
  return true;
}

function goTypeOf(schema: Schema): string {
  switch (schema.type) {
    case 'scalar':
      return schema.scalar === 'bytes' ? '[]uint8' : schema.goType;
    case 'list':
      return `[]${goTypeOf(schema.items)}`;
    case 'map':
      return `map[string]${goTypeOf(schema.values)}`;
    case 'object':
      return `v1.${schema.name.replace(/^.*\./, '')}`;
  }
}

/** The 400 of a body that does not decode as `kind`. */
export function cannotBeHandled(bodyKind: string, version: string, kind: string, why: string): Error {
  return badRequest(
    `${bodyKind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${why}`,
  );
}
