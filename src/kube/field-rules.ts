/** Rules of fields, as a kube-apiserver decides them, for tables of the kinds. They walk raw JSON, so they check types too, which a server has checked
 * before. Go reads null as the empty value of a field. */

import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../base/json.ts';

export type FieldPath = readonly (string | number)[];

interface Place {
  readonly path: FieldPath;
  /** That a kube-apiserver names: the path, or the start of it. */
  readonly field: FieldPath;
  readonly value: JsonValue | undefined;
}

export interface Problem {
  /** As a kube-apiserver says it, without the value. */
  readonly detail: string;
  /** The first version of Kubernetes, such as 1.36, that refuses it, if supported ones before accept it. */
  readonly since?: string;
}

type Finding =
  | { readonly reason: 'Type' | 'Forbidden'; readonly detail: string }
  | ({ readonly reason: 'Invalid' } & Problem)
  /** `when`: the condition, which a kube-apiserver does not name. */
  | { readonly reason: 'Required'; readonly detail: string; readonly when: string }
  | { readonly reason: 'Duplicate' }
  | { readonly reason: 'NotSupported'; readonly supported: readonly string[] }
  | { readonly reason: 'TooMany'; readonly max: number };

export type Violation = Place & Finding;

/** Reports the violations of a field and of what is below it. */
export type Rule = (field: Field) => void;

/** What a kube-apiserver says about a text; undefined: no problem. */
export type TextProblem = (text: string) => string | Problem | undefined;

/** A field of an object that is validated. A linked list, so that valid fields allocate no path. */
export class Field {
  readonly value: JsonValue | undefined;
  /** A value that needs no check: what is the same at the same place is skipped. */
  readonly old: JsonValue | undefined;
  readonly #above: Field | undefined;
  readonly #step: string | number;
  readonly #found: Violation[];

  private constructor(
    value: JsonValue | undefined,
    old: JsonValue | undefined,
    { above, step, found }: { above: Field | undefined; step: string | number; found: Violation[] },
  ) {
    this.value = value;
    this.old = old;
    this.#above = above;
    this.#step = step;
    this.#found = found;
  }

  /** Of the object's fields with rules, in the order of the rules. */
  static violations(
    rules: readonly FieldRule[],
    object: JsonObject,
    old: JsonObject | undefined,
  ): readonly Violation[] {
    const found: Violation[] = [];
    const root = new Field(object, old, { above: undefined, step: '', found });
    for (const [key, rule] of rules) rule(root.member(key));
    return found;
  }

  get isAbsent(): boolean {
    return this.value === undefined || this.value === null;
  }

  get isEmpty(): boolean {
    return isEmptyValue(this.value);
  }

  get isSame(): boolean {
    return this.value === this.old;
  }

  /** '' if it is no text. */
  get text(): string {
    return typeof this.value === 'string' ? this.value : '';
  }

  /** Empty if it is no list. */
  get items(): readonly JsonValue[] {
    return Array.isArray(this.value) ? this.value : [];
  }

  member(key: string): Field {
    return this.#below(key, memberOf(this.value, key), memberOf(this.old, key));
  }

  sibling(key: string): Field | undefined {
    return this.#above?.member(key);
  }

  item(index: number): Field {
    return this.#below(index, this.items[index], itemOf(this.old, index));
  }

