/** Fills kubectl's JSONPath templates, as k8s.io/client-go/util/jsonpath 0.36 does: missing keys print nothing, several values are separated by spaces. */

import { isJsonObject, ownValue, canonicalJson, type JsonValue } from '../../base/json.ts';
import {
  parseTemplate,
  templateError,
  type Comparison,
  type Slice,
  type Step,
  type Steps,
  type TemplatePart,
} from './template-syntax.ts';

/** Undefined: the value of a range or document that is null, which prints something else than null inside of a value. */
type Value = JsonValue | undefined;

/** Throws `TerminalError` with the column for a template, or for values to which it does not apply. */
export function applyTemplate(template: string, json: JsonValue): string {
  return textOfParts(parseTemplate(template), json ?? undefined);
}

function textOfParts(parts: readonly TemplatePart[], current: Value): string {
  return parts
    .map((part) => {
      if ('text' in part) return part.text;
      if ('steps' in part) return evaluate(part.steps, [current]).map(textOfValue).join(' ');
      return evaluate(part.over, [current])
        .map((value) => textOfParts(part.parts, value ?? undefined))
        .join('');
    })
    .join('');
}

function textOfValue(value: Value): string {
  if (value === undefined) return '<no value>';
  if (typeof value === 'object' && value !== null) return goJson(value);
  return typeof value === 'number' ? goNumber(value) : String(value);
}

/** What Go's encoding/json writes. */
function goJson(value: JsonValue): string {
  return canonicalJson(value).replaceAll(
    /[<>&\u2028\u2029]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** What Go's fmt prints, which is JavaScript's but for small numbers. */
function goNumber(value: number): string {
  const small = typeof value === 'number' && value !== 0 && Math.abs(value) < 1e-4;
  return small ? value.toExponential().replace(/e-(\d)$/u, 'e-0$1') : String(value);
}

function evaluate(steps: Steps, input: readonly Value[]): readonly Value[] {
  return steps.reduce<readonly Value[]>((values, step) => apply(step, values), input);
}

function apply(step: Step, values: readonly Value[]): readonly Value[] {
  switch (step.kind) {
    case 'text':
      return [step.text];
    case 'literal':
      return values.map(() => step.value);
    case 'field':
      return values.flatMap((value) => {
        const found = isJsonObject(value) ? ownValue(value, step.name) : undefined;
        return found === undefined ? [] : [found];
      });
    case 'wildcard':
      return values.flatMap(membersOf);
    case 'recursive':
      return values.flatMap(descendants);
    case 'union':
      return step.members.flatMap((member) => evaluate(member, values));
    case 'slice':
      return sliced(step, values);
    case 'filter':
      return values.flatMap((value) => {
        if (!Array.isArray(value))
          throw templateError(step.at, `a filter applies to lists, not to ${nameOf(value)}`);
        return value.filter((item) => passes(step, item));
      });
  }
}

/** Of a text, its bytes: Go's strings are lists of them. */
function membersOf(value: Value): readonly JsonValue[] {
  if (typeof value === 'string') return [...Buffer.from(value)];
  return typeof value === 'object' && value !== null ? Object.values(value) : [];
}

/** The value and what is in it, without numbers, booleans and what is empty. */
function descendants(value: Value): readonly Value[] {
  const members = membersOf(value);
  return members.length === 0 ? [] : [value, ...members.flatMap(descendants)];
}

function sliced(step: Slice & { readonly at: number }, values: readonly Value[]): readonly Value[] {
  const results: Value[] = [];
  for (const value of values) {
    if (value === null) continue;
    if (!Array.isArray(value))
      throw templateError(step.at, `an index applies to lists, not to ${nameOf(value)}`);
    const { length } = value;
    let { from = 0, to = step.isIndex ? from + 1 : length } = step;
    if (to < 0 || (to === 0 && step.isIndex)) to += length;
    if (from < 0) from += length;
    // As kubectl: an empty list, or range, ends the results. The values after it are not visited.
    if (from === to) return results;
    if (from >= length || from < 0 || to > length || to < 0 || from > to)
      throw templateError(step.at, `the index is out of bounds: the list has ${length} elements`);
    if (step.step !== undefined && step.step <= 0)
      throw templateError(step.at, 'the step of a slice is not above 0');
    for (let at = from; at < to; at += step.step ?? 1) results.push(value[at]);
  }
  return results;
}

function passes(filter: Step & { readonly kind: 'filter' }, item: JsonValue): boolean {
  const lefts = evaluate(filter.left, [item]);
  if (filter.comparison === undefined) return lefts.length > 0;
  const one = (found: readonly Value[]): Value => {
    if (found.length > 1) throw templateError(filter.at, 'a comparison is of one value, not of several');
    return found[0] ?? null;
  };
  const left = one(lefts);
  if (lefts.length === 0) return false;
  const rights = evaluate(filter.comparison.right, [item]);
  const right = one(rights);
  return rights.length > 0 && compare(left, filter.comparison, right, filter.at);
}

function compare(left: Value, { operator }: Comparison, right: Value, at: number): boolean {
  const [a, b] = [kindOf(left), kindOf(right)];
  if (a !== b || a === undefined)
    throw templateError(at, `${nameOf(left)} and ${nameOf(right)} cannot be compared`);
  const order = orderOf(left, right);
  if (operator === '==') return order === 0;
  if (operator === '!=') return order !== 0;
  if (a === 'boolean')
    throw templateError(at, `booleans are equal or not, "${operator}" does not apply to them`);
  switch (operator) {
    case '<':
      return order < 0;
    case '<=':
      return order <= 0;
    case '>':
      return order > 0;
    case '>=':
      return order >= 0;
  }
}

/** Values of one kind are comparable: in Go, an integer is not of that of a number with a fraction. */
function kindOf(value: Value): 'string' | 'boolean' | 'integer' | 'float' | undefined {
  if (typeof value === 'string' || typeof value === 'boolean') return typeof value as 'string' | 'boolean';
  if (typeof value === 'object' || value === undefined) return undefined;
  return typeof value === 'number' && !Number.isSafeInteger(value) ? 'float' : 'integer';
}

function orderOf(left: Value, right: Value): number {
  if (typeof left === 'string' && typeof right === 'string')
    return Buffer.compare(Buffer.from(left), Buffer.from(right));
  const [a, b] = [left ?? 0, right ?? 0];
  return a < b ? -1 : Number(a > b);
}

function nameOf(value: Value): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  return typeof value === 'string' ? 'text' : typeof value === 'boolean' ? 'a boolean' : 'a number';
}
