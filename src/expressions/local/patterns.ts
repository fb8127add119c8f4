/** The few regular expressions that the daemon evaluates: those whose cost is known from their form and the length of the text. No engine is trusted to
 * be linear. */

import { withoutTexts } from '../front-end/linear-regexp.ts';
import { decline, type Budget } from './budget.ts';
import { replacementOf, textOf } from './methods.ts';
import type { LocalValue } from './types.ts';

export interface Pattern {
  readonly regexp: RegExp;
  /** Steps for each character of the text, and for each two if it has an unbounded quantifier. */
  readonly steps: number;
  readonly isUnbounded: boolean;
}

const TEXT_MAX = 1024;
const STEPS_PER_NODE = 64;
/** Ways to match the same text, each of which an engine may try. */
const CHOICES_MAX = 16;
/** References, groups that look around, have names or flags, counted repetitions, quantified groups. */
const REFUSED = /\\[1-9k]|\(\?(?!:)|\{|\)[*+?]/;

/** Undefined: only the sandbox evaluates it. */
export function patternOf(source: string, flags: string): Pattern | undefined {
  const plain = withoutTexts(source);
  if (/[^gms]/.test(flags) || REFUSED.test(plain)) return undefined;
  const quantifiers = plain.replaceAll('(?:', '(');
  const unbounded = quantifiers.match(/[*+]/g)?.length ?? 0;
  const optional = quantifiers.match(/\?/g)?.length ?? 0;
  const choices = alternatives(plain) * 2 ** optional;
  if (unbounded > 1 || choices > CHOICES_MAX) return undefined;
  return {
    regexp: new RegExp(source, flags),
    steps: source.length * choices,
    isUnbounded: unbounded > 0,
  };
}

/** Of all groups together. Those outside of groups are tried one after the other. */
function alternatives(plain: string): number {
  const open: number[] = [];
  let product = 1;
  for (const character of plain) {
    const last = open.length - 1;
    if (character === '(') open.push(1);
    else if (character === ')') product *= open.pop() ?? 1;
    else if (character === '|' && last >= 0) open[last] = (open[last] ?? 0) + 1;
  }
  return product;
}

/** Before the search. */
function charge({ regexp, steps, isUnbounded }: Pattern, text: string, budget: Budget): RegExp {
  if (text.length > TEXT_MAX) decline();
  const starts = text.length + 1;
  budget.spend(Math.ceil((steps * starts * (isUnbounded ? starts : 1)) / STEPS_PER_NODE));
  budget.read(text.length);
  regexp.lastIndex = 0; // each evaluation of a literal is a new one
  return regexp;
}

export function test(pattern: Pattern, text: LocalValue, budget: Budget): boolean {
  return charge(pattern, textOf(text), budget).test(textOf(text));
}

type PatternMethod = (
  text: string,
  pattern: Pattern,
  args: readonly LocalValue[],
  budget: Budget,
) => LocalValue;

function replaced(text: string, pattern: Pattern, args: readonly LocalValue[], budget: Budget): string {
  const replacement = replacementOf(args[0]);
  budget.read(text.length + (text.length + 1) * replacement.length);
  return text.replace(charge(pattern, text, budget), replacement);
}

function list(parts: readonly LocalValue[] | null, budget: Budget): LocalValue {
  if (parts === null) return null;
  budget.spend(parts.length);
  return [...parts];
}

/** By the number of arguments after the pattern. */
export const PATTERN_METHODS: ReadonlyMap<string, readonly [args: number, method: PatternMethod]> = new Map([
  ['match', [0, (text, pattern, _, budget) => list(text.match(charge(pattern, text, budget)), budget)]],
  ['replace', [1, replaced]],
  [
    'replaceAll',
    [1, (text, pattern, ...rest) => (pattern.regexp.global ? replaced(text, pattern, ...rest) : decline())],
  ],
  ['search', [0, (text, pattern, _, budget) => text.search(charge(pattern, text, budget))]],
  ['split', [0, (text, pattern, _, budget) => list(text.split(charge(pattern, text, budget)), budget)]],
] satisfies [string, readonly [number, PatternMethod]][]);
