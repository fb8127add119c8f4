/** Random expressions of the whole accepted language, most of them near the part that the daemon evaluates itself, and random inputs. */

import { parseJson, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import type { Random } from '../../../src/base/random.ts';
import { hostileExpression } from '../../attack/hostile-grammar.ts';

const TEXTS = [
  '', 'a', 'team-checkout', 'a,b,c', 'web.shop.svc', 'https://web.shop.svc:8080/x?y=1', 'key=value', ' padded ', '10.0.0.1', '007', '1e3', '-0', '0x10',
  'Straße', 'İI', 'ǆ', 'Grüße 🌍', '\ud83c', '\udf0dx', '__proto__', 'constructor', 'toString', 'length', 'undefined', 'dGVhbQ==', '{"a":[1,{"b":null}]}', '$&$1',
  '%20', '%', '4294967295', '4294967294', '12345678901', 'aXbXc', '\u2028', '\0', 'null', 'true',
]; // prettier-ignore
const NUMBERS = [
  '0', '-0', '1', '2', '3', '-1', '1.5', '443', '8080', '65536', '9007199254740991', '9007199254740992', '12345678901234567890', '1e16', '1e21', '1e400', '-1e400',
  '5e-324', '0.1',
]; // prettier-ignore
const KEYS = [
  'a',
  'b',
  'name',
  'ip',
  'port',
  'x/y',
  '0',
  '1',
  '10',
  'length',
  'constructor',
  'toString',
  '__proto__',
  '4294967295',
  '9999999999',
  '\ud800',
  '',
  'toJSON',
];

function pickFrom<T>(random: Random, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)] as T; // random is below 1
}

function jsonText(random: Random, depth: number): string {
  const kind = random() * (depth > 2 ? 5 : 8);
  if (kind < 3) return JSON.stringify(pickFrom(random, TEXTS));
  if (kind < 4) return pickFrom(random, NUMBERS);
  if (kind < 5) return pickFrom(random, ['true', 'false', 'null', '1', '[]', '{}']);
  const length = Math.floor(random() * 4);
  const inner = (): string => jsonText(random, depth + 1);
  if (kind < 6.5) return `[${Array.from({ length }, inner).join()}]`;
  return objectText(random, length, inner);
}

function objectText(random: Random, length: number, inner: () => string): string {
  // Seldom those that are always declined.
  const key = (): string => (random() < 0.9 ? pickFrom(random, KEYS.slice(0, 10)) : pickFrom(random, KEYS));
  return `{${Array.from({ length }, () => `${JSON.stringify(key())}:${inner()}`).join()}}`;
}

/** As the daemon has it: read from JSON text, so with negative zeros, infinities, long integers and members named `__proto__`. */
export function randomValue(random: Random): JsonValue | undefined {
  return random() < 0.03 ? undefined : parseJson(jsonText(random, random() < 0.4 ? 3 : 0));
}

export function randomObject(random: Random): JsonObject | null {
  if (random() < 0.2) return null;
  const inner = (): string => jsonText(random, 1);
  const metadata = objectText(random, 3, inner);
  return parseJson(
    `{"metadata":{"name":"web","labels":${metadata},"annotations":${objectText(random, 3, inner)}},"subsets":[{"addresses":${jsonText(random, 0)}}]}`,
  ) as JsonObject;
}

const HOSTILE_SHARE = 0.15;
const DEPTH_MAX = 3;

/** Text that the front end accepts in most cases. */
export function randomExpression(random: Random): string {
  return random() < HOSTILE_SHARE ? hostileExpression(random).text : new Grammar(random).expression();
}

/** The names of arrow functions' parameters are in scope inside of them. */
class Grammar {
  readonly #random: Random;
  readonly #parameters: string[] = [];
  #depth = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  expression(): string {
    if (this.#depth >= DEPTH_MAX || this.#random() < 0.2) return this.#leaf();
    this.#depth += 1;
    const kinds = [
      () => this.#text(),
      () => this.#text(),
      () => this.#number(),
      () => this.#list(),
      () => this.#object(),
      () => this.#any(),
      () => this.#any(),
      () => this.#rare(),
    ];
    const text = this.#pick(kinds)();
    this.#depth -= 1;
    return text;
  }

