/** Which regular expressions V8 runs in time linear in the text, once they backtrack too often. A test compares the answers with V8's own, which
 * gives them only to a process with a flag. */

/** What V8's linear engine does not take (`CanBeHandled` in `src/regexp/experimental/experimental-compiler.cc`); undefined: it takes it. */
export function notLinear(pattern: string, flags: string): string | undefined {
  const flag = /[diuv]/.exec(flags)?.[0];
  if (flag !== undefined) return `the flag ${flag}`;
  const plain = withoutTexts(pattern);
  const found = REFUSED.find(([form]) => form.test(plain));
  return found?.[1] ?? (scan(plain).replication > REPLICATION_MAX ? COUNTED : undefined);
}

const COUNTED = 'a large counted repetition, or counted repetitions inside of each other,';
/** A counted repetition is compiled as so many copies of what it repeats, and one inside of another as their product. */
const REPLICATION_MAX = 16;
const REFUSED: readonly (readonly [form: RegExp, what: string])[] = [
  [/\\[1-9k]/, 'a back-reference'],
  [/\(\?<?[=!]/, 'a lookaround'],
  [/\(\?[ms]{0,2}i/, 'the flag i'],
];

/** `(a+)+`, `(a?){30}`, `(a|a)*`: a repeated group that can match the same text in several ways. */
export function mayBacktrackOften(pattern: string): boolean {
  return scan(withoutTexts(pattern)).isNested;
}

/** Classes, and escapes other than references, as one character; what matches no text as `^`. */
export function withoutTexts(pattern: string): string {
  return pattern
    .replace(/\\(?![1-9k])[^]|\[(?:\\[^]|[^\]\\])*\]/g, (text) => (/^\\b$/i.test(text) ? '^' : 'x'))
    .replaceAll('$', '^');
}

/** A group, or an atom. */
class Part {
  replication = 1;
  /** It holds a repetition or an alternative. */
  isAmbiguous = false;
  /** One of its alternatives before the last matches the empty text. */
  hasNullable = false;
  isLastNullable: boolean;

  constructor(isEmpty: boolean) {
    this.isLastNullable = isEmpty;
  }

  get isNullable(): boolean {
    return this.hasNullable || this.isLastNullable;
  }

  nextAlternative(): void {
    this.isAmbiguous = true;
    this.hasNullable = this.isNullable;
    this.isLastNullable = true;
  }

  add(part: Part): void {
    this.replication = Math.max(this.replication, part.replication);
    this.isAmbiguous ||= part.isAmbiguous;
    this.isLastNullable &&= part.isNullable;
  }

  /** Whether it is repeated and could be repeated in several ways. */
  repeat(least: number, most: number): boolean {
    const isNested = this.isAmbiguous && most > 1;
    // V8 repeats a part that may be empty one time more, to find out whether it was.
    const copies = most < Infinity ? most : least > 0 && this.isNullable ? least + 1 : least;
    this.replication *= Math.max(1, copies);
    this.isAmbiguous = true;
    if (least === 0) this.hasNullable = true;
    return isNested;
  }
}

const OPENING = /\((?:\?(?:<?[=!]|[a-z-]*:|<[^>]{0,255}>))?/y;
const QUANTIFIER = /(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/y;

function scan(plain: string): { readonly replication: number; readonly isNested: boolean } {
  const groups: Part[] = [];
  let whole = new Part(true);
  let isNested = false;
  for (let at = 0; at < plain.length;) {
    const opening = matchAt(OPENING, plain, at);
    if (opening !== undefined) {
      groups.push(whole);
      whole = new Part(true);
      at += opening[0].length;
      continue;
    }
    const character = plain.charAt(at);
    at += character === '\\' ? 2 : 1;
    if (character === '|') {
      whole.nextAlternative();
      continue;
    }
    let part = new Part(character === '^');
    if (character === ')') [part, whole] = [whole, groups.pop() ?? whole];
    const quantifier = matchAt(QUANTIFIER, plain, at);
    if (quantifier !== undefined) {
      at += quantifier[0].length;
      isNested = part.repeat(...boundsOf(quantifier)) || isNested;
    }
    whole.add(part);
  }
  return { replication: whole.replication, isNested };
}

function boundsOf([, sign, least, comma, most = '']: RegExpExecArray): [least: number, most: number] {
  if (sign !== undefined) return [sign === '+' ? 1 : 0, sign === '?' ? 1 : Infinity];
  if (comma === undefined) return [Number(least), Number(least)];
  return [Number(least), most === '' ? Infinity : Number(most)];
}

function matchAt(form: RegExp, text: string, at: number): RegExpExecArray | undefined {
  form.lastIndex = at;
  return form.exec(text) ?? undefined;
}
