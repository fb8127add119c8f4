/** Runs sigs.k8s.io/yaml, the reader of kubectl, Helm and vCluster, on many texts. */

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isJsonObject, parseJson, type JsonValue } from '../../../src/base/json.ts';

export type GoResult = { readonly json: JsonValue } | { readonly error: string };

export const hasGo = spawnSync('go', ['version']).status === 0;

let program: string | undefined;

/** The first call builds it, which takes seconds. */
export function readInGo(texts: readonly string[]): GoResult[] {
  program ??= built();
  const input = texts.map((text) => `${JSON.stringify(text)}\n`).join('');
  const output = execFileSync(program, { input, encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 });
  const lines = output.trimEnd().split('\n');
  return lines.map((line) => parseJson(line) as unknown as GoResult); // what the program prints
}

/** Of equal numbers, one is a bigint where the other is a float that is printed with all digits. */
export function sameValue(ours: JsonValue, go: JsonValue): boolean {
  if (typeof ours === 'number' && typeof go !== 'object') return ours === Number(go);
  if (Array.isArray(ours) && Array.isArray(go))
    return ours.length === go.length && ours.every((item, index) => sameValue(item, go[index] ?? null));
  if (!isJsonObject(ours) || !isJsonObject(go)) return ours === go;
  const keys = Object.keys(ours);
  return (
    keys.length === Object.keys(go).length &&
    keys.every((key) => Object.hasOwn(go, key) && sameValue(ours[key] ?? null, go[key] ?? null))
  );
}

function built(): string {
  const file = join(mkdtempSync(join(tmpdir(), 'go-reader-')), 'go-reader');
  execFileSync('go', ['build', '-o', file, '.'], { cwd: join(import.meta.dirname, 'go-reader') });
  return file;
}
