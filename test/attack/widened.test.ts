/** Language features that are allowed although they could be a way out of the sandbox, each with the attacks that it might enable. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compileExpression } from '../../src/expressions/front-end/compile-expression.ts';
import { compileUnchecked, LIMITS, TestSandbox, textOf } from '../expressions/test-sandbox.ts';
import { CLOCKS, DATES, ENDLESS, HIDDEN_CLOCKS, REFUSED, STATELESS } from './hostile-expressions.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await TestSandbox.open({ limits: { ...LIMITS, expressionTimeoutMs: 200 } });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

describe('Date', () => {
  test.each(DATES)('%s', async (expression, value) => {
    expect(await sandbox.run(expression, 'v')).toEqual({ value });
  });

  test.each(HIDDEN_CLOCKS)('no clock by %s', async (expression) => {
    expect(textOf(await sandbox.run(compileUnchecked(expression), 'v'))).toMatch(/^runtime: /);
  });

  test.each(CLOCKS)('%s is refused before it runs', (expression) => {
    const outcome = compileExpression(expression, 0);
    expect(outcome.ok || outcome.problem.message).toMatch(/there is no clock/);
  });
});

test.each(REFUSED)('%s is refused', (expression) => {
  expect(compileExpression(expression, 0)).toMatchObject({ ok: false });
});

describe('no state persists in, and no host object is reachable through', () => {
  test.each(STATELESS)('%s', async (_what, expression, value) => {
    const outcome = compileExpression(expression, 0);
    expect(await sandbox.run(outcome, 'v')).toEqual({ value });
  });

  test.each(ENDLESS)('%s is stopped, and the next expression runs', async (expression) => {
    await using own = await TestSandbox.open();
    const outcome = await own.run(expression, 'v', {});
    expect(textOf(outcome)).toMatch(/^(timeout|memory|killed|runtime): /);
    expect(await own.run('value + "!"', 'v')).toEqual({ value: 'v!' });
  });
});
