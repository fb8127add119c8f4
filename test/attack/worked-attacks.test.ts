/**
 * Every case of `cases/sandbox.yaml`, twice: as the daemon runs expressions, and with the front end's checks for what is
 * forbidden switched off, when the realm, the limits and the watchdog must hold alone.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonValue } from '../../src/base/json.ts';
import {
  compileExpression,
  type CompileOutcome,
} from '../../src/syncer/sandbox/front-end/compile-expression.ts';
import { compileUnchecked, LIMITS, TestSandbox, type Outcome } from '../syncer/sandbox/test-sandbox.ts';

interface Expectation {
  readonly value?: JsonValue;
  readonly value_json?: string;
  readonly undefined?: true;
  readonly error?: readonly string[];
  readonly any?: true;
}

interface AttackCase {
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

/** The outcome of a case, and of the expression that it evaluates afterwards. */
interface Ran {
  readonly first: Outcome;
  readonly next: Outcome | undefined;
}

/** Too long to be printed in the file. */
const GENERATED: Readonly<Record<string, string>> = {
  'inj-deep-nest': '['.repeat(5000) + ']'.repeat(5000),
  'inj-long': JSON.stringify('x'.repeat(70_000)),
};

// The file was written by a YAML 1.1 writer, which breaks a line after U+2028 and U+2029 and indents the next one; a 1.2 reader takes
// the indentation for text. The cases mean the character alone.
const text = readFileSync(join(import.meta.dirname, '../cases/sandbox.yaml'), 'utf8');
const { cases } = parse(text.replace(/([\u2028\u2029]) +/g, '$1')) as { cases: AttackCase[] };

const OBJECTS = {
  virtualObject: { metadata: { name: 'web' }, subsets: [{ addresses: [] }] },
  path: 'subsets.0.addresses.0.hostname',
};

/** The cases are distributed over several processes, because some use one for seconds. */
const HOSTILE_SANDBOXES = 2;
/** For cases that may be stopped; below the default, to save time. */
const HOSTILE_TIMEOUT_MS = 40;
/** For cases that must not be stopped; long enough for a loaded machine. */
const LONG_TIMEOUT_MS = 1000;
const STOPPED: readonly string[] = ['timeout', 'killed', 'memory'];

describe.each(['checked', 'unchecked'] as const)('%s', (mode) => {
  const sandboxes: TestSandbox[] = [];
  const compile = mode === 'checked' ? compileExpression : compileUnchecked;
  // An expression that passes the checks is the same program in both modes.
  const wanted = cases.filter((each) => mode === 'checked' || !compileExpression(expressionOf(each), 0).ok);

  // Each sandbox runs its cases sequentially, like the lines of a file.
  const hostile = wanted.filter((each) => mayBeStopped(each, mode));
  const shares = Array.from({ length: HOSTILE_SANDBOXES }, (_, i) => ({
    expressionTimeoutMs: HOSTILE_TIMEOUT_MS,
    share: hostile.filter((_case, at) => at % HOSTILE_SANDBOXES === i),
  }));
  shares.push({
    expressionTimeoutMs: LONG_TIMEOUT_MS,
    share: wanted.filter((each) => !hostile.includes(each)),
  });
  const outcomes = new Map<string, Promise<Ran>>();

  beforeAll(async () => {
    for (const { expressionTimeoutMs } of shares) {
      sandboxes.push(await TestSandbox.open({ limits: { ...LIMITS, expressionTimeoutMs } }));
    }
    shares.forEach(({ share }, i) => {
      let last: Promise<unknown> = Promise.resolve();
      for (const each of share) {
        const next = last.then(() => attack(sandboxes[i], each, compile));
        outcomes.set(each.id, next);
        last = next;
      }
    });
  });

  afterAll(async () => {
    for (const sandbox of sandboxes) await sandbox[Symbol.asyncDispose]();
  });

  test.each(wanted)('$id', async (each) => {
    const ran = await outcomes.get(each.id);
    if (ran === undefined) throw new Error(`${each.id} was not run`);
    const isExpected = acceptable(each, mode).some((expectation) => meets(ran.first, expectation));
    const isNextExpected = each.then === undefined || meets(ran.next, each.then.expect);
    expect({ ...ran, isExpected, isNextExpected }).toEqual({
      ...ran,
      isExpected: true,
      isNextExpected: true,
    });
  });
});

test('the attacks did not change this process', () => {
  expect(Reflect.get({}, 'polluted')).toBeUndefined();
  expect(Object.getOwnPropertyNames(Object.prototype)).not.toContain('polluted');
});

async function attack(
  sandbox: TestSandbox | undefined,
  each: AttackCase,
  compile: typeof compileExpression,
): Promise<Ran> {
  if (sandbox === undefined) throw new Error('no sandbox');
  const first = await sandbox.run(compile(expressionOf(each), 0), valueOf(each), OBJECTS);
  if (each.then === undefined) return { first, next: undefined };
  const compiled: CompileOutcome = compile(each.then.expression, 0);
  return { first, next: await sandbox.run(compiled, each.then.value ?? 'v', OBJECTS) };
}

function expressionOf({ id, expression }: AttackCase): string {
  return expression ?? GENERATED[id] ?? '';
}

function valueOf({ value, value_json, value_undefined }: AttackCase): JsonValue | undefined {
  if (value_undefined === true) return undefined;
  return value_json === undefined ? value : (JSON.parse(value_json) as JsonValue);
}

function acceptable(each: AttackCase, mode: 'checked' | 'unchecked'): Expectation[] {
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

function mayBeStopped(each: AttackCase, mode: 'checked' | 'unchecked'): boolean {
  return acceptable(each, mode).some(
    ({ error, any }) => any === true || error?.some((kind) => STOPPED.includes(kind)) === true,
  );
}

function meets(outcome: Outcome | undefined, expectation: Expectation): boolean {
  if (outcome === undefined) return false;
  if (expectation.any === true) return true;
  if (expectation.error !== undefined) return 'error' in outcome && expectation.error.includes(outcome.error);
  if (expectation.undefined === true) return 'undefined' in outcome;
  const wanted = expectation.value_json ?? JSON.stringify(expectation.value);
  return 'value' in outcome && JSON.stringify(outcome.value) === wanted;
}
