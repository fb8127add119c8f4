/** One JSON object of any kind, from a file or standard input, and back to text. */

import { createReadStream } from 'node:fs';
import { parse, stringify } from 'yaml';
import { displayName } from '../config/load.ts';
import { readDocument } from '../config/document.ts';
import { caretFrame, positionOf } from '../config/source-file.ts';
import { ConfigError } from '../kube/errors.ts';
import { jsonEquals, type JsonObject, type JsonValue } from '../lib/json.ts';

/** Far more than an API server stores (1.5 MiB). */
const BYTES_MAX = 16 * 1024 * 1024;

/** Reads YAML or JSON; `-` is standard input. Throws a `ConfigError` with everything that is wrong. */
export async function readObject(path: string): Promise<JsonObject> {
  const file = displayName(path);
  const document = readDocument(file, await readText(path, file));
  const errors = document.problems.filter(({ severity }) => severity === 'error');
  if (errors.length > 0 || !document.isReadable) {
    throw new ConfigError(
      errors.map(({ offset, message, severity }) => ({
        file,
        ...positionOf(document.source, offset),
        path: '',
        severity,
        message,
        frame: caretFrame(document.source, offset),
      })),
    );
  }
  if (document.source.text.trim() === '') throw unusable(file, 'holds no object');
  return document.value;
}

async function readText(path: string, file: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of path === '-' ? process.stdin : createReadStream(path)) {
      const part = Buffer.from(chunk as Uint8Array | string); // no encoding is set on either stream
      chunks.push(part);
      bytes += part.length;
      if (bytes > BYTES_MAX) break;
    }
  } catch (error) {
    throw unusable(file, `cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (bytes > BYTES_MAX) throw unusable(file, `has more than ${BYTES_MAX} bytes`);
  return Buffer.concat(chunks).toString('utf8');
}

function unusable(file: string, message: string): ConfigError {
  return new ConfigError([{ file, line: 0, column: 0, path: '', severity: 'error', message, frame: '' }]);
}

/** Text that YAML 1.1 (kubectl) and 1.2 readers take for the same value. */
export function printObject(object: JsonObject, format: 'yaml' | 'json'): string {
  if (format === 'json') return `${JSON.stringify(object, null, 2)}\n`;
  const settings = { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false } as const;
  const text = stringify(object, settings);
  const isPlain = jsonEquals(parse(text, { logLevel: 'silent' }) as JsonValue, object); // what was just printed
  return isPlain
    ? text
    : stringify(object, { ...settings, defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN' });
}
