/** The methods and global functions that the daemon calls: by the type of the receiver, with what each costs, and arguments of the types that need no
 * conversion. Those of the sandbox's realm are the same built-ins of V8, or the same code. */

import { createBase64 } from '../guest/globals.ts';
import { decline, type Budget } from './budget.ts';
import { acceptInput, acceptKey, isList, isObject } from './values.ts';
import type { Constants, Evaluation, LocalObject, LocalValue } from './types.ts';

type Arguments = readonly LocalValue[];
export type LocalFunction = (
  args: Arguments,
  evaluation: Evaluation,
  constants: Constants | undefined,
) => LocalValue;
type Method<Receiver> = (receiver: Receiver, args: Arguments, budget: Budget) => LocalValue;

/** Declines any other number of arguments: in most functions, one that is undefined is not one that is missing. */
function taking<Receiver>(least: number, most: number, method: Method<Receiver>): Method<Receiver> {
  return (receiver, args, budget) =>
    args.length < least || args.length > most ? decline() : method(receiver, args, budget);
}

/** More than any budget. */
const COUNT_MAX = 2 ** 20;

export function textOf(value: LocalValue): string {
  return typeof value === 'string' ? value : decline();
}

function integerOf(value: LocalValue): number {
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : decline();
}

function countOf(value: LocalValue): number {
  const count = integerOf(value);
  return count >= 0 && count <= COUNT_MAX ? count : decline();
}

function optional<T>(value: LocalValue, of: (value: LocalValue) => T): T | undefined {
  return value === undefined ? undefined : of(value);
}

export function primitiveOf(value: LocalValue): string | number | boolean | null | undefined {
  return typeof value === 'object' && value !== null ? decline() : value;
}

/** A text is read to the end. */
export function operand(value: LocalValue, budget: Budget): ReturnType<typeof primitiveOf> {
  const primitive = primitiveOf(value);
  if (typeof primitive === 'string') budget.read(primitive.length);
  return primitive;
}

/** As `String` converts it. */
export function printed(value: LocalValue, budget: Budget): string {
  return `${operand(value, budget)}`;
}

/** As `Number` converts it. */
export function numberOf(value: LocalValue, budget: Budget): number {
  return Number(operand(value, budget));
}

/** What to search for: the time of a search may be the product of both lengths. */
function soughtIn(text: string, value: LocalValue, budget: Budget): string {
  const sought = textOf(value);
  budget.read(text.length + Math.ceil((text.length * sought.length) / 16));
  return sought;
}

function joined(left: string, right: string, budget: Budget): string {
  budget.read(left.length + right.length);
  return left + right;
}

/** `$` has a meaning in it. */
export function replacementOf(value: LocalValue): string {
  const replacement = textOf(value);
  return replacement.includes('$') ? decline() : replacement;
}

function padded(text: string, [length, filler]: Arguments, budget: Budget): [number, string | undefined] {
  budget.read(Math.max(text.length, integerOf(length)));
  return [integerOf(length), optional(filler, textOf)];
}

function repeated(text: string, [count]: Arguments, budget: Budget): string {
  const times = countOf(count);
  budget.read(text.length * times);
  return text.repeat(times);
}

function replacedAll(text: string, [pattern, by]: Arguments, budget: Budget): string {
  const [sought, replacement] = [soughtIn(text, pattern, budget), replacementOf(by)];
  let count = sought === '' ? text.length + 1 : 0;
  if (sought !== '') {
    for (let at = text.indexOf(sought); at >= 0; at = text.indexOf(sought, at + sought.length)) count += 1;
  }
  budget.spend(count);
  budget.read(text.length + count * replacement.length);
  return text.replaceAll(sought, () => replacement);
}

function split(text: string, [separator, limit]: Arguments, budget: Budget): LocalValue {
  const sought = soughtIn(text, separator, budget);
  const parts = text.split(sought, optional(limit, countOf));
  budget.spend(parts.length);
  return parts;
}

function sized(text: string, budget: Budget): string {
  budget.read(text.length);
  return text;
}

const reading =
  (of: (text: string) => string): Method<string> =>
  (text, _, budget) => {
    budget.read(text.length);
    return sized(of(text), budget);
  };

const slicing = (of: (text: string, from: number, to: number | undefined) => string): Method<string> =>
  taking(1, 2, (text, [from, to], budget) =>
    sized(of(text, integerOf(from), optional(to, integerOf)), budget),
  );

