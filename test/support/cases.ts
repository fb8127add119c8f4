/** Loads the test cases in `test/cases/*.yaml`, which have exact expected values. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';

export interface WorkedCase {
  readonly id: string;
  /** Where the fact comes from. */
  readonly source: string;
  /** Which naming mode it holds in; `any` where that does not matter. */
  readonly mode: string;
  readonly input: JsonObject;
  readonly expected: JsonValue;
  readonly note: string;
  /** Cases whose outcome differs intentionally, with the reason. */
  readonly ours?: { readonly why: string };
}

/** All cases of one file (`names`, `sync`, …) in its order. */
export function loadCases(file: string): readonly WorkedCase[] {
  const text = readFileSync(join(import.meta.dirname, '..', 'cases', `${file}.yaml`), 'utf8');
  const { cases } = parse(text) as { cases: WorkedCase[] }; // our own file
  return cases;
}

/** This program differs from the case on purpose. */
export function isOverruled({ ours }: WorkedCase): boolean {
  return ours !== undefined;
}

/** A member that is text; anything else is empty text. */
export function textAt(object: JsonObject, key: string): string {
  const value = object[key];
  return typeof value === 'string' ? value : '';
}
