/** The cases of `cases/sandbox.yaml`: expressions of hostile authors, and what may become of each. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { JsonValue } from '../../src/base/json.ts';
import type { Outcome } from '../expressions/test-sandbox.ts';

export interface Expectation {
  readonly value?: JsonValue;
  readonly value_json?: string;
  readonly undefined?: true;
  readonly error?: readonly string[];
  readonly any?: true;
}

export interface WorkedCase {
  readonly id: string;
  readonly expression?: string;
  readonly generate?: string;
  readonly value?: JsonValue;
  readonly value_json?: string;
  readonly value_undefined?: boolean;
  readonly expect: Expectation;
  readonly runtime_expect?: Expectation;
  /** Cases whose outcome differs intentionally, with the reason. */
  readonly ours?: { readonly why: string; readonly runtime_expect?: Expectation };
  readonly or_value?: JsonValue;
  readonly or_error?: readonly string[];
  /** Any value is accepted if it is returned in time. */
  readonly ok_if_fast?: boolean;
  readonly then?: { readonly expression: string; readonly value?: JsonValue; readonly expect: Expectation };
}

/** `unchecked`: without the front end's checks for what is forbidden. */
export type Mode = 'checked' | 'unchecked';

/** Too long to be printed in the file. */
const GENERATED: Readonly<Record<string, string>> = {
  'inj-deep-nest': '['.repeat(5000) + ']'.repeat(5000),
  'inj-long': JSON.stringify('x'.repeat(70_000)),
};

const STOPPED: readonly string[] = ['timeout', 'killed', 'memory'];

// The file was written by a YAML 1.1 writer, which breaks a line after U+2028 and U+2029 and indents the next one; a 1.2 reader takes
// the indentation for text. The cases mean the character alone.
const text = readFileSync(join(import.meta.dirname, '../cases/sandbox.yaml'), 'utf8');
export const { cases: WORKED_CASES } = parse(text.replace(/([\u2028\u2029]) +/g, '$1')) as {
  cases: WorkedCase[];
};

export function expressionOf({ id, expression }: WorkedCase): string {
  return expression ?? GENERATED[id] ?? '';
}

export function valueOf({ value, value_json, value_undefined }: WorkedCase): JsonValue | undefined {
  if (value_undefined === true) return undefined;
  return value_json === undefined ? value : (JSON.parse(value_json) as JsonValue);
}

/** Each outcome that is allowed. */
export function acceptable(each: WorkedCase, mode: Mode): Expectation[] {
  const expected: Expectation[] = [];
  const isForbiddenAlone = each.expect.error?.length === 1 && each.expect.error[0] === 'forbidden';
  if (mode === 'checked') expected.push(each.expect);
  else
    expected.push(
      each.ours?.runtime_expect ?? each.runtime_expect ?? (isForbiddenAlone ? { any: true } : each.expect),
    );
  if ('or_value' in each && each.or_value !== undefined) expected.push({ value: each.or_value });
  if (each.or_error !== undefined) expected.push({ error: each.or_error });
  if (each.ok_if_fast === true) expected.push({ value: 1 });
  return expected;
}

export function mayBeStopped(each: WorkedCase, mode: Mode): boolean {
  return acceptable(each, mode).some(
    ({ error, any }) => any === true || error?.some((kind) => STOPPED.includes(kind)) === true,
  );
}

export function meets(outcome: Outcome | undefined, expectation: Expectation): boolean {
  if (outcome === undefined) return false;
  if (expectation.any === true) return true;
  if (expectation.error !== undefined) return 'error' in outcome && expectation.error.includes(outcome.error);
  if (expectation.undefined === true) return 'undefined' in outcome;
  const wanted = expectation.value_json ?? JSON.stringify(expectation.value);
  return 'value' in outcome && JSON.stringify(outcome.value) === wanted;
}
