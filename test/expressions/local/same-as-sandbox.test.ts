/** The daemon's own evaluator beside the sandbox: on random expressions and inputs it gives the same value or none. `LOCAL_EVALUATIONS` runs more. */

import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { seededRandom } from '../../support/random.ts';
import { costlyRuns } from '../../support/costly-runs.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { compileExpression } from '../../../src/expressions/front-end/compile-expression.ts';
import { LIMITS, outcomeOf, TestSandbox, textOf, type Outcome } from '../test-sandbox.ts';
import { localOutcome, openLocal } from './local.ts';
import { randomExpression, randomObject, randomValue } from './random-expressions.ts';

const EVALUATIONS = Number(process.env['LOCAL_EVALUATIONS'] ?? costlyRuns(200_000));
const SEED = Number(process.env['LOCAL_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const VALUES = 20;
/** Sent together. */
const EXPRESSIONS = 100;

const vcluster = {
  name: 'vc',
  namespace: 'ns',
  config: JSON.parse('{"a":{"b":[1,"x"],"c":"text"},"d":5}') as JsonObject,
};

interface Compared {
  readonly evaluations: number;
  readonly here: number;
  readonly different: readonly string[];
}

test(`random expressions have the sandbox's value or none (seed ${SEED})`, { timeout: 0 }, async () => {
  const random = seededRandom(SEED);
  let [evaluations, here] = [0, 0];
  const different: string[] = [];
  await using sandbox = await TestSandbox.open({
    vcluster,
    limits: { ...LIMITS, expressionTimeoutMs: 1000, batchTimeoutMs: 10_000 },
  });
  while (evaluations < EVALUATIONS && different.length < 10) {
    const rounds = Array.from({ length: EXPRESSIONS }, () => compare(sandbox, random));
    for (const compared of await Promise.all(rounds)) {
      evaluations += compared.evaluations;
      here += compared.here;
      different.push(...compared.different);
    }
  }
  console.info(`${evaluations} evaluations, ${((here / evaluations) * 100).toFixed(1)} % in this process`);
  expect(different.slice(0, 10)).toEqual([]);
});

async function compare(sandbox: TestSandbox, random: () => number): Promise<Compared> {
  const expression = randomExpression(random);
  const values = Array.from({ length: VALUES }, () => randomValue(random));
  const objects = { hostObject: randomObject(random), virtualObject: randomObject(random) };
  const compiled = compileExpression(expression, 0);
  if (!compiled.ok) return { evaluations: 0, here: 0, different: [] };
  const local = openLocal(compiled.program, vcluster);
  const results = values.map((value, at) => localOutcome(local, value, objects, `items.${at}`));
  const program = sandbox.define(expression);
  const { hostObject, virtualObject } = objects;
  const paths = values.map((_, at) => `items.${at}`);
  const request = { program: program.id, object: { namespace: '', name: '' }, values, paths };
  const response = await sandbox.evaluate({ ...request, context: { hostObject, virtualObject } });
  sandbox.forget(program);
  const different = results.flatMap((result, at) => {
    if (result === undefined) return [];
    const expected = outcomeOf(response, at);
    if (isSame(result, expected)) return [];
    const input = JSON.stringify({ value: values[at], ...objects });
    return [`${expression}\n  on ${input}\n  here ${textOf(result)}\n  there ${textOf(expected)}`];
  });
  const here = results.filter((result) => result !== undefined).length;
  return { evaluations: values.length, here, different };
}

/** In the order of keys, too. */
function isSame(left: Outcome, right: Outcome): boolean {
  return isDeepStrictEqual(left, right) && JSON.stringify(left) === JSON.stringify(right);
}
