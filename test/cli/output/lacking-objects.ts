/** Valid objects that lack members which need not be there, and what a command must not print for such a member. */

import { isJsonObject, textAt, type JsonObject } from '../../../src/base/json.ts';
import { objectProblems } from '../../../src/cli/output/object-problems.ts';
import { corpus } from './object-corpus.ts';

const SYNCED = ['Endpoints', 'EndpointSlice', 'Service'];

/** Each valid object, and each that lacks one member which need not be there, with names of their own. */
export const LACKING_OBJECTS: readonly JsonObject[] = corpus().flatMap(({ id, object }, at) => {
  const isLacking = !id.includes(': ') || id.endsWith(' missing');
  if (!isLacking || !SYNCED.includes(textAt(object, 'kind')) || objectProblems(object).length > 0) return [];
  const { metadata } = object;
  if (!isJsonObject(metadata)) return [];
  return [{ ...object, metadata: { ...metadata, name: `web-${at}` } }];
});

const STANDS_FOR_NOTHING = /\bnull\b|\bundefined\b|\bNaN\b|\[object /u;

export function linesThatStandForNothing(text: string): string[] {
  return text.split('\n').filter((line) => STANDS_FOR_NOTHING.test(line));
}