  #pick<T>(from: readonly T[]): T {
    return pickFrom(this.#random, from);
  }

  #leaf(): string {
    const data = [
      'value', 'value', 'value', 'value', 'valueExists', 'context.path', 'context.vcluster.name', 'context.vcluster.config.a', 'context.vcluster',
      'context.virtualObject.metadata.name', 'context.virtualObject.metadata.labels', 'context.hostObject?.metadata.annotations?.a', 'context.hostObject',
      'context.virtualObject?.subsets[0].addresses', 'context.virtualObject.metadata.labels[value]', 'undefined', 'null', 'true', 'false', 'NaN', 'Infinity',
      JSON.stringify(this.#pick(TEXTS)), JSON.stringify(this.#pick(TEXTS)), this.#small(), this.#pick(NUMBERS), '[]', '({})', ...this.#parameters,
      ...this.#parameters,
    ]; // prettier-ignore
    return this.#pick(data);
  }

  #small(): string {
    return this.#pick(['0', '1', '2', '3', '5', '-1', '-2', '1.5', '10', '(-0)']);
  }

  #literal(): string {
    return JSON.stringify(
      this.#pick(['', 'a', ',', '-', '.', 'b', 'team-', '/', 'x', 'ß', '$&', '=', 'web', '\ud800']),
    );
  }

  #key(): string {
    return this.#pick([
      'a',
      'b',
      'name',
      'ip',
      'port',
      'length',
      'metadata',
      'labels',
      'toString',
      'valueOf',
      'hasOwnProperty',
      'trim',
      'map',
      'size',
      'at',
    ]);
  }

  #argument(): string {
    const e = (): string => this.expression();
    return this.#pick([
      () => this.#small(),
      () => this.#literal(),
      () => this.#literal(),
      e,
      () => 'undefined',
    ])();
  }

  #arguments(max = 3): string {
    return Array.from({ length: Math.floor(this.#random() * (max + 1)) }, () => this.#argument()).join(', ');
  }

  #text(): string {
    const e = (): string => this.expression();
    const methods = [
      'at', 'charAt', 'charCodeAt', 'codePointAt', 'concat', 'endsWith', 'includes', 'indexOf', 'lastIndexOf', 'padEnd', 'padStart', 'repeat', 'replace',
      'replaceAll', 'slice', 'split', 'startsWith', 'substr', 'substring', 'toLowerCase', 'toString', 'toUpperCase', 'trim', 'trimEnd', 'trimStart',
      'localeCompare', 'normalize', 'isWellFormed', 'toWellFormed', 'search', 'match', 'valueOf', 'trimLeft',
    ]; // prettier-ignore
    const receiver = (): string => this.#pick([e, e, () => `String(${e()})`, () => `\`\${${e()}}\``])();
    return this.#pick([
      () => `(${this.#literal()} + ${e()})`,
      () => `(${e()} + ${e()})`,
      () => `(${e()} + ${this.#small()} + ${this.#argument()})`,
      () => `\`x-\${${e()}}-\${${e()}}\``,
      () => `${receiver()}.${this.#pick(methods)}(${this.#arguments()})`,
      () => `${receiver()}.${this.#pick(methods)}(${this.#arguments(2)})`,
      () => `${receiver()}?.${this.#pick(methods)}(${this.#arguments(1)})`,
      () =>
        `${receiver()}.split(${this.#literal()}).${this.#pick(['join', 'map', 'slice', 'reverse', 'sort', 'at', 'concat'])}(${this.#arguments(1)})`,
      () => `${receiver()}.${this.#pick(['replace', 'replaceAll'])}(${this.#regexp()}, ${this.#literal()})`,
      () => `${receiver()}.${this.#pick(['match', 'search', 'split', 'replace'])}(${this.#regexp()})`,
      () =>
        `${receiver()}.match(${this.#regexp()})${this.#pick(['?.[0]', '?.[1]', '?.index', '.length', '?.groups'])}`,
      () => `${this.#regexp()}.test(${e()})`,
      () => `${this.#pick(['/a/g', '/[^x]/g', '/./gs'])}.test(${this.#pick(['value', '"aXbXc"'])})`,
      () => `String(${e()})`,
      () =>
        `${this.#pick(['atob', 'btoa', 'base64.encode', 'base64.decode', 'virtualToHostDNS', 'encodeURIComponent', 'decodeURIComponent'])}(${e()})`,
      () => `btoa(String(${e()}))`,
      () => `JSON.stringify(${e()}${this.#pick(['', ', null, 2', ', undefined, "\\t"'])})`,
      () => `JSON.parse(${e()})`,
      () => `typeof ${e()}`,
    ])();
  }

  #regexp(): string {
    const atom = (): string =>
      this.#pick([
        'a',
        '.',
        '[^a-z]',
        '\\d',
        '\\w',
        '\\b',
        '^',
        '$',
        'x',
        '-',
        'team',
        '\\/',
        '\\.',
        '\\s',
        '[.,]',
        '\\u00df',
        '🌍',
        '\\0',
      ]);
    const part = (): string =>
      this.#pick([
        atom,
        atom,
        () => `${atom()}${this.#pick(['*', '+', '?', '*?', '+?', '??', '{2}', '{1,}'])}`,
        () => `(${atom()}|${atom()}${atom()})`,
        () => `(?:${atom()}|)`,
        () => `(${atom()})?`,
        () => `(?=${atom()})`,
        () => '\\1',
      ])();
    const parts = Array.from({ length: 1 + Math.floor(this.#random() * 3) }, part);
    return `/${parts.join(this.#pick(['', '', '|']))}/${this.#pick(['', '', 'g', 'g', 'm', 's', 'gs', 'i', 'u', 'y'])}`;
  }

  #number(): string {
    const e = (): string => this.expression();
    const operators = [
      '-',
      '*',
      '/',
      '%',
      '**',
      '&',
      '|',
      '^',
      '<<',
      '>>',
      '>>>',
      '<',
      '>',
      '<=',
      '>=',
      '===',
      '!==',
      '==',
      '!=',
    ];
    const functions = [
      'Number', 'Boolean', 'parseInt', 'parseFloat', 'isNaN', 'isFinite', 'Number.isInteger', 'Number.isFinite', 'Number.isNaN', 'Number.isSafeInteger',
      'Number.parseInt', 'Number.parseFloat', 'Math.abs', 'Math.ceil', 'Math.floor', 'Math.max', 'Math.min', 'Math.round', 'Math.sign', 'Math.trunc',
      'Math.sqrt', 'Math.hypot', 'Array.isArray',
    ]; // prettier-ignore
    return this.#pick([
      () => `(${e()} ${this.#pick(operators)} ${e()})`,
      () => `(${e()} ${this.#pick(operators)} ${this.#argument()})`,
      () => `(${this.#pick(['-', '+', '~', '!', 'void '])}${e()})`,
      () => `${this.#pick(functions)}(${e()})`,
      () => `${this.#pick(functions)}(${this.#arguments()})`,
      () =>
        `Number(${e()}).${this.#pick(['toFixed', 'toString', 'toPrecision', 'valueOf'])}(${this.#arguments(1)})`,
      () => `${e()}.length`,
      () => `${e()}?.length`,
    ])();
  }

  #arrow(): string {
    const parameters = this.#pick([
      ['x'],
      ['x', 'i'],
      ['[x, y]'],
      ['{ a, name: n }'],
      ['value'],
      [],
      ['x', 'i', 'all'],
      ['x = 1'],
      ['[x, ...y]'],
      ['{ toString }'],
    ]);
    const names = parameters.flatMap((parameter) => parameter.match(/\b(?!name\b)[a-z]+(?! ?:)\b/gi) ?? []);
    this.#parameters.push(...names);
    const body = this.expression();
    this.#parameters.length -= names.length;
    return `(${parameters.join(', ')}) => ${this.#pick([`(${body})`, `(${body})`, `(${body})`, `{ return ${body}; }`])}`;
  }

  #list(): string {
    const e = (): string => this.expression();
    const callbacks = [
      'every',
      'filter',
      'find',
      'flatMap',
      'map',
      'some',
      'findIndex',
      'findLast',
      'forEach',
      'reduce',
      'sort',
    ];
    const methods = [
      'at',
      'concat',
      'flat',
      'includes',
      'indexOf',
      'join',
      'lastIndexOf',
      'slice',
      'reverse',
      'sort',
      'toReversed',
      'toSorted',
      'with',
      'pop',
      'push',
      'keys',
      'fill',
    ];
    const list = (): string =>
      this.#pick([
        e,
        e,
        () => `[${e()}, ${e()}]`,
        () => `String(${e()}).split(${this.#literal()})`,
        () => `Object.entries(${e()})`,
        () => `[...${e()}]`,
      ])();
    return this.#pick([
      () => `[${e()}, ${e()}]`,
      () => `[...${e()}, ${e()}]`,
      () => `${list()}.${this.#pick(callbacks)}(${this.#arrow()})`,
      () => `${list()}.${this.#pick(callbacks)}(${this.#arrow()})`,
      () => `${list()}?.${this.#pick(callbacks)}(${this.#arrow()})`,
      () =>
        `${list()}.${this.#pick(callbacks)}(${this.#pick(['Boolean', 'String', 'Number', 'parseInt', 'JSON.stringify'])})`,
      () => `${list()}.${this.#pick(methods)}(${this.#arguments(2)})`,
      () => `${list()}.${this.#pick(methods)}(${this.#arguments(2)})`,
      () => `${list()}[${this.#argument()}]`,
      () =>
        `Object.${this.#pick(['keys', 'values', 'entries', 'fromEntries', 'getOwnPropertyNames', 'isFrozen'])}(${e()})`,
    ])();
  }

  #object(): string {
    const e = (): string => this.expression();
    return this.#pick([
      () => `({ a: ${e()}, [${e()}]: ${e()} })`,
      () => `({ ...${e()}, ${this.#key()}: ${e()} })`,
      () => `({ ...${e()}, "4294967295": 1, 7: ${e()}, "": 2 })`,
      () => `Object.assign({}, ${e()}, ${e()})`,
      () => `Object.assign(${e()}, ${e()})`,
      () =>
        `Object.fromEntries(Object.entries(${e()}).${this.#pick(['map', 'filter'])}(([k, v]) => ${this.#pick(['[k, v]', '[`x-${k}`, v]', '[v, k]', 'k !== "a"', 'v'])}))`,
      () => `Object.fromEntries([[${e()}, ${e()}], [${e()}, ${e()}]])`,
      () => `Object.hasOwn(${e()}, ${e()})`,
      () => `${e()}.${this.#key()}`,
      () => `${e()}?.${this.#key()}.${this.#key()}`,
      () => `${e()}[${e()}]`,
      () => `(${e()}?.[${e()}]).${this.#key()}`,
    ])();
  }

  #any(): string {
    const e = (): string => this.expression();
    return this.#pick([
      () => `(${e()} ? ${e()} : ${e()})`,
      () => `(${e()} ?? ${e()})`,
      () => `(${e()} && ${e()})`,
      () => `(${e()} || ${e()})`,
      () => `(${e()} === ${e()} ? ${e()} : ${e()})`,
      () => `[${e()}][0]`,
      () => `({ a: ${e()} }).a`,
    ])();
  }

  /** Outside of the subset. */
  #rare(): string {
    const e = (): string => this.expression();
    return this.#pick([
      () => `(${e()}, ${e()})`,
      () => `(value = ${e()})`,
      () => `(value.a = ${e()}, value)`,
      () => `(delete value.a, value)`,
      () => `(${e()} in ${e()})`,
      () => `(${e()} instanceof Object)`,
      () => `((x) => ${e()})(${e()})`,
      () => `new Set(${e()}).size`,
      () => `new Date(${e()})`,
      () => `new Map([[${e()}, ${e()}]])`,
      () => `(() => { for (const x of [${e()}]) return x; })()`,
      () => `${e()}.toString()`,
      () => `${e()}.hasOwnProperty(${e()})`,
      () => `String.raw\`\${${e()}}\``,
      () => `Array.from(${e()}, ${this.#arrow()})`,
      () => `Reflect.ownKeys(${e()})`,
      () => `Symbol.iterator`,
      () => `Math`,
    ])();
  }
}
