/** Label selectors as text, in Kubernetes' grammar (`labels.Parse` of apimachinery): `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`. */

import { labelKeyProblem, labelValueProblem } from './names.ts';
import type { StringMap } from './object.ts';

export type SelectorOperator = 'exists' | '!' | '=' | '==' | '!=' | 'in' | 'notin' | '>' | '<';

export interface SelectorRequirement {
  readonly key: string;
  readonly operator: SelectorOperator;
  /** None for `exists` and `!`, one for the comparisons, one or more for the sets. */
  readonly values: readonly string[];
}

export type LabelPredicate = (labels: StringMap) => boolean;

/** The text is not a label selector. The message is that of a kube-apiserver. */
export class SelectorError extends Error {
  override readonly name = 'SelectorError';
}

/** What may stand at a place: the first or a further key, a key after `!`, a value, an operator, or one of the symbols. */
type Expected = 'first' | 'next' | 'key' | 'value' | 'operator' | '(' | ')' | ',';

/** The text does not follow the grammar. */
export class UnexpectedToken extends SelectorError {
  readonly expected: Expected;
  /** `''` at the end. */
  readonly found: string;
  /** 1-based, UTF-16 units. */
  readonly column: number;

  constructor(expected: Expected, { text, at }: Token) {
    super(EXPECTED[expected].replace('%', () => text));
    this.expected = expected;
    this.found = text;
    this.column = at + 1;
  }
}

const EXPECTED: Readonly<Record<Expected, string>> = {
  first: "found '%', expected: !, identifier, or 'end of string'",
  next: "found '%', expected: identifier after ','",
  key: "unable to parse requirement: found '%', expected: identifier",
  value: "unable to parse requirement: found '%', expected: identifier",
  operator: "unable to parse requirement: found '%', expected: in, notin, =, ==, !=, gt, lt",
  '(': "unable to parse requirement: found '%' expected: '('",
  ')': "unable to parse requirement: found '%', expected: ',' or ')'",
  ',': "found '%', expected: ',' or 'end of string'",
};

const REQUIREMENTS_MAX = 200;

/** Throws a {@link SelectorError} for what a kube-apiserver rejects. An empty selector matches everything. */
export function parseLabelSelector(text: string): LabelPredicate {
  const requirements: SelectorRequirement[] = [];
  for (const requirement of selectorRequirements(text, checkKey)) {
    checkValues(requirement);
    requirements.push(requirement);
    if (requirements.length > REQUIREMENTS_MAX)
      throw new SelectorError(`the selector has more than ${REQUIREMENTS_MAX} requirements`);
  }
  return (labels) => requirements.every((requirement) => matches(requirement, labels));
}

function checkKey(key: string): void {
  const problem = labelKeyProblem(key);
  if (problem !== undefined) throw invalid('<nil>', key, problem);
}

/** Throws a {@link SelectorError} for a value that no label has, or that is not comparable. */
export function checkValues({ key, operator, values }: SelectorRequirement): void {
  for (const value of values) {
    if (operator === '>' || operator === '<') {
      if (!/^-?\d{1,19}$/.test(value))
        throw invalid('values[0]', value, "for 'Gt', 'Lt' operators, the value must be an integer");
    } else {
      const problem = labelValueProblem(value);
      if (problem !== undefined) throw invalid(`values[0][${key}]`, value, problem);
    }
  }
}

function invalid(path: string, value: string, problem: string): SelectorError {
  const detail = `${path}: Invalid value: ${JSON.stringify(value)}: ${problem}`;
  return new SelectorError(`unable to parse requirement: ${detail}`);
}

function matches({ key, operator, values }: SelectorRequirement, labels: StringMap): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  const [first = ''] = values;
  switch (operator) {
    case 'exists':
      return value !== undefined;
    case '!':
      return value === undefined;
    case '=':
    case '==':
    case 'in':
      return value !== undefined && values.includes(value);
    case '!=':
    case 'notin':
      return value === undefined || !values.includes(value);
    case '>':
      return value !== undefined && /^-?\d+$/.test(value) && BigInt(value) > BigInt(first);
    case '<':
      return value !== undefined && /^-?\d+$/.test(value) && BigInt(value) < BigInt(first);
  }
}

