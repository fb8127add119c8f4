/** A JSON text in a string: what it contains, and the text with other strings at some places. The rest of it stays as it is written. */

import { parseExpressionAt, type Expression, type ObjectExpression } from 'acorn';
import { isDeeperThan, type JsonValue } from '../../base/json.ts';
import type { ConcretePath } from '../translate/types.ts';

/** As for the results of expressions. */
const CHARS_MAX = 1024 * 1024;
const DEPTH_MAX = 64;

interface Literal {
  readonly start: number;
  readonly end: number;
}

interface Replacement {
  readonly place: ConcretePath;
  readonly literal: string;
  readonly isKey?: boolean;
}

export class JsonText {
  readonly content: JsonValue;
  readonly #text: string;
  #root: Expression | undefined;
  /** The members of the objects that were searched; undefined for a key that is there twice. */
  readonly #members = new Map<ObjectExpression, ReadonlyMap<string, Expression | undefined>>();

  private constructor(text: string, content: JsonValue) {
    this.#text = text;
    this.content = content;
  }

  /** Undefined for a text that is not JSON, and for JSON without members. */
  static read(text: string): JsonText | { readonly problem: string } | undefined {
    if (!/^[\t\n\r ]*[[{]/u.test(text)) return undefined;
    if (text.length > CHARS_MAX) return { problem: `the JSON text has more than ${CHARS_MAX} characters` };
    let content: JsonValue;
    try {
      content = JSON.parse(text) as JsonValue; // what JSON.parse returns
    } catch {
      return undefined;
    }
    if (isDeeperThan(content, DEPTH_MAX))
      return { problem: `the JSON text is nested deeper than ${DEPTH_MAX} levels` };
    return new JsonText(text, content);
  }

  /** The string at a path at which `content` has one, as it is written; or the key on the way there that is in its object twice. */
  literalAt(path: ConcretePath): string | { readonly duplicateKey: string } {
    const found = this.#find(path);
    return 'duplicateKey' in found ? found : this.#text.slice(found.start, found.end);
  }

  with(replacements: readonly Replacement[]): string {
    const byStart = new Map<number, Literal & { readonly literal: string }>();
    for (const { place, literal, isKey = false } of replacements) {
      const found = isKey ? this.#findKey(place) : this.#find(place);
      if (!('duplicateKey' in found))
        byStart.set(found.start, { start: found.start, end: found.end, literal });
    }
    let result = '';
    let from = 0;
    for (const { start, end, literal } of [...byStart.values()].toSorted((a, b) => a.start - b.start)) {
      result += this.#text.slice(from, start) + literal;
      from = end;
    }
    return result + this.#text.slice(from);
  }

  #find(path: ConcretePath): Expression | { readonly duplicateKey: string } {
    let node = this.#tree();
    if (node === undefined) return { duplicateKey: '__proto__' };
    for (const step of path) {
      const below = this.#below(node, step);
      if (below === undefined) return { duplicateKey: String(step) };
      node = below;
    }
    return node;
  }

  #findKey(place: ConcretePath): Expression | { readonly duplicateKey: string } {
    const key = String(place.at(-1));
    const holder = this.#find(place.slice(0, -1));
    const member =
      'duplicateKey' in holder || this.#below(holder, key) === undefined || holder.type !== 'ObjectExpression'
        ? undefined
        : holder.properties.find(
            (one) => one.type === 'Property' && one.key.type === 'Literal' && one.key.value === key,
          );
    return member?.type === 'Property' ? member.key : { duplicateKey: key };
  }

  /** JSON is an expression of JavaScript, whose parser knows the positions. It rejects one text that `JSON.parse` accepts: `__proto__` twice. */
  #tree(): Expression | undefined {
    try {
      return (this.#root ??= parseExpressionAt(this.#text, 0, { ecmaVersion: 2025 }));
    } catch (error) {
      if (error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  #below(node: Expression, step: string | number): Expression | undefined {
    if (node.type === 'ArrayExpression') {
      const element = node.elements[Number(step)];
      return element?.type === 'SpreadElement' ? undefined : (element ?? undefined);
    }
    if (node.type !== 'ObjectExpression') return undefined;
    let members = this.#members.get(node);
    if (members === undefined) this.#members.set(node, (members = membersOf(node)));
    return members.get(String(step));
  }
}

function membersOf(node: ObjectExpression): ReadonlyMap<string, Expression | undefined> {
  const members = new Map<string, Expression | undefined>();
  for (const property of node.properties) {
    if (property.type !== 'Property' || property.key.type !== 'Literal') continue;
    const key = String(property.key.value);
    members.set(key, members.has(key) ? undefined : property.value);
  }
  return members;
}