const searching = <T extends LocalValue>(
  of: (text: string, sought: string, from: number | undefined) => T,
): Method<string> =>
  taking(1, 2, (text, [sought, from], budget) =>
    of(text, soughtIn(text, sought, budget), optional(from, integerOf)),
  );

export const TEXT_METHODS: ReadonlyMap<string, Method<string>> = new Map<string, Method<string>>([
  ['at', taking(1, 1, (text, [index]) => text.at(integerOf(index)))],
  ['charAt', taking(1, 1, (text, [index]) => text.charAt(integerOf(index)))],
  ['charCodeAt', taking(1, 1, (text, [index]) => text.charCodeAt(integerOf(index)))],
  ['codePointAt', taking(1, 1, (text, [index]) => text.codePointAt(integerOf(index)))],
  [
    'concat',
    (text, args, budget) => args.reduce<string>((all, arg) => joined(all, textOf(arg), budget), text),
  ],
  ['endsWith', searching((text, sought, to) => text.endsWith(sought, to))],
  ['includes', searching((text, sought, from) => text.includes(sought, from))],
  ['indexOf', searching((text, sought, from) => text.indexOf(sought, from))],
  ['lastIndexOf', searching((text, sought, from) => text.lastIndexOf(sought, from))],
  ['padEnd', taking(1, 2, (text, args, budget) => text.padEnd(...padded(text, args, budget)))],
  ['padStart', taking(1, 2, (text, args, budget) => text.padStart(...padded(text, args, budget)))],
  ['repeat', taking(1, 1, repeated)],
  [
    'replace',
    taking(2, 2, (text, [pattern, by], budget) => {
      const [sought, replacement] = [soughtIn(text, pattern, budget), replacementOf(by)];
      budget.read(text.length + replacement.length);
      return text.replace(sought, replacement);
    }),
  ],
  ['replaceAll', taking(2, 2, replacedAll)],
  ['slice', slicing((text, from, to) => text.slice(from, to))],
  ['split', taking(1, 2, split)],
  ['startsWith', searching((text, sought, from) => text.startsWith(sought, from))],
  ['substring', slicing((text, from, to) => text.substring(from, to))],
  [
    'toLowerCase',
    taking(
      0,
      0,
      reading((text) => text.toLowerCase()),
    ),
  ],
  ['toString', taking(0, 0, (text) => text)],
  [
    'toUpperCase',
    taking(
      0,
      0,
      reading((text) => text.toUpperCase()),
    ),
  ],
  [
    'trim',
    taking(
      0,
      0,
      reading((text) => text.trim()),
    ),
  ],
  [
    'trimEnd',
    taking(
      0,
      0,
      reading((text) => text.trimEnd()),
    ),
  ],
  [
    'trimStart',
    taking(
      0,
      0,
      reading((text) => text.trimStart()),
    ),
  ],
]);

type List = readonly LocalValue[];

/** Objects that are one here may be two in the sandbox. */
function comparable(list: List, value: LocalValue, budget: Budget): LocalValue {
  const sought = primitiveOf(value);
  budget.spend(list.length);
  if (typeof sought === 'string') budget.read(list.length * sought.length);
  return sought;
}

function joinedList(list: List, [separator = ',']: Arguments, budget: Budget): string {
  const between = textOf(separator);
  budget.spend(list.length);
  budget.read(list.length * between.length);
  return list.map((each) => (each === undefined || each === null ? '' : printed(each, budget))).join(between);
}

function counted(list: List, budget: Budget): List {
  budget.spend(1 + list.length);
  return list;
}

/** By UTF-16 units, as without a function. */
function sorted(list: List, budget: Budget): List {
  budget.spend(list.length * Math.ceil(Math.log2(list.length + 2)));
  const texts = list.map(textOf);
  for (const text of texts) budget.read(8 * text.length);
  return texts.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}

