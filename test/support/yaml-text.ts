/** Values as the text of a YAML file. */

import { stringify } from 'yaml';
import type { JsonObject } from '../../src/base/json.ts';

/** A YAML file may have none of them but as an escape. */
const ESCAPED = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

/** With characters that a file may only have as escapes, it is JSON, in which every text has quotes. */
export function yamlText(value: JsonObject): string {
  const text = stringify(value);
  if (text.search(ESCAPED) < 0) return text;
  return JSON.stringify(value).replaceAll(ESCAPED, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
