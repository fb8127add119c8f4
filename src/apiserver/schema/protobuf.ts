/**
 * Decodes protobuf bodies into raw JSON. kubectl sends protobuf for some commands (`create namespace`, `auth can-i`) and accepts JSON
 * responses. The field numbers are in the schema.
 */

import { TIME_MS_MAX } from '../../kube/object.ts';
import { exactInteger, setOwn, type JsonArray, type JsonObject, type JsonValue } from '../../base/json.ts';
import { PROTOBUF_FIELDS_MAX, PROTOBUF_JSON_BYTES_MAX } from '../limits.ts';
import { parseJsonText } from './json-text.ts';
import { DecodeError } from './decode.ts';
import type { Field, ObjectSchema, Scalar, Schema } from './object-schema.ts';

export class ProtobufError extends Error {
  override readonly name = 'ProtobufError';
}

const MAGIC = Buffer.from([0x6b, 0x38, 0x73, 0x00]);

export interface Envelope {
  readonly apiVersion: string;
  readonly kind: string;
  readonly raw: Buffer;
}

/** The `k8s\0` envelope of Kubernetes: the type, then the object's own bytes. Throws {@link ProtobufError}. */
export function openEnvelope(body: Buffer): Envelope {
  if (!body.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw new ProtobufError('the body does not start with the protobuf prefix of Kubernetes');
  }
  const reader = new Reader();
  const parts = reader.message(body.subarray(MAGIC.length));
  const type = reader.message(bytesOf(parts, 1));
  return {
    apiVersion: bytesOf(type, 1).toString('utf8'),
    kind: bytesOf(type, 2).toString('utf8'),
    raw: bytesOf(parts, 2),
  };
}

/** Throws {@link ProtobufError}. Ignores fields without a number in the schema. */
export function decodeProtobuf(schema: ObjectSchema, body: Buffer): JsonObject {
  return new Reader().object(schema, body);
}

interface WireField {
  readonly number: number;
  readonly value: bigint | Buffer;
}

class Reader {
  /** Fields of all messages so far: an empty field takes two bytes, and far longer to decode. */
  #count = 0;
  #jsonBytes = 0;

  object(schema: ObjectSchema, body: Buffer): JsonObject {
    const output: JsonObject = {};
    this.#fields([...schema.fields.values()], 0, this.message(body), output);
    return output;
  }

  /** `depth`: number of unnamed messages around these parts. */
  #fields(fields: readonly Field[], depth: number, parts: readonly WireField[], output: JsonObject): void {
    const entered = new Set<number>();
    for (const field of fields) {
      const number = field.protobufPath[depth];
      if (number === undefined) continue;
      const own = parts.filter((part) => part.number === number);
      if (own.length === 0) continue;
      if (field.protobufPath.length > depth + 1) {
        if (entered.has(number)) continue;
        entered.add(number);
        const inner = fields.filter((other) => other.protobufPath[depth] === number);
        for (const part of own) this.#fields(inner, depth + 1, this.message(asBytes(part.value)), output);
      } else {
        setOwn(output, field.name, this.#field(field.schema, own));
      }
    }
  }

  #field(schema: Schema, parts: readonly WireField[]): JsonValue {
    switch (schema.type) {
      case 'list':
        return parts.map((part): JsonArray[number] => this.#value(schema.items, part.value));
      case 'map': {
        const map: JsonObject = {};
        for (const part of parts) {
          const entry = this.message(asBytes(part.value));
          const value = entry.find(({ number }) => number === 2)?.value ?? Buffer.alloc(0);
          setOwn(map, bytesOf(entry, 1).toString('utf8'), this.#mapped(schema.values, value));
        }
        return map;
      }
      case 'object':
      case 'scalar':
        return this.#value(schema, parts.at(-1)?.value ?? Buffer.alloc(0));
    }
  }

  /** A list in a map is the first field of a message, such as `ExtraValue` of a UserInfo. */
  #mapped(schema: Schema, value: bigint | Buffer): JsonValue {
    if (schema.type !== 'list') return this.#value(schema, value);
    const items = this.message(asBytes(value)).filter(({ number }) => number === 1);
    return this.#field(schema, items);
  }