export const LIST_METHODS: ReadonlyMap<string, Method<List>> = new Map<string, Method<List>>([
  ['at', taking(1, 1, (list, [index]) => list.at(integerOf(index)))],
  [
    'concat',
    (list, args, budget) =>
      args.reduce<List>((all, arg) => counted(all.concat(arg), budget), counted(list, budget)),
  ],
  ['flat', taking(0, 0, (list, _, budget) => flattened(list, budget))],
  ['includes', taking(1, 1, (list, [value], budget) => list.includes(comparable(list, value, budget)))],
  ['indexOf', taking(1, 1, (list, [value], budget) => list.indexOf(comparable(list, value, budget)))],
  ['join', taking(0, 1, joinedList)],
  ['lastIndexOf', taking(1, 1, (list, [value], budget) => list.lastIndexOf(comparable(list, value, budget)))],
  [
    'slice',
    taking(0, 2, (list, [from, to], budget) =>
      counted(list.slice(optional(from, integerOf), optional(to, integerOf)), budget),
    ),
  ],
  ['toReversed', taking(0, 0, (list, _, budget) => counted(list, budget).toReversed())],
  ['toSorted', taking(0, 0, (list, _, budget) => sorted(list, budget))],
]);

/** They change the list, which is the same as a new one if nothing else has it. */
export const CHANGING_METHODS: ReadonlyMap<string, string> = new Map([
  ['reverse', 'toReversed'],
  ['sort', 'toSorted'],
]);
/** Methods whose result is a new list. */
export const NEW_LIST_METHODS: ReadonlySet<string> = new Set(
  'concat entries filter flat flatMap keys map reverse slice sort split toReversed toSorted values'.split(
    ' ',
  ),
);

export function flattened(list: List, budget: Budget): List {
  const flat: LocalValue[] = [];
  for (const each of list) {
    budget.spend(1);
    if (isList(each)) for (const inner of counted(each, budget)) flat.push(inner);
    else flat.push(each);
  }
  return flat;
}

const DIGITS_MAX = 100;
/** The least positive number has 1076 in base 2. */
const RADIX_DIGITS_MAX = 1100;

export const NUMBER_METHODS: ReadonlyMap<string, Method<number>> = new Map<string, Method<number>>([
  [
    'toFixed',
    taking(0, 1, (number, [digits = 0], budget) => {
      budget.read(DIGITS_MAX);
      return number.toFixed(integerOf(digits));
    }),
  ],
  [
    'toString',
    taking(0, 1, (number, [radix = 10], budget) => {
      budget.read(radix === 10 ? DIGITS_MAX : RADIX_DIGITS_MAX);
      return number.toString(integerOf(radix));
    }),
  ],
]);

const { atob, btoa, base64 } = createBase64();
const DNS_NAME_CHARS_MAX = 1024;
/** For a hash. */
const DNS_NAME_NODES = 500;

function ofText(of: (text: string) => string, factor = 4): LocalFunction {
  return one((value, { budget }) => {
    const text = textOf(value);
    budget.read(factor * text.length);
    return sized(of(text), budget);
  });
}

function one(
  of: (value: LocalValue, evaluation: Evaluation, constants: Constants | undefined) => LocalValue,
): LocalFunction {
  return (args, evaluation, constants) => (args.length > 1 ? decline() : of(args[0], evaluation, constants));
}

function numeric(of: (value: number) => LocalValue): LocalFunction {
  return one((value) => (typeof value === 'number' ? of(value) : decline()));
}

function extreme(of: (...values: number[]) => number): LocalFunction {
  return (args, { budget }) => {
    budget.spend(args.length);
    return of(...args.map((value) => (typeof value === 'number' ? value : decline())));
  };
}

function parsing(of: (text: string, radix: number | undefined) => number): LocalFunction {
  return ([value, radix, ...more], { budget }) =>
    more.length > 0 ? decline() : of(printed(value, budget), optional(radix, integerOf));
}

function ofObject(of: (object: LocalObject) => LocalValue): LocalFunction {
  return one((value, { budget }) => {
    if (!isObject(value)) return decline();
    for (const key of Object.keys(value)) {
      budget.spend(3);
      budget.read(key.length);
    }
    return of(value);
  });
}

/** Sets an own member, as in a literal. */
export function setMember(
  object: Record<string, LocalValue>,
  key: LocalValue,
  value: LocalValue,
  budget: Budget,
): void {
  const name = typeof key === 'number' ? `${key}` : textOf(key);
  budget.read(name.length);
  acceptKey(name);
  object[name] = value;
}

function fromEntries(value: LocalValue, { budget }: Evaluation): LocalValue {
  const object: Record<string, LocalValue> = {};
  if (!isList(value)) return decline();
  for (const entry of counted(value, budget)) {
    if (!isList(entry)) return decline();
    setMember(object, entry[0], entry[1], budget);
  }
  return object;
}

