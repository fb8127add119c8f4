/** Values on which `validate` tries an expression: one that fails on all of them fails on every object. */

import type { JsonObject, JsonValue } from '../../base/json.ts';
import { sampleValues } from '../patch/check-patch.ts';
import type { CompiledPatch } from '../patch/compile.ts';
import { valuesOf } from '../patch/walk.ts';
import type { EvaluateError } from '../../expressions/types.ts';

export interface Trial {
  readonly values: readonly JsonValue[];
  /** Whether an error counts; of values that other code has taken apart, no sample can be right for every expression. */
  readonly counts: (error: EvaluateError) => boolean;
}

/** Texts in other forms, of which one may be what the expression reads. */
const MORE_TEXTS = (
  '|0|1.5|true|null|{}|[]|{"a":"b"}|["a"]|a=b|a=b,c=d|a: b|app in (a,b)|web.shop|web.shop.svc.cluster.local|' +
  'https://web.shop.svc:8443/a?b=c|10.0.0.1:80|a@b.example|%41|Y2hlY2tvdXQ=|2026-11-28T10:00:00Z|' +
  'Sat, 28 Nov 2026 10:00:00 GMT|30s|1Gi|a\nb|é'
).split('|');

/** What reads a form that no sample may have, or another object. */
const UNKNOWABLE = /\bJSON\.parse\b|\bRegExp\b|\b(?:match|matchAll|exec|search)\s*\(|\bcontext\b|\bthrow\b/;

/** `content`: that of an object of the kind. Undefined: nothing is known of the values. */
export function trialOf(expression: string, patch: CompiledPatch, content: JsonObject): Trial | undefined {
  const words = wordsIn(expression);
  const texts = [words.map((word) => `a${word}b${word}c${word}d`), words, MORE_TEXTS].flat();
  const isKnowable = !UNKNOWABLE.test(expression);
  const known = sampleValues(patch.segments);
  if (typeof known[0] === 'string') {
    return isKnowable ? { values: [...known, ...texts], counts: () => true } : undefined;
  }
  const objects = texts
    .slice(0, OBJECTS_MAX)
    .map((text) => sampleObject(content, ['example.com/owner', ...words], text));
  const values = objects
    .flatMap((object) => valuesOf(patch.paths.toVirtual, object))
    .filter((value) => value !== undefined);
  const [first, second, ...more] = patch.segments;
  const isMap =
    first?.kind === 'key' &&
    first.key === 'metadata' &&
    second?.kind === 'key' &&
    (second.key === 'annotations' || second.key === 'labels') &&
    more.length === 0;
  return { values, counts: isMap && isKnowable ? () => true : (error) => error.kind === 'result' };
}

const OBJECTS_MAX = 60;
const WORDS_MAX = 20;

/** Texts and names of members in the expression: the keys and separators that it may look for. */
function wordsIn(expression: string): readonly string[] {
  const found = expression.matchAll(
    /"([^"\\]{1,200})"|'([^'\\]{1,200})'|`([^`\\$]{1,200})`|\.\s*([A-Za-z_]\w{0,60})/g,
  );
  const words = [...found].map(([, ...parts]) => parts.find((part) => part !== undefined) ?? '');
  return [...new Set(words)].slice(0, WORDS_MAX);
}

function sampleObject(content: JsonObject, keys: readonly string[], text: string): JsonObject {
  const map = Object.fromEntries(keys.map((key) => [key, text]));
  return { metadata: { name: 'web', namespace: 'default', annotations: map, labels: map }, ...content };
}
