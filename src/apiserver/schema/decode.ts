/** Decodes JSON values by the schema of a kind, with the error messages of a kube-apiserver. */

import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { FieldPath } from '../../kube/field-rules.ts';
import { DEPTH_MAX, FIELD_PROBLEMS_MAX, OBJECT_FIELDS_MAX } from '../limits.ts';
import { badRequest, entityTooLarge, shortened } from '../status.ts';
import {
  isLeaf,
  type Field,
  type ListSchema,
  type MapSchema,
  type ObjectSchema,
  type Scalar,
  type Schema,
  type ScalarSchema,
} from './object-schema.ts';

export interface Decoded {
  readonly value: JsonObject;
  /** Paths of fields that the schema does not have, `spec.ports[0].bogus`. */
  readonly unknownFields: readonly string[];
}

/** What a kube-apiserver rejects in an object because of the schema alone, all of it. */
export interface Inspected {
  /** Without the wrong values. */
  readonly value: JsonObject;
  /** `fields`: of the object that has the unknown one. */
  readonly unknownFields: readonly { readonly path: FieldPath; readonly fields: readonly string[] }[];
  readonly wrongValues: readonly WrongValue[];
}

export interface WrongValue {
  readonly path: FieldPath;
  readonly value: JsonValue;
  readonly schema: Schema;
  /** In the words of a kube-apiserver. */
  readonly message: string;
}

/** For messages: the text of each number, by its path, that is not the one with which JavaScript writes it. */
type NumberTexts = ReadonlyMap<string, string>;

/** Throws {@link DecodeError}. `apiVersion` and `kind` are dropped silently: the caller has checked them. */
export function decodeObject(schema: ObjectSchema, input: JsonObject, numbers?: NumberTexts): Decoded {
  const decoder = new Decoder(numbers);
  const value = decoder.object(schema, input, ROOT);
  return { value, unknownFields: decoder.unknownFields.map(({ at }) => pathText(at)) };
}

/** Does not end at the first wrong value, as {@link decodeObject} does. */
export function inspectObject(schema: ObjectSchema, input: JsonObject): Inspected {
  const wrongValues: WrongValue[] = [];
  const decoder = new Decoder(undefined, wrongValues);
  const value = decoder.object(schema, input, ROOT);
  const unknownFields = decoder.unknownFields.map(({ at, fields }) => ({ path: pathOf(at), fields }));
  return { value, unknownFields, wrongValues };
}

/** An empty object of a kind: only the fields that are always written. */
export function emptyObject(schema: ObjectSchema): JsonObject {
  return new Decoder().object(schema, {}, ROOT);
}

const ROOT: Place = { parent: undefined, step: '', struct: '' };
const TYPE_FIELDS = ['apiVersion', 'kind'];

class Decoder {
  readonly unknownFields: { readonly at: Place; readonly fields: readonly string[] }[] = [];
  #depth = 0;
  #fields = 0;
  /** Inside of a value that field managers own as a whole. */
  #isInLeaf = false;
  readonly #numbers: NumberTexts;

  /** Absent: the first one is thrown. */
  readonly #wrongValues: WrongValue[] | undefined;

  constructor(numbers: NumberTexts = new Map(), wrongValues?: WrongValue[]) {
    this.#numbers = numbers;
    this.#wrongValues = wrongValues;
  }

  object(schema: ObjectSchema, input: JsonObject, at: Place): JsonObject {
    for (const key of Object.keys(input)) {
      if (schema.fields.has(key) || (at === ROOT && TYPE_FIELDS.includes(key))) continue;
      if (this.unknownFields.length >= FIELD_PROBLEMS_MAX) break;
      const fields = [...schema.fields.keys(), ...(at === ROOT ? TYPE_FIELDS : [])];
      this.unknownFields.push({ at: { parent: at, step: key, struct: '' }, fields });
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
    return schema.type === 'scalar' ? ZERO[schema.scalar] : null;
  }

