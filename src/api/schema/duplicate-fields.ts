/** Fields that a JSON text names twice: `JSON.parse` keeps the last one silently, a Kubernetes server says so. */

import { FIELD_PROBLEMS_MAX } from '../limits.ts';

/** Paths in the order of the text, `spec.ports[0].port`. The text must be valid JSON. */
export function duplicateFields(text: string): string[] {
  const found: string[] = [];
  const scanner = new Scanner(text);
  scanner.value('', found);
  return found;
}

class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(path: string, found: string[]): void {
    this.#space();
    const first = this.#text[this.#at];
    if (first === '{') this.#object(path, found);
    else if (first === '[') this.#array(path, found);
    else if (first === '"') this.#string();
    else
      while (this.#at < this.#text.length && !',]} \t\r\n'.includes(this.#text[this.#at] ?? ',')) this.#at++;
  }

  #object(path: string, found: string[]): void {
    const seen = new Set<string>();
    this.#at++;
    for (;;) {
      this.#space();
      if (this.#ends('}')) return;
      const raw = this.#string();
      const key = raw.includes('\\') ? (JSON.parse(raw) as string) : raw.slice(1, -1); // a JSON string
      const place = path === '' ? key : `${path}.${key}`;
      if (seen.has(key) && found.length < FIELD_PROBLEMS_MAX) found.push(place);
      seen.add(key);
      this.#space();
      this.#at++; // the colon
      this.value(place, found);
      this.#space();
      if (this.#text[this.#at] === ',') this.#at++;
    }
  }

  #array(path: string, found: string[]): void {
    this.#at++;
    for (let index = 0; ; index++) {
      this.#space();
      if (this.#ends(']')) return;
      this.value(`${path}[${index}]`, found);
      this.#space();
      if (this.#text[this.#at] === ',') this.#at++;
    }
  }

  /** True, and past it, at the closing bracket; true at the end of the text too, so that no text loops. */
  #ends(bracket: string): boolean {
    if (this.#at >= this.#text.length) return true;
    if (this.#text[this.#at] !== bracket) return false;
    this.#at++;
    return true;
  }

  #string(): string {
    const start = this.#at;
    let end = this.#text.indexOf('"', start + 1);
    while (end >= 0 && isEscaped(this.#text, end)) end = this.#text.indexOf('"', end + 1);
    this.#at = end < 0 ? this.#text.length : end + 1;
    return this.#text.slice(start, this.#at);
  }

  #space(): void {
    while (' \t\r\n'.includes(this.#text[this.#at] ?? 'x')) this.#at++;
  }
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text[at - 1 - slashes] === '\\') slashes++;
  return slashes % 2 === 1;
}
