/**
 * Raw JSON → the object as the server keeps it: fields in the order of the schema, empty optional ones left out, unknown ones dropped and
 * named. Equal objects decode to equal JSON, so that "nothing changed" is a comparison.
 */

import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../lib/json.ts';
import { DEPTH_MAX, FIELD_PROBLEMS_MAX } from '../limits.ts';
import { badRequest } from '../status.ts';
import { DecodeError, decodeScalar, wrongType, zeroOf, type Place } from './decode-scalar.ts';
import type { Field, ListSchema, MapSchema, ObjectSchema, Schema } from './schema.ts';

export interface Decoded {
  readonly value: JsonObject;
  /** Paths of fields that the schema does not have, `spec.ports[0].bogus`. */
  readonly unknownFields: readonly string[];
}

/** Throws {@link DecodeError}. `apiVersion` and `kind` are the caller's business: they are dropped silently here. */
export function decodeObject(schema: ObjectSchema, input: JsonObject): Decoded {
  const decoder = new Decoder();
  const value = decoder.object(schema, input, ROOT);
  return { value, unknownFields: decoder.unknownFields };
}

/** The object of a kind with nothing set: only what is always written. */
export function emptyObject(schema: ObjectSchema): JsonObject {
  return new Decoder().object(schema, {}, ROOT);
}

const ROOT: Place = { path: '', goPath: '', owner: '' };
const TYPE_FIELDS = ['apiVersion', 'kind'];

class Decoder {
  readonly unknownFields: string[] = [];
  #depth = 0;

  object(schema: ObjectSchema, input: JsonObject, at: Place): JsonObject {
    for (const key of Object.keys(input)) {
      if (schema.fields.has(key) || (at === ROOT && TYPE_FIELDS.includes(key))) continue;
      if (this.unknownFields.length >= FIELD_PROBLEMS_MAX) break;
      this.unknownFields.push(at.path === '' ? key : `${at.path}.${key}`);
    }
    const output: JsonObject = {};
    for (const field of schema.fields.values()) {
      const value = this.#field(field, ownValue(input, field.name), child(at, schema, field.name));
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
      this.#depth--;
    }
  }

  #list(schema: ListSchema, input: JsonValue, at: Place): JsonValue {
    if (!Array.isArray(input)) throw wrongType(input, at, goTypeOf(schema));
    return input.map((item, index) => {
      const place = { ...at, path: `${at.path}[${index}]` };
      return item === null ? this.#zero(schema.items, place) : this.#value(schema.items, item, place);
    });
  }

  #map(schema: MapSchema, input: JsonValue, at: Place): JsonValue {
    if (!isJsonObject(input)) throw wrongType(input, at, goTypeOf(schema));
    const output: JsonObject = {};
    for (const key of Object.keys(input).sort()) {
      const item = input[key] ?? null;
      const place = { ...at, path: `${at.path}.${key}` };
      setOwn(
        output,
        key,
        item === null ? this.#zero(schema.values, place) : this.#value(schema.values, item, place),
      );
    }
    return output;
  }
}

function child(at: Place, schema: ObjectSchema, name: string): Place {
  return {
    path: at.path === '' ? name : `${at.path}.${name}`,
    goPath: at.goPath === '' ? name : `${at.goPath}.${name}`,
    owner: schema.name.replace(/^.*\./, ''),
  };
}

function isEmpty(value: JsonValue): boolean {
  if (value === '' || value === 0 || value === false || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === 'object' && Object.keys(value).length === 0;
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