/** As objects of Kubernetes have one (`metav1.LabelSelector`). */
export interface LabelSelector {
  readonly matchLabels: Readonly<Record<string, string>>;
  readonly matchExpressions: readonly {
    readonly key: string;
    readonly operator: keyof typeof OPERATORS;
    readonly values: readonly string[];
  }[];
}

const OPERATORS = { In: 'in', NotIn: 'notin', Exists: 'exists', DoesNotExist: '!' } as const;

/** As text; '' selects everything. */
export function printLabelSelector({ matchLabels, matchExpressions }: LabelSelector): string {
  return printSelector([
    ...Object.entries(matchLabels).map(([key, value]) => ({ key, operator: '=', values: [value] }) as const),
    ...matchExpressions.map(({ key, operator, values }) => ({ key, operator: OPERATORS[operator], values })),
  ]);
}

/** Values and operators are preserved; blanks are normalized. */
export function printSelector(requirements: readonly SelectorRequirement[]): string {
  return requirements.map(printRequirement).join(',');
}

function printRequirement({ key, operator, values }: SelectorRequirement): string {
  if (operator === 'exists') return key;
  if (operator === '!') return `!${key}`;
  if (operator === 'in' || operator === 'notin') return `${key} ${operator} (${values.join(',')})`;
  return `${key}${operator}${values[0] ?? ''}`;
}

interface Token {
  /** `''` at the end. */
  readonly text: string;
  readonly at: number;
}

const SYMBOLS: ReadonlySet<string> = new Set(['', '==', '!=', '=', '!', '(', ')', ',', '<', '>']);
const COMPARISONS: ReadonlySet<string> = new Set(['=', '==', '!=', '>', '<']);

/**
 * Empty text selects everything and has no requirements. Throws an {@link UnexpectedToken} where the text does not follow the grammar, and
 * what `checkKey` throws for a key, which a kube-apiserver checks before it reads on.
 */
export function* selectorRequirements(
  text: string,
  checkKey?: (key: string) => void,
): Generator<SelectorRequirement> {
  const tokens = new Tokens(text);
  if (tokens.peek() === '') return;
  for (let expected: Expected = 'first'; ; expected = 'next') {
    yield requirementOf(tokens, expected, checkKey);
    if (tokens.peek() === '') return;
    tokens.require(',');
  }
}

function requirementOf(
  tokens: Tokens,
  expected: Expected,
  checkKey?: (key: string) => void,
): SelectorRequirement {
  const isAbsent = tokens.accept('!');
  const key = tokens.word(isAbsent ? 'key' : expected);
  checkKey?.(key);
  if (isAbsent) return { key, operator: '!', values: [] };
  const operator = tokens.peek();
  if (operator === '' || operator === ',') return { key, operator: 'exists', values: [] };
  if (operator === 'in' || operator === 'notin') {
    tokens.accept(operator);
    return { key, operator, values: setOf(tokens) };
  }
  if (!COMPARISONS.has(operator)) throw tokens.unexpected('operator');
  tokens.accept(operator);
  const isEmpty = tokens.peek() === '' || tokens.peek() === ',';
  const value = isEmpty ? '' : tokens.word('value');
  return { key, operator: operator as SelectorOperator, values: [value] }; // a member of COMPARISONS
}

/** Members may be empty. */
function setOf(tokens: Tokens): string[] {
  const values: string[] = [];
  tokens.require('(');
  do values.push(SYMBOLS.has(tokens.peek()) ? '' : tokens.word('value'));
  while (tokens.accept(','));
  tokens.require(')');
  return values;
}

class Tokens {
  readonly #text: string;
  readonly #pattern = /\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)/y;
  #next: Token;

  constructor(text: string) {
    this.#text = text;
    this.#next = this.#read();
  }

  peek(): string {
    return this.#next.text;
  }

  accept(token: string): boolean {
    if (this.#next.text !== token) return false;
    this.#next = this.#read();
    return true;
  }

  require(symbol: '(' | ')' | ','): void {
    if (!this.accept(symbol)) throw this.unexpected(symbol);
  }

  word(expected: Expected): string {
    const { text } = this.#next;
    if (SYMBOLS.has(text)) throw this.unexpected(expected);
    this.accept(text);
    return text;
  }

  unexpected(expected: Expected): UnexpectedToken {
    return new UnexpectedToken(expected, this.#next);
  }

  #read(): Token {
    const text = this.#pattern.exec(this.#text)?.[1] ?? '';
    return { text, at: this.#pattern.lastIndex - text.length };
  }
}
