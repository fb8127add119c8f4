/** Warnings about paths that can never match an object of a kind: a misspelt field, or another path notation. */

import { nearestWord } from '../../../config/schema/suggest.ts';
import type { Segment } from '../paths/path-syntax.ts';

/** The fields of an object; `*`: any key; a string: no fields below. */
export type Fields = { readonly [field: string]: Fields } | 'value' | 'any';

/** The fields of a kind's objects, for warnings about paths. */
export interface KnownFields {
  /** With its article: `an Endpoints`. */
  readonly what: string;
  readonly fields: Fields;
}

/** Why a path cannot match an object of this kind; undefined when it can. */
export function unmatchable(
  text: string,
  segments: readonly Segment[],
  known: KnownFields,
): { readonly message: string; readonly offset: number } | undefined {
  if (text.startsWith('/')) {
    const message =
      'this looks like a JSON Pointer, which is not supported; write metadata.annotations["key"]';
    return { message, offset: 0 };
  }
  let { fields } = known;
  let above = '';
  for (const segment of segments) {
    if (fields === 'any') return undefined;
    const name = segment.kind === 'key' ? segment.key : '';
    const where = above === '' ? known.what : above;
    const offset = Math.max(0, name === '' ? 0 : text.lastIndexOf(name));
    if (fields === 'value')
      return dottedKey(text, segments) ?? { message: `never matches: ${where} has no fields`, offset };
    const next: Fields | undefined = fieldOf(fields, segment);
    // The keys of a mapping have values; what has fields is an element of a list.
    if (typeof next === 'object' && next === fields['*'] && name !== '' && !/^\d+$/.test(name))
      return { message: `never matches: ${where} is a list: write ${where}[*].${name}`, offset };
    if (next === undefined) {
      const near = nearestWord(
        name,
        Object.keys(fields).filter((field) => field !== '*'),
      );
      const hint = near === undefined ? '' : `, did you mean "${near}"?`;
      const what = name === '' ? 'elements' : `field ${JSON.stringify(name)}`;
      return { message: `never matches: ${where} has no ${what}${hint}`, offset };
    }
    if (segment.kind === 'wildcard' && fields['*'] === undefined) return undefined;
    fields = next;
    above = segment.kind === 'key' && !/^\d+$/.test(name) ? name : above;
  }
  return undefined;
}

/** For the path of an annotation or label whose key contains dots: each would begin another field. */
function dottedKey(text: string, segments: readonly Segment[]): ReturnType<typeof unmatchable> {
  const names = segments.map((segment) => (segment.kind === 'key' ? segment.key : undefined));
  const [metadata, map, ...key] = names;
  if (metadata !== 'metadata' || (map !== 'annotations' && map !== 'labels') || key.includes(undefined))
    return undefined;
  const path = `metadata.${map}[${JSON.stringify(key.join('.'))}]`;
  const message = `never matches: a key with dots needs brackets and quotes: ${path}`;
  return { message, offset: text.indexOf(map) + map.length + 1 };
}

/** Undefined if the object has no such member. */
function fieldOf(fields: { readonly [field: string]: Fields }, segment: Segment): Fields | undefined {
  const elements = Object.hasOwn(fields, '*') ? fields['*'] : undefined;
  if (segment.kind === 'key')
    return elements ?? (Object.hasOwn(fields, segment.key) ? fields[segment.key] : undefined);
  if (segment.kind === 'index') return elements;
  return elements ?? 'any';
}