  /** The same field, of which nothing is skipped. */
  afresh(): Field {
    return new Field(this.value, undefined, { above: this.#above, step: this.#step, found: this.#found });
  }

  /** `named`: the field of the error, where a kube-apiserver names one above. */
  report(finding: Finding, value = this.value, named: Field = this): void {
    this.#found.push({ ...finding, path: this.#path(), field: named.#path(), value });
  }

  wrongType(type: string): void {
    this.report({ reason: 'Type', detail: `must be ${type}` });
  }

  invalid(problem: string | Problem | undefined, value = this.value, named: Field = this): void {
    if (problem === undefined) return;
    const found = typeof problem === 'string' ? { detail: problem } : problem;
    this.report({ reason: 'Invalid', ...found }, value, named);
  }

  forbidden(detail: string): void {
    this.report({ reason: 'Forbidden', detail });
  }

  required(detail = '', when = ''): void {
    this.report({ reason: 'Required', detail, when });
  }

  #path(): FieldPath {
    return this.#above === undefined ? [] : [...this.#above.#path(), this.#step];
  }

  #below(step: string | number, value: JsonValue | undefined, old: JsonValue | undefined): Field {
    return new Field(value, old, { above: this, step, found: this.#found });
  }
}

export type FieldRule = readonly [key: string, rule: Rule];

/** As Go reads a field: absent, or its empty value. */
export function isEmptyValue(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null || value === '' || value === 0) return true;
  return Array.isArray(value) ? value.length === 0 : isJsonObject(value) && Object.keys(value).length === 0;
}

function memberOf(value: JsonValue | undefined, key: string): JsonValue | undefined {
  return isJsonObject(value) ? ownValue(value, key) : undefined;
}

function itemOf(value: JsonValue | undefined, index: number): JsonValue | undefined {
  return Array.isArray(value) ? value[index] : undefined;
}

/** An object with these fields; others are not checked. */
export function struct(...fields: readonly FieldRule[]): Rule {
  return (field) => {
    if (field.isAbsent || field.isSame) return;
    const { value, old } = field;
    if (!isJsonObject(value)) {
      field.wrongType('an object');
      return;
    }
    const isKnown = isJsonObject(old);
    for (const [key, rule] of fields)
      if (!isKnown || ownValue(value, key) !== ownValue(old, key)) rule(field.member(key));
  };
}

export function list(rule: Rule, itemsMax = Infinity): Rule {
  return (field) => {
    if (field.isAbsent || field.isSame) return;
    const { items, old } = field;
    if (!Array.isArray(field.value)) field.wrongType('a list');
    if (items.length > itemsMax) {
      field.report({ reason: 'TooMany', max: itemsMax });
      return;
    }
    for (const [index, item] of items.entries()) {
      if (item === itemOf(old, index)) continue;
      if (item === null) field.item(index).wrongType('set');
      else rule(field.item(index));
    }
  };
}

export function map(checkKey: TextProblem, checkValue: TextProblem): Rule {
  return (field) => {
    if (field.isAbsent || field.isSame) return;
    if (!isJsonObject(field.value)) {
      field.wrongType('a map of strings');
      return;
    }
    for (const key of Object.keys(field.value)) {
      const entry = field.member(key);
      entry.invalid(checkKey(key), key, field);
      if (isText(entry)) entry.invalid(checkValue(entry.text), entry.text, field);
    }
  };
}

/** `required`: an absent one is checked as ''; `optional`: '' is checked, an absent one is not; `may be empty`: neither is. */
export type Presence = 'required' | 'optional' | 'may be empty';

export function textOf(presence: Presence, problem: TextProblem): Rule {
  return (field) => {
    if (!isText(field) || (field.isAbsent && presence !== 'required')) return;
    if (field.text !== '' || presence !== 'may be empty') field.invalid(problem(field.text), field.text);
  };
}

/** Any text, or absent. */
export function text(field: Field): void {
  isText(field);
}

function isText(field: Field): boolean {
  const isRight = field.isAbsent || typeof field.value === 'string';
  if (!isRight) field.wrongType('a string');
  return isRight;
}

export function oneOf(supported: readonly string[], presence: Presence): Rule {
  return (field) => {
    if (!isText(field)) return;
    if (field.text === '' && (field.isAbsent || presence !== 'optional')) {
      if (presence === 'required') field.required();
    } else if (!supported.includes(field.text)) field.report({ reason: 'NotSupported', supported });
  };
}

export function flag(field: Field): void {
  if (!field.isAbsent && typeof field.value !== 'boolean') field.wrongType('true or false');
}

export function integer(field: Field): void {
  if (!field.isAbsent && !isInt32(field.value)) field.wrongType('a whole number of 32 bits');
}

function isInt32(value: JsonValue | undefined): boolean {
  return typeof value === 'number' && (value | 0) === value;
}

const PORT_MAX = 65_535;

/** Absent: 0, which is no port. */
export function portNumber(field: Field): void {
  const value = field.isAbsent ? 0 : field.value;
  if (typeof value !== 'number' || !Number.isInteger(value)) field.wrongType('a whole number');
  else if (value < 1 || value > PORT_MAX)
    field.invalid(`must be between 1 and ${PORT_MAX}, inclusive`, value);
}

export const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
