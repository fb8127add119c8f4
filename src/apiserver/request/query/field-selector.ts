/** Field selectors: `metadata.name=a,status.phase!=Running`, over the few fields that a kind offers. */

import { badRequest } from '../../status.ts';

/** Reads one selectable field of an object; empty where it is not set. */
export type FieldReader = (field: string) => string;

export interface FieldSelector {
  matches(read: FieldReader): boolean;
}

interface Term {
  readonly field: string;
  readonly isEqual: boolean;
  readonly value: string;
}

/** Throws a 400 `StatusError` when the text does not parse or names a field that the kind does not offer. */
export function parseFieldSelector(text: string, selectable: readonly string[]): FieldSelector {
  const terms = splitTerms(text).map(parseTerm);
  for (const { field } of terms) {
    if (selectable.includes(field)) continue;
    const known = selectable.map((name) => JSON.stringify(name)).join(', ');
    throw badRequest(`${JSON.stringify(field)} is not a known field selector: only ${known}`);
  }
  return {
    matches: (read) => terms.every(({ field, isEqual, value }) => (read(field) === value) === isEqual),
  };
}

/** The value that `field` must have, if the selector fixes it, whatever else it names. Throws a 400 `StatusError` when the text does not parse. */
export function exactValue(text: string, field: string): string | undefined {
  return splitTerms(text)
    .map(parseTerm)
    .find((term) => term.field === field && term.isEqual)?.value;
}

/** Splits at commas that no backslash protects. */
function splitTerms(text: string): string[] {
  return text.split(/(?<!\\),/).filter((term) => term !== '');
}

function parseTerm(term: string): Term {
  const match = /^([^=!]*)(!=|==|=)(.*)$/s.exec(term);
  if (!match) throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`);
  const [, field = '', operator, value = ''] = match;
  return { field, isEqual: operator !== '!=', value: unescaped(value) };
}

function unescaped(value: string): string {
  const bare = value.replaceAll(/\\[\\,=]/g, '');
  const wrong = /\\.?/s.exec(bare);
  if (wrong) throw badRequest(`invalid field selector: invalid escape sequence: ${wrong[0]}`);
  if (bare.includes('=')) throw badRequest('invalid field selector: unescaped character in value: 61');
  return value.replaceAll(/\\(.)/gs, '$1');
}
