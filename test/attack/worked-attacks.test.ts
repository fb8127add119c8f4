/**
 * Every case of `cases/sandbox.yaml`, twice: as the daemon runs expressions, and with the front end's checks for what is
 * forbidden switched off, when the realm, the limits and the watchdog must hold alone. What the daemon would evaluate itself, also there.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  compileExpression,
  type CompileOutcome,
} from '../../src/expressions/front-end/compile-expression.ts';
import { compileUnchecked, LIMITS, TestSandbox, type Outcome } from '../expressions/test-sandbox.ts';
import {
  acceptable,
  expressionOf,
  mayBeStopped,
  meets,
  valueOf,
  WORKED_CASES,
  type WorkedCase,
} from './worked-cases.ts';

/** The outcome of a case, and of the expression that it evaluates afterwards. */
interface Ran {
  readonly first: Outcome;
  readonly next: Outcome | undefined;
}

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

const PLACES = [
  { mode: 'checked', localEvaluation: false },
  { mode: 'checked', localEvaluation: true },
  { mode: 'unchecked', localEvaluation: false },
  { mode: 'unchecked', localEvaluation: true },
] as const;

describe.each(PLACES)('$mode, in the daemon as well: $localEvaluation', ({ mode, localEvaluation }) => {
  const sandboxes: TestSandbox[] = [];
  const compile = mode === 'checked' ? compileExpression : compileUnchecked;
  // An expression that passes the checks is the same program in both modes, and what the daemon does not know runs in the same place.
  const wanted = WORKED_CASES.filter((each) => {
    const checked = compileExpression(expressionOf(each), 0);
    return (
      (mode === 'checked' || !checked.ok) && (!localEvaluation || isLocal(compile(expressionOf(each), 0)))
    );
  });

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
      sandboxes.push(await TestSandbox.open({ limits: { ...LIMITS, expressionTimeoutMs }, localEvaluation }));
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
  each: WorkedCase,
  compile: typeof compileExpression,
): Promise<Ran> {
  if (sandbox === undefined) throw new Error('no sandbox');
  const first = await sandbox.run(compile(expressionOf(each), 0), valueOf(each), OBJECTS);
  if (each.then === undefined) return { first, next: undefined };
  const compiled: CompileOutcome = compile(each.then.expression, 0);
  return { first, next: await sandbox.run(compiled, each.then.value ?? 'v', OBJECTS) };
}

function isLocal(compiled: CompileOutcome): boolean {
  return compiled.ok && compiled.program.local.kind === 'local';
}