function stringify([value, replacer, space, ...more]: Arguments, { budget }: Evaluation): LocalValue {
  if ((replacer !== undefined && replacer !== null) || more.length > 0) return decline();
  if (typeof space === 'object') return decline();
  weigh(value, budget, indentOf(space));
  const text = JSON.stringify(value, null, typeof space === 'boolean' ? undefined : space) as
    | string
    | undefined;
  if (text !== undefined) budget.read(text.length);
  return text;
}

/** Characters per level. */
function indentOf(space: LocalValue): number {
  if (typeof space === 'string') return Math.min(10, space.length);
  return typeof space === 'number' && space >= 1 ? Math.min(10, Math.trunc(space)) : 0;
}

/** Its size as text, before it is made. */
function weigh(value: LocalValue, budget: Budget, step: number, indent = 0): void {
  budget.spend(1);
  // Of its line and, with members, of the line that ends it.
  budget.read(2 * indent);
  if (typeof value === 'string') budget.read(value.length);
  if (isList(value)) for (const each of value) weigh(each, budget, step, indent + step);
  else if (isObject(value)) {
    for (const key of Object.keys(value)) {
      budget.read(key.length);
      weigh(value[key], budget, step, indent + step);
    }
  }
}

function jsonParse(value: LocalValue, { budget }: Evaluation): LocalValue {
  const text = textOf(value);
  budget.read(2 * text.length);
  const parsed: unknown = JSON.parse(text);
  acceptInput(parsed, budget);
  return parsed as LocalValue; // what JSON holds
}

/** Names of global functions, as they are called. */
export const FUNCTIONS: ReadonlyMap<string, LocalFunction> = new Map<string, LocalFunction>([
  ['Array.isArray', one((value) => isList(value))],
  ['Boolean', one((value) => Boolean(value))],
  ['JSON.parse', one(jsonParse)],
  ['JSON.stringify', stringify],
  ['Math.abs', numeric(Math.abs)],
  ['Math.ceil', numeric(Math.ceil)],
  ['Math.floor', numeric(Math.floor)],
  ['Math.max', extreme(Math.max)],
  ['Math.min', extreme(Math.min)],
  ['Math.round', numeric(Math.round)],
  ['Math.sign', numeric(Math.sign)],
  ['Math.trunc', numeric(Math.trunc)],
  ['Number', (args, { budget }) => (args.length === 1 ? numberOf(args[0], budget) : decline())],
  ['Number.isFinite', one((value) => Number.isFinite(value))],
  ['Number.isInteger', one((value) => Number.isInteger(value))],
  ['Number.isNaN', one((value) => Number.isNaN(value))],
  ['Number.isSafeInteger', one((value) => Number.isSafeInteger(value))],
  ['Number.parseFloat', parsing(parseFloat)],
  ['Number.parseInt', parsing(parseInt)],
  ['Object.entries', ofObject((object) => Object.entries(object))],
  ['Object.fromEntries', one(fromEntries)],
  [
    'Object.hasOwn',
    ([object, key, ...more]) =>
      isObject(object) && more.length === 0 ? Object.hasOwn(object, textOf(key)) : decline(),
  ],
  ['Object.keys', ofObject((object) => Object.keys(object))],
  ['Object.values', ofObject((object) => Object.values(object))],
  ['String', (args, { budget }) => (args.length === 1 ? printed(args[0], budget) : decline())],
  ['atob', ofText(atob)],
  ['base64.decode', ofText(base64.decode, 8)],
  ['base64.encode', ofText(base64.encode, 16)],
  ['btoa', ofText(btoa)],
  ['decodeURIComponent', ofText(decodeURIComponent)],
  ['encodeURIComponent', ofText(encodeURIComponent)],
  ['isFinite', one((value, { budget }) => Number.isFinite(numberOf(value, budget)))],
  ['isNaN', one((value, { budget }) => Number.isNaN(numberOf(value, budget)))],
  ['parseFloat', parsing(parseFloat)],
  ['parseInt', parsing(parseInt)],
  [
    'virtualToHostDNS',
    one((value, { budget }, constants) => {
      const text = textOf(value);
      if (constants === undefined || text.length > DNS_NAME_CHARS_MAX) return decline();
      budget.spend(DNS_NAME_NODES);
      return sized(constants.virtualToHostDNS(text), budget);
    }),
  ],
]);
/** The namespaces of these functions. */
export const NAMESPACES: ReadonlySet<string> = new Set(
  [...FUNCTIONS.keys()].flatMap((name) => (name.includes('.') ? [name.slice(0, name.indexOf('.'))] : [])),
);
