/** Label selectors in a query, such as `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`. */

import type { StringMap } from '../../../kube/object.ts';
import { labelKeyProblem, labelValueProblem } from '../../../kube/names.ts';
import { SELECTOR_REQUIREMENTS_MAX } from '../../limits.ts';
import { badRequest } from '../../status.ts';

type Operator = 'in' | 'notin' | 'exists' | 'absent' | 'gt' | 'lt';

interface Requirement {
  readonly key: string;
  readonly operator: Operator;
  readonly values: readonly string[];
}

export type LabelPredicate = (labels: StringMap) => boolean;

/** Throws a 400 `StatusError` when the text does not parse. An empty selector matches everything. */
export function parseLabelSelector(text: string): LabelPredicate {
  const requirements = new Parser(text).parse();
  return (labels) => requirements.every((requirement) => matches(requirement, labels));
}

function matches({ key, operator, values }: Requirement, labels: StringMap): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'exists':
      return value !== undefined;
    case 'absent':
      return value === undefined;
    case 'in':
      return value !== undefined && values.includes(value);
    case 'notin':
      return value === undefined || !values.includes(value);
    case 'gt':
      return value !== undefined && /^-?\d+$/.test(value) && BigInt(value) > BigInt(values[0] ?? 0);
    case 'lt':
      return value !== undefined && /^-?\d+$/.test(value) && BigInt(value) < BigInt(values[0] ?? 0);
  }
}

const SYMBOLS = ['==', '!=', '=', '!', '(', ')', ',', '<', '>'];

class Parser {
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(text: string) {
    this.#tokens = tokenize(text);
  }

  parse(): Requirement[] {
    const requirements: Requirement[] = [];
    const first = this.#peek();
    if (first === '') return requirements;
    if (isSymbol(first) && first !== '!') {
      throw badRequest(`found '${first}', expected: !, identifier, or 'end of string'`);
    }
    for (;;) {
      requirements.push(this.#requirement());
      if (requirements.length > SELECTOR_REQUIREMENTS_MAX) {
        throw badRequest(`the selector has more than ${SELECTOR_REQUIREMENTS_MAX} requirements`);
      }
      const next = this.#next();
      if (next === '') return requirements;
      if (next !== ',') throw badRequest(`found '${next}', expected: ',' or 'end of string'`);
      const after = this.#peek();
      if (after === '' || (isSymbol(after) && after !== '!')) {
        throw badRequest(`found '${after}', expected: identifier after ','`);
      }
    }
  }

  #requirement(): Requirement {
    const isAbsent = this.#peek() === '!';
    if (isAbsent) this.#next();
    const key = this.#identifier();
    const keyProblem = labelKeyProblem(key);
    if (keyProblem) throw problem(`<nil>: Invalid value: ${JSON.stringify(key)}: ${keyProblem}`);
    const next = this.#peek();
    if (isAbsent) return { key, operator: 'absent', values: [] };
    if (next === '' || next === ',') return { key, operator: 'exists', values: [] };
    return this.#comparison(key, this.#next());
  }

  #comparison(key: string, operator: string): Requirement {
    switch (operator) {
      case '=':
      case '==':
        return { key, operator: 'in', values: [this.#value(key)] };
      case '!=':
        return { key, operator: 'notin', values: [this.#value(key)] };
      case 'in':
      case 'notin':
        return { key, operator, values: this.#set(key) };
      case '>':
      case '<':
        return { key, operator: operator === '>' ? 'gt' : 'lt', values: [this.#integer()] };
      default:
        throw problem(`found '${operator}', expected: in, notin, =, ==, !=, gt, lt`);
    }
  }

  #identifier(): string {
    const token = this.#next();
    if (token === '' || isSymbol(token)) throw problem(`found '${token}', expected: identifier`);
    return token;
  }

  #value(key: string): string {
    const next = this.#peek();
    if (next === '' || next === ',') return '';
    return checked(key, this.#identifier());
  }

  #integer(): string {
    const token = this.#next();
    if (/^-?\d{1,19}$/.test(token)) return token;
    const value = JSON.stringify(token);
    throw problem(
      `values[0]: Invalid value: ${value}: for 'Gt', 'Lt' operators, the value must be an integer`,
    );
  }

  #set(key: string): string[] {
    const open = this.#next();
    if (open !== '(') throw problem(`found '${open}' expected: '('`);
    const values: string[] = [];
    for (;;) {
      const token = this.#next();
      if (token === ')') return values.length === 0 ? [''] : values;
      if (token === '') throw problem("found '', expected: ',' or ')'");
      if (token !== ',') values.push(checked(key, token));
    }
  }

  #peek(): string {
    return this.#tokens[this.#at] ?? '';
  }

  #next(): string {
    return this.#tokens[this.#at++] ?? '';
  }
}

function checked(key: string, value: string): string {
  const valueProblem = labelValueProblem(value);
  if (valueProblem) {
    throw problem(`values[0][${key}]: Invalid value: ${JSON.stringify(value)}: ${valueProblem}`);
  }
  return value;
}

function isSymbol(token: string): boolean {
  return SYMBOLS.includes(token);
}

function tokenize(text: string): string[] {
  const tokens: string[] = [];
  let rest = text.trimStart();
  while (rest !== '') {
    const symbol = SYMBOLS.find((candidate) => rest.startsWith(candidate));
    const token = symbol ?? /^[^=!(),<>\s]+/.exec(rest)?.[0] ?? rest.charAt(0);
    tokens.push(token);
    rest = rest.slice(token.length).trimStart();
  }
  return tokens;
}

function problem(detail: string): Error {
  return badRequest(`unable to parse requirement: ${detail}`);
}
