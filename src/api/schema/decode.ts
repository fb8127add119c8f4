/**
 * Raw JSON → the object as the server keeps it: fields in the order of the schema, empty optional ones left out, unknown ones dropped and
 * named. Equal objects decode to equal JSON, so that "nothing changed" is a comparison.
 */

import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../lib/json.ts';
import { badRequest } from '../status.ts';
import { canonicalTime, checkQuantity, illegalBase64At } from './scalars.ts';
import type { Field, ListSchema, MapSchema, ObjectSchema, ScalarSchema, Schema } from './schema.ts';

/** A value of the wrong type; the message is the one of a real server. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
}

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

interface Place {
  /** With indexes, for unknown fields. */
  readonly path: string;
  /** Without indexes, for type errors. */
  readonly goPath: string;
  /** The struct that holds the field. */
  readonly owner: string;
}

const ROOT: Place = { path: '', goPath: '', owner: '' };
const TYPE_FIELDS = ['apiVersion', 'kind'];

/** Deeper JSON than any kind has; a guard against exhausting the stack. */
const DEPTH_MAX = 200;

class Decoder {
  readonly unknownFields: string[] = [];
  #depth = 0;

  object(schema: ObjectSchema, input: JsonObject, at: Place): JsonObject {
    for (const key of Object.keys(input)) {
      if (schema.fields.has(key) || (at === ROOT && TYPE_FIELDS.includes(key))) continue;
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
          return scalar(schema, input, at);
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

function zeroOf(schema: ScalarSchema): JsonValue {
  switch (schema.scalar) {
    case 'string':
      return '';
    case 'bool':
      return false;
    case 'int32':
    case 'int64':
    case 'float64':
    case 'intOrString':
      return 0;
    case 'quantity':
      return '0';
    case 'bytes':
      return '';
    case 'time':
    case 'microtime':
    case 'any':
      return null;
  }
}

function scalar(schema: ScalarSchema, input: JsonValue, at: Place): JsonValue {
  switch (schema.scalar) {
    case 'any':
      return input;
    case 'string':
      if (typeof input !== 'string') throw wrongType(input, at, schema.goType);
      return input;
    case 'bool':
      if (typeof input !== 'boolean') throw wrongType(input, at, schema.goType);
      return input;
    case 'int32':
    case 'int64':
      return integer(schema, input, at);
    case 'float64':
      if (typeof input !== 'number') throw wrongType(input, at, schema.goType);
      return input;
    case 'intOrString':
      if (typeof input === 'number')
        return integer({ ...schema, scalar: 'int32', goType: 'int32' }, input, at);
      if (typeof input !== 'string') throw wrongType(input, at, 'intstr.IntOrString');
      return input;
    case 'bytes':
      return base64(input, at);
    case 'time':
    case 'microtime':
      return time(schema.scalar, input, at);
    case 'quantity':
      return quantity(input, at);
  }
}

function integer(schema: ScalarSchema, input: JsonValue, at: Place): number {
  const limit = schema.scalar === 'int32' ? 2 ** 31 : 2 ** 63;
  if (typeof input !== 'number') throw wrongType(input, at, schema.goType);
  if (!Number.isInteger(input) || input >= limit || input < -limit) {
    throw wrongType(input, at, schema.goType, `number ${input}`);
  }
  return input;
}

function base64(input: JsonValue, at: Place): string {
  if (typeof input !== 'string') throw wrongType(input, at, '[]uint8');
  const text = input.replaceAll(/[\r\n]/g, '');
  const wrong = illegalBase64At(text);
  if (wrong !== undefined) throw new DecodeError(`illegal base64 data at input byte ${wrong}`);
  return text;
}

function time(precision: 'time' | 'microtime', input: JsonValue, at: Place): string {
  if (typeof input !== 'string')
    throw wrongType(input, at, precision === 'time' ? 'v1.Time' : 'v1.MicroTime');
  const text = canonicalTime(input, precision);
  if (text !== undefined) return text;
  const layout = precision === 'time' ? '2006-01-02T15:04:05Z07:00' : '2006-01-02T15:04:05.000000Z07:00';
  const isFraction = canonicalTime(input, 'time') !== undefined;
  const rest = isFraction
    ? `${JSON.stringify(input.slice(19))} as ".000000"`
    : `${JSON.stringify(input)} as "2006"`;
  throw new DecodeError(`parsing time ${JSON.stringify(input)} as "${layout}": cannot parse ${rest}`);
}

function quantity(input: JsonValue, at: Place): string {
  const text = typeof input === 'number' ? String(input) : input;
  if (typeof text !== 'string') throw wrongType(input, at, 'resource.Quantity');
  if (!checkQuantity(text)) {
    throw new DecodeError(
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
  }
  return text;
}

function wrongType(input: JsonValue, at: Place, goType: string, what = jsonTypeName(input)): DecodeError {
  return new DecodeError(
    `json: cannot unmarshal ${what} into Go struct field ${at.owner}.${at.goPath} of type ${goType}`,
  );
}

function jsonTypeName(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  return typeof value;
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
