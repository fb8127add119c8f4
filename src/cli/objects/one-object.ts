/** Reads one object of any kind from a file or standard input, and prints objects as YAML or JSON. */

import { parse, stringify } from 'yaml';
import { readDocument } from '../../config/source/document.ts';
import { problemOf, syntaxProblems } from '../../config/source/problem.ts';
import { displayName, readTextFile } from '../../config/source/text-file.ts';
import { ConfigError } from '../../base/errors.ts';
import { jsonEquals, type JsonObject, type JsonValue } from '../../base/json.ts';

/** Larger than any object that an API server stores (1.5 MiB). */
const BYTES_MAX = 16 * 1024 * 1024;

/** Reads YAML or JSON; `-` is standard input. Throws a `ConfigError` with every problem. */
export async function readObject(path: string): Promise<JsonObject> {
  const file = displayName(path);
  const document = readDocument(file, await readTextFile(path, BYTES_MAX));
  const errors = syntaxProblems(document).filter(({ severity }) => severity === 'error');
  if (errors.length > 0 || !document.isReadable) throw new ConfigError(errors);
  if (document.source.text.trim() === '') throw new ConfigError([problemOf(file, 'contains no object')]);
  return document.value;
}

/** Text that YAML 1.1 (kubectl) and 1.2 readers take for the same value. `isSorted`: keys in alphabetical order, as kubectl prints them. */
export function printObject(
  object: JsonObject,
  format: 'yaml' | 'json',
  { isSorted = false }: { readonly isSorted?: boolean } = {},
): string {
  if (format === 'json') return `${JSON.stringify(object, null, 2)}\n`;
  const settings = {
    version: '1.1',
    lineWidth: 0,
    aliasDuplicateObjects: false,
    sortMapEntries: isSorted,
  } as const;
  const text = stringify(object, settings);
  const isPlain = jsonEquals(parse(text, { logLevel: 'silent' }) as JsonValue, object); // what was just printed
  return isPlain
    ? text
    : stringify(object, { ...settings, defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN' });
}