  #value(schema: Schema, input: JsonValue, at: Place): JsonValue {
    if (++this.#depth > DEPTH_MAX) throw new DecodeError('json: exceeded max depth');
    const wasInLeaf = this.#isInLeaf;
    if (!wasInLeaf && ++this.#fields > OBJECT_FIELDS_MAX && this.#wrongValues === undefined) {
      const what =
        'too many labels, annotations, finalizers, data entries and other individually owned fields';
      throw entityTooLarge(`${what}: limit is ${OBJECT_FIELDS_MAX}`);
    }
    this.#isInLeaf ||= isLeaf(schema);
    try {
      switch (schema.type) {
        case 'scalar':
          return decodeScalar(schema, input, at, this.#numbers);
        case 'list':
          return this.#list(schema, input, at);
        case 'map':
          return this.#map(schema, input, at);
        case 'object':
          if (!isJsonObject(input)) throw wrongType(input, at, goTypeOf(schema));
          return this.object(schema, input, at);
      }
    } catch (error) {
      if (this.#wrongValues === undefined || !(error instanceof DecodeError)) throw error;
      this.#wrongValues.push({ path: pathOf(at), value: input, schema, message: error.message });
      return this.#zero(schema, at);
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

// Decodes the body of a write as the kind that the URL names.

interface BodyKind {
  readonly kind: string;
  readonly version: string;
  readonly schema: ObjectSchema;
}

export interface ParsedBody {
  readonly value: JsonValue;
  /** Messages about fields that the text names twice. */
  readonly duplicates: readonly string[];
  readonly numbers?: NumberTexts | undefined;
}

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

/** Decodes by the kind's schema; `validation` decides whether unknown and duplicate fields are ignored, warned about or rejected. */
export function decodeBody(
  { kind, version, schema }: BodyKind,
  parsed: ParsedBody,
  validation: FieldValidation,
  warn: (text: string) => void,
): JsonObject {
  const body = isJsonObject(parsed.value) ? parsed.value : {};
  try {
    const { value, unknownFields } = decodeObject(schema, body, parsed.numbers);
    if (validation !== 'Ignore') {
      const problems = [
        ...parsed.duplicates,
        ...unknownFields.map((path) => `unknown field ${JSON.stringify(shortened(path))}`),
      ];
      if (validation === 'Strict' && problems.length > 0) {
        throw new DecodeError(`strict decoding error: ${problems.join(', ')}`);
      }
      for (const problem of problems) warn(problem);
    }
    return value;
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw cannotBeHandled(kind, version, kind, error.message);
  }
}

export function cannotBeHandled(bodyKind: string, version: string, kind: string, why: string): Error {
  return badRequest(
    `${bodyKind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${why}`,
  );
}

/** A value has the wrong type; the message is that of a kube-apiserver. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
}

/** The position of a value in the body: a chain to the root, converted to text only for messages. */
interface Place {
  readonly parent: Place | undefined;
  /** A field or key, or the index of a list item. */
  readonly step: string | number;
  /** The struct that holds the field; `''` for a key and an item. */
  readonly struct: string;
}

/** `spec.ports[0].port`; `''` for the root. */
function pathText(at: Place): string {
  if (!at.parent) return '';
  const above = pathText(at.parent);
  if (typeof at.step === 'number') return `${above}[${at.step}]`;
  return above === '' ? at.step : `${above}.${at.step}`;
}

function pathOf(at: Place): (string | number)[] {
  return at.parent ? [...pathOf(at.parent), at.step] : [];
}

/** `ServicePort.spec.ports.port`, as Go names a field: with its struct, without indexes and keys. */
function goFieldText(at: Place): string {
  const fields: string[] = [];
  let struct = '';
  for (let place: Place | undefined = at; place?.parent; place = place.parent) {
    if (place.struct === '') continue;
    if (struct === '') struct = place.struct;
    fields.unshift(String(place.step));
  }
  return `${struct.replace(/^.*\./, '')}.${fields.join('.')}`;
}

const ZERO: Readonly<Record<Scalar, JsonValue>> = {
  string: '',
  bool: false,
  int32: 0,
  int64: 0,
  float64: 0,
  intOrString: 0,
  quantity: '0',
  bytes: '',
  time: null,
  microtime: null,
  any: null,
};

function decodeScalar(schema: ScalarSchema, given: JsonValue, at: Place, numbers: NumberTexts): JsonValue {
  // Values of any type and integers keep the digits of long integers (see `parseJson`).
  const input = typeof given === 'bigint' ? Number(given) : given;
  switch (schema.scalar) {
    case 'any':
      return given;
    case 'string':
    case 'bool':
    case 'float64':
      if (typeof input !== typeof ZERO[schema.scalar]) throw wrongType(input, at, schema.goType);
      return input;
    case 'int32':
    case 'int64':
      return integer(schema, given, at, numbers);
    case 'intOrString':
      if (typeof input === 'number')
        return integer({ ...schema, scalar: 'int32', goType: 'int32' }, given, at, numbers);
      if (typeof input !== 'string') throw wrongType(input, at, 'intstr.IntOrString');
      return input;
    case 'bytes':
      return base64(input, at);
    case 'time':
    case 'microtime':
      return time(schema.scalar, input, at);
    case 'quantity':
      return quantity(typeof given === 'bigint' ? String(given) : given, at);
  }
}

/** A number that has all the digits that were sent: else the object would hold another one. */
function integer(schema: ScalarSchema, input: JsonValue, at: Place, numbers: NumberTexts): JsonValue {
  const limit = schema.scalar === 'int32' ? 2 ** 31 : 2 ** 63;
  const isLong = typeof input === 'bigint';
  if (typeof input !== 'number' && !isLong) throw wrongType(input, at, schema.goType);
  if ((!isLong && !Number.isSafeInteger(input)) || input >= limit || input < -limit) {
    const sent = numbers.get(pathText(at));
    // A patch may have replaced the number of that text.
    const text = sent !== undefined && Number(sent) === Number(input) ? shortened(sent) : String(input);
    throw wrongType(input, at, schema.goType, `number ${text}`);
  }
  return input;
}

function base64(input: JsonValue, at: Place): string {
  // Go reads a list of numbers as bytes, too.
  if (Array.isArray(input) && input.every(isByte)) return Buffer.from(input).toString('base64');
  if (typeof input !== 'string') throw wrongType(input, at, '[]uint8');
  const text = withoutLineBreaks(input);
  const wrong = illegalBase64At(text);
  if (wrong !== undefined) {
    throw new DecodeError(`${pathText(at)}: illegal base64 data at input byte ${wrong}`);
  }
  return text;
}

function isByte(value: JsonValue): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 255;
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
    `json: cannot unmarshal ${what} into Go struct field ${goFieldText(at)} of type ${goType}`,
  );
}

export function jsonTypeName(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  return typeof value;
}

// Scalars of Kubernetes without a JSON type: times, quantities, base64.

const TIME = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** RFC 3339 in UTC with the precision of the field; undefined when `text` is not a time. */
export function canonicalTime(text: string, precision: 'time' | 'microtime'): string | undefined {
  const match = TIME.exec(text);
  if (!match) return undefined;
  const millis = Date.parse(text.replace(/\.\d+/, ''));
  if (Number.isNaN(millis)) return undefined;
  const iso = new Date(millis).toISOString();
  // A sign precedes years of more or fewer than four digits, which RFC 3339 does not have.
  if (!/^\d/.test(iso)) return undefined;
  const seconds = iso.slice(0, 19);
  if (precision === 'time') return `${seconds}Z`;
  // Exactly six digits, as a kube-apiserver requires.
  return match[7]?.length === 7 ? `${seconds}${match[7]}Z` : undefined;
}

const QUANTITY = /^[+-]?(\d+|\d+\.\d*|\.\d+)([eE][+-]?\d+|Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)?$/;

function checkQuantity(text: string): boolean {
  return QUANTITY.test(text);
}

/** Base64 may have line breaks. A loop, because replacing a million of them by a regular expression takes 0.1 s. */
function withoutLineBreaks(text: string): string {
  if (!/[\r\n]/.test(text)) return text;
  const bytes = Buffer.allocUnsafe(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    // A character of more than one byte must stay invalid.
    if (code !== 0x0a && code !== 0x0d) bytes[length++] = code > 0x7f ? 0x7f : code;
  }
  return bytes.toString('latin1', 0, length);
}

/** The index of the first byte that is not standard base64 with padding, or undefined. */
function illegalBase64At(text: string): number | undefined {
  const wrong = text.search(/[^A-Za-z0-9+/=]/);
  if (wrong >= 0) return wrong;
  const padding = text.indexOf('=');
  const end = padding < 0 ? text.length : padding;
  if (padding >= 0 && !/^={1,2}$/.test(text.slice(padding))) return padding + 1;
  if (text.length % 4 !== 0) return text.length - (text.length % 4);
  if (end % 4 === 1) return end;
  return undefined;
}
