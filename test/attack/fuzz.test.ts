/**
 * Expressions from a grammar of hostile JavaScript: none hangs, leaks into the next one, ends in an error of the wrong kind, or makes a
 * process grow. Another seed each time; `FUZZ_SEED=… npx vitest run test/attack/fuzz.test.ts` repeats a run.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { residentBytes } from '../../src/expressions/child.ts';
import { compileExpression } from '../../src/expressions/front-end/compile-expression.ts';
import { anySeed, seededRandom } from '../support/random.ts';
import { compileUnchecked, LIMITS, MIB, TestSandbox, type Outcome } from '../expressions/test-sandbox.ts';
import { endlessExpression, hostileExpression, type HostileExpression } from './hostile-grammar.ts';

const seed = Number(process.env['FUZZ_SEED'] ?? anySeed());
/** Of {@link PER_ROUND} expressions. */
const ROUNDS = Number(process.env['FUZZ_ROUNDS'] ?? 4);
const PER_ROUND = 1000;
/** Resident memory of the child, second half of the rounds against the first: the heap of the isolate may fill before V8 collects. */
const GROWTH_BYTES_MAX = 80 * MIB;

const OBJECTS = {
  virtualObject: { metadata: { name: 'web', labels: { a: 'b' } } },
  path: 'metadata.labels.a',
};
/** Expressions that end take milliseconds. */
const ENDS_MS_MAX = 2000;
/** What an earlier expression could have changed. */
const CANARIES = [
  'Reflect.ownKeys(Object.prototype).length + Reflect.ownKeys(Array.prototype).length + Reflect.ownKeys(Error).length',
  'JSON.stringify([typeof ({}).polluted, typeof [].polluted, typeof Math.polluted, typeof "".polluted, typeof /x/.polluted])',
  '[3, 1, 2].sort().map((x) => x * 2).join() + JSON.stringify({ a: [1] }) + "abc".replace(/b/, "x") + Object.keys({ a: 1 })',
  '((s) => typeof s.x + typeof s.raw.x)`a${1}b`',
  'context.path + context.vcluster.name + context.virtualObject.metadata.labels.a + value',
  'new Error("x").stack + Error.stackTraceLimit',
  'Object.isFrozen(Object.prototype) && Object.isFrozen(context.virtualObject.metadata)',
];

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await TestSandbox.open({
    limits: { ...LIMITS, expressionTimeoutMs: ENDS_MS_MAX, batchTimeoutMs: 20_000 },
  });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

test(`${ROUNDS * PER_ROUND} expressions, FUZZ_SEED=${seed}`, async () => {
  const random = seededRandom(seed);
  const expected = await canaries();
  const sizes: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const expressions = Array.from({ length: PER_ROUND }, () => hostileExpression(random));
    const wrong = (await Promise.all(expressions.map(attempt))).filter((problem) => problem !== undefined);
    expect(wrong).toEqual([]);
    expect(await stopped(endlessExpression(random))).toBeUndefined();
    expect(await canaries()).toEqual(expected);
    sizes.push(resident());
  }
  const largest = (of: readonly number[]): number => Math.max(...of);
  const growth = largest(sizes.slice(ROUNDS / 2)) - largest(sizes.slice(0, ROUNDS / 2));
  expect(growth).toBeLessThan(GROWTH_BYTES_MAX);
});

test('the expressions did not change this process', () => {
  expect(Reflect.get({}, 'polluted')).toBeUndefined();
});

/** The failure, or undefined. */
async function attempt(expression: HostileExpression): Promise<object | undefined> {
  const { text, frontEnd, errors } = expression;
  const compiled = compileExpression(text, 0);
  const kind = compiled.ok ? 'accepts' : compiled.problem.kind === 'forbidden' ? 'forbids' : 'rejects';
  if (frontEnd !== undefined && kind !== frontEnd) return { text, frontEnd, kind };
  // Without its check, what is forbidden must be harmless as well.
  const isHarmless = kind === 'forbids' && !text.includes('import(');
  const program = isHarmless ? compileUnchecked(text) : compiled;
  const outcome = await sandbox.run(program, 'v', OBJECTS);
  if (!('error' in outcome)) return undefined;
  const isExpected = program.ok
    ? errors.includes(outcome.error)
    : ['syntax', 'forbidden'].includes(outcome.error);
  // What only the realm sees, such as a private name twice, is a syntax error there.
  return isExpected || outcome.error === 'syntax' ? undefined : { text, outcome };
}

/** In a separate sandbox, because a stop ends its process. */
async function stopped({ text, errors }: HostileExpression): Promise<object | undefined> {
  await using own = await TestSandbox.open();
  const outcome: Outcome = await own.run(text, 'v', OBJECTS);
  const next = await own.run('value + "!"', 'v');
  const isStopped = 'error' in outcome && errors.includes(outcome.error);
  return isStopped && 'value' in next && next.value === 'v!' ? undefined : { text, outcome, next };
}

async function canaries(): Promise<readonly Outcome[]> {
  return Promise.all(CANARIES.map((text) => sandbox.run(text, 'v', OBJECTS)));
}

function resident(): number {
  return sandbox.pids.reduce((sum, pid) => sum + (residentBytes(pid) ?? 0), 0);
}
