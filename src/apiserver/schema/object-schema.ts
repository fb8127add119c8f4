/** The schema of a kind's fields, used by decoding, OpenAPI, strategic merge and server-side apply, and a notation for it. */

import { InvariantError, invariant } from '../../base/errors.ts';

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
  | 'any';

export interface ScalarSchema {
  readonly type: 'scalar';
  readonly scalar: Scalar;
  /** The Go type in error messages, `v1.Protocol`. */
  readonly goType: string;
}

/** `set` and `map` merge by value and by key; an `atomic` list is replaced as a whole. */
type ListType = 'atomic' | 'set' | 'map';

export interface ListSchema {
  readonly type: 'list';
  readonly items: Schema;
  readonly listType: ListType;
  /** The fields that identify an item, for `map`. */
  readonly keys: readonly string[];
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

// A short notation for types, so that a kind takes a few lines:
//
//     EndpointAddress atomic = ip:1!+ string; nodeName:4 *string; targetRef:2 *ObjectReference
//     ServiceSpec = ports:1 []ServicePort map(port,protocol=TCP) ~merge(port); selector:2 {}string atomic
//
// `[]T` is a list (`atomic` unless marked `set` or `map(keys)`; a key may have a default), `{}T` a map, `*T` a pointer: its empty value is
// kept. After the name: the protobuf number (`2/1` in an unnamed message), `!` always written, `+` required. `~` is the strategic-merge
// rule, `string:v1.Protocol` a named type for error messages. A line `Type: text` or `Type.field: text` is for `kubectl explain`.

const DESCRIPTION = /^([\w.]+): (.+)$/;

/** Types by name; a type is parsed when it is first asked for. */
export class TypeTable {
  readonly #lines = new Map<string, string>();
  readonly #types = new Map<string, ObjectSchema>();
  readonly #descriptions = new Map<string, string>();

  constructor(notations: readonly string[]) {
    for (const line of notations.join('\n').split('\n')) {
      const text = line.trim();
      if (text === '') continue;
      const [, described = '', description = ''] = DESCRIPTION.exec(text) ?? [];
      if (described !== '') {
        this.#descriptions.set(described, description);
        continue;
      }
      const name = text.slice(0, text.search(/[ =]/));
      invariant(!this.#lines.has(name), `the type ${name} is defined twice`);
      this.#lines.set(name, text);
    }
  }

  get(name: string): ObjectSchema {
    const known = this.#types.get(name);
    if (known) return known;
    const line = this.#lines.get(name);
    if (line === undefined) throw new InvariantError(`no type is called ${name}`);
    const [head, body] = split(line, '=');
    const fields = new Map<string, Field>();
    const type: ObjectSchema = {
      type: 'object',
      name,
      isAtomic: head.trim().endsWith(' atomic'),
      description: this.#descriptions.get(name) ?? '',
      fields,
    };
    this.#types.set(name, type); // before its fields, which may refer to it
    for (const text of body.split(';')) {
      const field = this.#field(name, text.trim());
      if (field) fields.set(field.name, field);
    }
    return type;
  }

  #field(owner: string, text: string): Field | undefined {
    if (text === '') return undefined;
    const [named = '', typeText = '', ...rules] = text.split(' ');
    const [name = '', numbers = ''] = named.replaceAll(/[!+]/g, '').split(':');
    const isPointer = typeText.startsWith('*');
    const strategic = rules.find((rule) => rule.startsWith('~'))?.slice(1) ?? '';
    const structural = rules.find((rule) => !rule.startsWith('~')) ?? '';
    return {
      name,
      schema: this.#schema(isPointer ? typeText.slice(1) : typeText, structural),
      isPointer,
      isAlwaysWritten: named.includes('!'),
      isRequired: named.includes('+'),
      protobufPath: numbers === '' ? [] : numbers.split('/').map(Number),
      description: this.#descriptions.get(`${owner}.${name}`) ?? '',
      patchStrategies: strategic.replace(/\(.*/, '').split(',').filter(Boolean),
      mergeKey: argument(strategic),
    };
  }

  #schema(text: string, rule: string): Schema {
    if (text.startsWith('[]')) {
      const listType: ListType = rule.startsWith('map') ? 'map' : rule === 'set' ? 'set' : 'atomic';
      return {
        type: 'list',
        items: this.#schema(text.slice(2), ''),
        listType,
        ...listKeys(argument(rule)),
      };
    }
    if (text.startsWith('{}')) {
      return { type: 'map', values: this.#schema(text.slice(2), ''), isAtomic: rule === 'atomic' };
    }
    const [base = '', goType = base] = text.split(':');
    if (isScalar(base)) return { type: 'scalar', scalar: base, goType };
    const named = this.get(base);
    return rule === 'atomic' ? { ...named, isAtomic: true } : named;
  }
}

/** `port,protocol=TCP`: the second one has a default. */
function listKeys(text: string): Pick<ListSchema, 'keys' | 'keyDefaults'> {
  const pairs = text.split(',').map((key) => split(key, '='));
  const defaults = pairs.filter(([, value]) => value !== '');
  return { keys: pairs.map(([name]) => name), keyDefaults: Object.fromEntries(defaults) };
}

const SCALARS = 'string bool int32 int64 float64 bytes time microtime quantity intOrString any'.split(' ');

function isScalar(text: string): text is Scalar {
  return SCALARS.includes(text);
}

function argument(text: string): string {
  return /\((.*)\)/.exec(text)?.[1] ?? '';
}

function split(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

/** Types of meta/v1, as kube-apiserver 1.36 serves them. */
export const META_TYPES = `
meta.ObjectMeta = name:1 string; generateName:2 string; namespace:3 string; selfLink:4 string; uid:5 string:types.UID; resourceVersion:6 string; generation:7 int64; creationTimestamp:8 time; deletionTimestamp:9 *time; deletionGracePeriodSeconds:10 *int64; labels:11 {}string; annotations:12 {}string; ownerReferences:13 []meta.OwnerReference map(uid) ~merge(uid); finalizers:14 []string set ~merge; managedFields:17 *[]meta.ManagedFieldsEntry atomic
meta.OwnerReference atomic = apiVersion:5!+ string; kind:1!+ string; name:3!+ string; uid:4!+ string:types.UID; controller:6 *bool; blockOwnerDeletion:7 *bool
meta.ManagedFieldsEntry = manager:1 string; operation:2 string:v1.ManagedFieldsOperationType; apiVersion:3 string; time:4 *time; fieldsType:6 string; fieldsV1:7 *any; subresource:8 string
meta.Condition = type:1!+ string; status:2!+ string:v1.ConditionStatus; observedGeneration:3 int64; lastTransitionTime:4!+ time; reason:5!+ string; message:6!+ string
meta.LabelSelector atomic = matchLabels:1 {}string; matchExpressions:2 []meta.LabelSelectorRequirement atomic
meta.LabelSelectorRequirement = key:1!+ string; operator:2!+ string:v1.LabelSelectorOperator; values:3 []string atomic
meta.FieldSelectorRequirement = key:1!+ string; operator:2!+ string:v1.FieldSelectorOperator; values:3 []string atomic
meta.DeleteOptions = gracePeriodSeconds:1 *int64; preconditions:2 *meta.Preconditions; orphanDependents:3 *bool; propagationPolicy:4 *string:v1.DeletionPropagation; dryRun:5 []string atomic; ignoreStoreReadErrorWithClusterBreakingPotential:6 *bool
meta.Preconditions = uid:1 *string:types.UID; resourceVersion:2 *string
`;
