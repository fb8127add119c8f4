/**
 * Label selectors as text, in Kubernetes' grammar (`labels.Parse` of apimachinery): `app=web,release in (a,b),!x`. Values and operators are preserved; blanks are normalized.
 */

export type SelectorOperator = 'exists' | '!' | '=' | '==' | '!=' | 'in' | 'notin' | '>' | '<';

export interface SelectorRequirement {
  readonly key: string;
  readonly operator: SelectorOperator;
  /** None for `exists` and `!`, one for the comparisons, one or more for the sets. */
  readonly values: readonly string[];
}

export type SelectorParse =
  | { readonly ok: true; readonly requirements: readonly SelectorRequirement[] }
  | { readonly ok: false; readonly message: string };

interface Token {
  readonly text: string;
  readonly isWord: boolean;
  /** 0-based, UTF-16 units. */
  readonly at: number;
}

const TOKEN = /\s*(?:(==|!=|[=!(),<>])|([^\s=!(),<>]+))/y;
const COMPARISONS: ReadonlySet<string> = new Set(['=', '==', '!=', '>', '<']);

/** Never throws. Empty text selects everything and has no requirements. */
export function parseSelector(text: string): SelectorParse {
  const parser = new Parser(tokensOf(text));
  try {
    return { ok: true, requirements: parser.selector() };
  } catch (error) {
    if (error instanceof UnexpectedToken) return { ok: false, message: error.message };
    throw error;
  }
}

export function printSelector(requirements: readonly SelectorRequirement[]): string {
  return requirements.map(printRequirement).join(',');
}

function printRequirement({ key, operator, values }: SelectorRequirement): string {
  switch (operator) {
    case 'exists':
      return key;
    case '!':
      return `!${key}`;
    case 'in':
    case 'notin':
      return `${key} ${operator} (${values.join(',')})`;
    case '=':
    case '==':
    case '!=':
    case '>':
    case '<':
      return `${key}${operator}${values[0] ?? ''}`;
  }
}

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  const end = text.trimEnd().length;
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < end) {
    const match = TOKEN.exec(text);
    if (match === null) break;
    const token = match[1] ?? match[2] ?? '';
    tokens.push({ text: token, isWord: match[2] !== undefined, at: TOKEN.lastIndex - token.length });
  }
  return tokens;
}

class UnexpectedToken extends Error {}

class Parser {
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  selector(): SelectorRequirement[] {
    const requirements: SelectorRequirement[] = [];
    if (this.#peek() === undefined) return requirements;
    for (;;) {
      requirements.push(this.#requirement());
      if (this.#peek() === undefined) return requirements;
      this.#expect(',');
    }
  }

  #requirement(): SelectorRequirement {
    if (this.#accept('!')) return { key: this.#word('a label key'), operator: '!', values: [] };
    const key = this.#word('a label key');
    const token = this.#peek();
    if (token === undefined || token.text === ',') return { key, operator: 'exists', values: [] };
    if (token.isWord && (token.text === 'in' || token.text === 'notin')) {
      this.#next++;
      return { key, operator: token.text, values: this.#set() };
    }
    if (!token.isWord && COMPARISONS.has(token.text)) {
      this.#next++;
      return { key, operator: token.text as SelectorOperator, values: [this.#value()] }; // a member of COMPARISONS
    }
    throw this.#unexpected('an operator or ","');
  }

  /** An empty value is one. */
  #value(): string {
    const token = this.#peek();
    return token === undefined || token.text === ',' ? '' : this.#word('a value');
  }

  #set(): string[] {
    this.#expect('(');
    const values = [this.#member()];
    while (this.#accept(',')) values.push(this.#member());
    this.#expect(')');
    return values;
  }

  #member(): string {
    const token = this.#peek();
    if (token === undefined || !token.isWord) return '';
    this.#next++;
    return token.text;
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#next];
  }

  #accept(symbol: string): boolean {
    const token = this.#peek();
    if (token === undefined || token.isWord || token.text !== symbol) return false;
    this.#next++;
    return true;
  }

  #expect(symbol: string): void {
    if (!this.#accept(symbol)) throw this.#unexpected(`"${symbol}"`);
  }

  #word(what: string): string {
    const token = this.#peek();
    if (token === undefined || !token.isWord) throw this.#unexpected(what);
    this.#next++;
    return token.text;
  }

  #unexpected(wanted: string): UnexpectedToken {
    const token = this.#peek();
    const found = token === undefined ? 'the end' : `"${token.text}" at ${token.at + 1}`;
    return new UnexpectedToken(`found ${found}, expected ${wanted}`);
  }
}
