/** Field selectors, such as `metadata.name=a,status.phase!=Running`, over the selectable fields of a kind. */

import { badRequest } from '../../status.ts';

/** Returns one selectable field of an object; empty when it is not set. */
export type FieldReader = (field: string) => string;

export interface FieldSelector {
  matches(read: FieldReader): boolean;
}

interface Term {
  readonly field: string;
  readonly isEqual: boolean;
  readonly value: string;
}

/** Throws a 400 `StatusError` when the text does not parse or names a field that is not selectable. */
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

/** The value that the selector requires of `field`, if any. Throws a 400 `StatusError` when the text does not parse. */
export function exactValue(text: string, field: string): string | undefined {
  return splitTerms(text)
    .map(parseTerm)
    .find((term) => term.field === field && term.isEqual)?.value;
}

/** Splits at commas that are not escaped by a backslash. */
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
  const invalidEscape = /\\.?/s.exec(bare);
  if (invalidEscape) {
    throw badRequest(`invalid field selector: invalid escape sequence: ${invalidEscape[0]}`);
  }
  if (bare.includes('=')) throw badRequest('invalid field selector: unescaped character in value: 61');
  return value.replaceAll(/\\(.)/gs, '$1');
}