  #value(schema: Schema, value: bigint | Buffer): JsonValue {
    if (schema.type === 'object') return this.object(schema, asBytes(value));
    if (schema.type === 'scalar') return this.#scalar(schema.scalar, value);
    throw new ProtobufError('a list of lists has no protobuf form');
  }

  #scalar(scalar: Scalar, value: bigint | Buffer): JsonValue {
    switch (scalar) {
      case 'string':
        return asBytes(value).toString('utf8');
      case 'bytes':
        return asBytes(value).toString('base64');
      case 'bool':
        return asNumber(value) !== 0;
      case 'int32':
        return asNumber(value);
      case 'int64':
        return exactInteger(asNumber(value), String(asInteger(value)));
      case 'float64':
        return readDouble(asBytes(value));
      case 'quantity':
        return bytesOf(this.message(asBytes(value)), 1).toString('utf8');
      case 'time':
      case 'microtime':
        return readTime(this.message(asBytes(value)), scalar);
      case 'intOrString': {
        const parts = this.message(asBytes(value));
        return numberOf(parts, 1) === 0 ? numberOf(parts, 2) : bytesOf(parts, 3).toString('utf8');
      }
      case 'any': {
        const json = bytesOf(this.message(asBytes(value)), 1);
        this.#jsonBytes += json.length;
        if (this.#jsonBytes > PROTOBUF_JSON_BYTES_MAX)
          throw new ProtobufError('the fields hold too much JSON');
        return readAny(json.toString('utf8'));
      }
    }
  }

  /** Splits a message into its fields, in wire order. */
  message(bytes: Buffer): WireField[] {
    const fields: WireField[] = [];
    let at = 0;
    const varint = (): bigint => {
      let value = 0n;
      for (let shift = 0n; shift < 70n; shift += 7n) {
        const byte = bytes[at++];
        if (byte === undefined) throw new ProtobufError('the message ends inside a number');
        value |= BigInt(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
      }
      throw new ProtobufError('a number is too long');
    };
    const take = (length: number): Buffer => {
      if (at + length > bytes.length) throw new ProtobufError('the message ends inside a field');
      at += length;
      return bytes.subarray(at - length, at);
    };
    while (at < bytes.length) {
      if (++this.#count > PROTOBUF_FIELDS_MAX) throw new ProtobufError('the message has too many fields');
      const tag = varint();
      const number = Number(tag >> 3n);
      const wireType = Number(tag & 7n);
      if (wireType === 0) fields.push({ number, value: varint() });
      else if (wireType === 1) fields.push({ number, value: take(8) });
      else if (wireType === 2) fields.push({ number, value: take(Number(varint())) });
      else if (wireType === 5) fields.push({ number, value: take(4) });
      else throw new ProtobufError(`unknown wire type ${wireType}`);
    }
    return fields;
  }
}

function readDouble(bytes: Buffer): number {
  if (bytes.length !== 8) throw new ProtobufError('a number has the wrong length');
  return bytes.readDoubleLE();
}

function readAny(text: string): JsonValue {
  try {
    return text === '' ? null : parseJsonText(text).value;
  } catch (cause) {
    if (!(cause instanceof DecodeError)) throw cause;
    throw new ProtobufError(`JSON in a field: ${cause.message}`, { cause });
  }
}

/** Null for the zero time, which Kubernetes writes as an empty message. */
function readTime(parts: readonly WireField[], precision: 'time' | 'microtime'): JsonValue {
  const [seconds, nanos] = [numberOf(parts, 1), numberOf(parts, 2)];
  if (parts.length === 0 || seconds < 0) return null;
  if (seconds * 1000 > TIME_MS_MAX || nanos < 0 || nanos > 999_999_999)
    throw new ProtobufError('a time is out of range');
  const text = new Date(seconds * 1000).toISOString().slice(0, 19);
  if (precision === 'time') return `${text}Z`;
  return `${text}.${String(Math.floor(nanos / 1000)).padStart(6, '0')}Z`;
}

function bytesOf(parts: readonly WireField[], number: number): Buffer {
  const part = parts.findLast((candidate) => candidate.number === number);
  return part ? asBytes(part.value) : Buffer.alloc(0);
}

function numberOf(parts: readonly WireField[], number: number): number {
  const part = parts.findLast((candidate) => candidate.number === number);
  return part ? asNumber(part.value) : 0;
}

function asBytes(value: bigint | Buffer): Buffer {
  if (typeof value === 'bigint')
    throw new ProtobufError('a number stands where a message or text is expected');
  return value;
}

function asNumber(value: bigint | Buffer): number {
  return Number(asInteger(value));
}

function asInteger(value: bigint | Buffer): bigint {
  if (typeof value !== 'bigint')
    throw new ProtobufError('a message or text stands where a number is expected');
  return BigInt.asIntN(64, value);
}
