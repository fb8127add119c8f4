/** Decodes JSON values as scalars, with the error messages of a kube-apiserver. */

import type { JsonValue } from '../../base/json.ts';
import { canonicalTime, checkQuantity, illegalBase64At, withoutLineBreaks } from './scalars.ts';
import type { ScalarSchema } from './object-schema.ts';

/** A value has the wrong type; the message is that of a kube-apiserver. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
}

/** The position of a value in the body: a chain to the root, converted to text only for messages. */
export interface Place {
  readonly parent: Place | undefined;
  /** A field or key, or the index of a list item. */
  readonly step: string | number;
  /** The struct that holds the field; `''` for a key and an item. */
  readonly struct: string;
}

/** `spec.ports[0].port`; `''` for the root. */
export function pathText(at: Place): string {
  if (!at.parent) return '';
  const above = pathText(at.parent);
  if (typeof at.step === 'number') return `${above}[${at.step}]`;
  return above === '' ? at.step : `${above}.${at.step}`;
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

/** The zero value, for fields that are always written. */
export function zeroOf(schema: ScalarSchema): JsonValue {
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

/** Throws {@link DecodeError}. */
export function decodeScalar(schema: ScalarSchema, given: JsonValue, at: Place): JsonValue {
  // Only values of any type keep the digits of long integers (see `parseJson`): typed fields are numbers, which validation bounds.
  const input = typeof given === 'bigint' ? Number(given) : given;
  switch (schema.scalar) {
    case 'any':
      return given;
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
  const text = withoutLineBreaks(input);
  const wrong = illegalBase64At(text);
  if (wrong !== undefined) {
    throw new DecodeError(`${pathText(at)}: illegal base64 data at input byte ${wrong}`);
  }
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

export function wrongType(
  input: JsonValue,
  at: Place,
  goType: string,
  what = jsonTypeName(input),
): DecodeError {
  return new DecodeError(
    `json: cannot unmarshal ${what} into Go struct field ${goFieldText(at)} of type ${goType}`,
  );
}

function jsonTypeName(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  return typeof value;
}
