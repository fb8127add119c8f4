/** What the fields of a kind are: one description from which decoding, OpenAPI, strategic merge and server-side apply all follow. */

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
  /** Any JSON, kept as it is. */
  | 'any';

export interface ScalarSchema {
  readonly type: 'scalar';
  readonly scalar: Scalar;
  /** The name that a real server's error messages use, `v1.Protocol`. */
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
  /** What stands for a key that an item leaves out. */
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
  /** Null and absent differ from an empty value, which is kept. */
  readonly isPointer: boolean;
  /** Written even when it is empty. */
  readonly isAlwaysWritten: boolean;
  /** Said so by the OpenAPI document; what a missing value means is the kind's validation. */
  readonly isRequired: boolean;
  /** The protobuf field number; more than one leads through messages that JSON does not show. Empty: no protobuf. */
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
