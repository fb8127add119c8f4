/** The schema of a kind's fields, used by decoding, OpenAPI, strategic merge and server-side apply. */

export type Scalar =
  | 'string'
  | 'bool'
  | 'int32'
  | 'int64'
  | 'float64'
  /** base64 text */
  | 'bytes'
  /** RFC 3339, seconds */
  | 'time'
  /** RFC 3339, microseconds */
  | 'microtime'
  | 'quantity'
  | 'intOrString'
  /** Any JSON, unchanged. */
  | 'any';

export interface ScalarSchema {
  readonly type: 'scalar';
  readonly scalar: Scalar;
  /** The Go type in error messages, `v1.Protocol`. */
  readonly goType: string;
}

/** `set` and `map` merge by value and by key; an `atomic` list is replaced as a whole. */
export type ListType = 'atomic' | 'set' | 'map';

export interface ListSchema {
  readonly type: 'list';
  readonly items: Schema;
  readonly listType: ListType;
  /** The fields that identify an item, for `map`. */
  readonly keys: readonly string[];
  /** Defaults of keys that an item omits. */
  readonly keyDefaults: Readonly<Record<string, string>>;
}

export interface MapSchema {
  readonly type: 'map';
  readonly values: Schema;
  readonly isAtomic: boolean;
}

export interface ObjectSchema {
  readonly type: 'object';
  /** `EndpointSubset`, `meta.ObjectMeta`: unique among the types of one server. */
  readonly name: string;
  readonly isAtomic: boolean;
  readonly description: string;
  /** In the order in which a server writes them. */
  readonly fields: ReadonlyMap<string, Field>;
}

export type Schema = ScalarSchema | ListSchema | MapSchema | ObjectSchema;

export interface Field {
  readonly name: string;
  readonly schema: Schema;
  /** An empty value is kept, and differs from null and absent. */
  readonly isPointer: boolean;
  /** Written even when it is empty. */
  readonly isAlwaysWritten: boolean;
  /** In the OpenAPI document only; the kind's validation decides about missing values. */
  readonly isRequired: boolean;
  /** Protobuf field numbers: several when the field is in messages that JSON does not have. Empty: no protobuf. */
  readonly protobufPath: readonly number[];
  readonly description: string;
  /** Strategic merge: `merge` for lists that merge by `mergeKey`, `retainKeys` for unions. */
  readonly patchStrategies: readonly string[];
  readonly mergeKey: string;
}

/** Replaced and owned as a whole by field managers. */
export function isLeaf(schema: Schema): boolean {
  switch (schema.type) {
    case 'scalar':
      return true;
    case 'list':
      return schema.listType === 'atomic';
    case 'map':
    case 'object':
      return schema.isAtomic;
  }
}

/** The schema of a member of an object or map; undefined where an object has no such field. */
export function memberSchema(schema: ObjectSchema | MapSchema, key: string): Schema | undefined {
  return schema.type === 'map' ? schema.values : schema.fields.get(key)?.schema;
}
