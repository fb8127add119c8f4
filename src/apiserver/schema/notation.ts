/**
 * A short notation for types, so that a kind takes a few lines:
 *
 *     EndpointAddress atomic = ip:1!+ string; nodeName:4 *string; targetRef:2 *ObjectReference
 *     ServiceSpec = ports:1 []ServicePort map(port,protocol=TCP) ~merge(port); selector:2 {}string atomic
 *
 * `[]T` is a list (`atomic` unless marked `set` or `map(keys)`; a key may have a default), `{}T` a map, `*T` a pointer: its empty value is
 * kept. After the name: the protobuf number (`2/1` in an unnamed message), `!` always written, `+` required. `~` is the strategic-merge
 * rule, `string:v1.Protocol` a named type for error messages.
 */

import { InvariantError, invariant } from '../../base/errors.ts';
import type { Field, ListSchema, ListType, ObjectSchema, Scalar, Schema } from './object-schema.ts';

/** Texts for `kubectl explain`, by `Type` and `Type.field`. */
export type Descriptions = Readonly<Record<string, string>>;

/** Types by name; a type is parsed when it is first asked for. */
export class TypeTable {
  readonly #lines = new Map<string, string>();
  readonly #types = new Map<string, ObjectSchema>();
  readonly #descriptions: Descriptions;

  constructor(notations: readonly string[], descriptions: Descriptions = {}) {
    this.#descriptions = descriptions;
    for (const line of notations.join('\n').split('\n')) {
      const text = line.trim();
      if (text === '') continue;
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
      description: this.#descriptions[name] ?? '',
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
      description: this.#descriptions[`${owner}.${name}`] ?? '',
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

/** The text in parentheses, or ''. */
function argument(text: string): string {
  return /\((.*)\)/.exec(text)?.[1] ?? '';
}

function split(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
