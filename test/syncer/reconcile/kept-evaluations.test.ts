/** Evaluations that a reconcile does not wait for: what the next reconciles of the key get. */

import { expect, test } from 'vitest';
import { Postponed } from '../../../src/base/errors.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { KeptEvaluations } from '../../../src/syncer/reconcile/kept-evaluations.ts';
import { compileExpression } from '../../../src/expressions/front-end/compile-expression.ts';
import type { EvaluateRequest, EvaluateResponse } from '../../../src/expressions/types.ts';
import { programOf } from '../../expressions/test-sandbox.ts';

const KEY = 'ns/web';

/** `route`: where the evaluations are, at once or later, until a test answers them. */
function keeping(route: 'main' | 'throttled' | 'diverted' = 'throttled') {
  const programs = ['value + "!"', 'context.hostObject.kind'].map((text, id) =>
    programOf(compileExpression(text, id)),
  );
  const asked: { readonly request: EvaluateRequest; answer(): void; divert(): void }[] = [];
  const withdrawn: EvaluateRequest[] = [];
  const kept = new KeptEvaluations(
    {
      evaluate(request) {
        const { promise, resolve } = Promise.withResolvers<EvaluateResponse>();
        const divert = (): void => request.postpone?.(() => void withdrawn.push(request));
        const answer = (): void => resolve({ values: request.values, errors: undefined });
        asked.push({ request, answer, divert });
        if (route === 'throttled') divert();
        return promise;
      },
    },
    programs,
  );
  const ask = async (values: readonly string[], hostObject: JsonObject | null = null, program = 0) => {
    const context = { hostObject, virtualObject: null };
    const object = { namespace: 'ns', name: 'web' };
    return kept.evaluate({ program, object, context, values, paths: undefined });
  };
  /** One reconcile. */
  const reconcile = async (...requests: Parameters<typeof ask>[]): Promise<unknown> => {
    const outcomes = await Promise.allSettled(requests.map((request) => ask(...request)));
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    kept.reconciled(KEY, failed !== undefined);
    if (failed !== undefined) return failed.reason;
    return outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value.values : []));
  };
  return { asked, withdrawn, reconcile };
}

test('the main process is waited for', async () => {
  const { asked, reconcile } = keeping('main');
  const reconciling = reconcile([['a']]);
  await Promise.resolve();
  asked[0]?.answer();
  expect(await reconciling).toEqual(['a']);
});

test.each(['throttled', 'diverted'] as const)(
  'one that is %s is kept for the next reconcile, and no longer',
  async (route) => {
    const { asked, reconcile } = keeping(route);
    const reconciling = reconcile([['a']]);
    await Promise.resolve();
    if (route === 'diverted') asked[0]?.divert();
    const postponed = await reconciling;
    expect(postponed).toBeInstanceOf(Postponed);
    // An event comes earlier than the result.
    expect(await reconcile([['a']])).toEqual(postponed);
    asked[0]?.answer();
    await (postponed as Postponed).until;
    expect(await reconcile([['a']])).toEqual(['a']);
    expect(asked).toHaveLength(1);
    void reconcile([['a']]);
    expect(asked).toHaveLength(2);
  },
);

test('is for the inputs that the program reads', async () => {
  const { asked, withdrawn, reconcile } = keeping();
  await reconcile([['a'], { kind: 'A' }]);
  await reconcile([['a'], { kind: 'B' }]);
  expect([asked.length, withdrawn]).toEqual([1, []]);
  await reconcile([['b'], { kind: 'B' }]);
  expect([asked.length, withdrawn]).toEqual([2, [asked[0]?.request]]);
  await reconcile([['b']], [['b'], { kind: 'B' }, 1]);
  await reconcile([['b']], [['b'], { kind: 'C' }, 1]);
  expect([asked.length, withdrawn.length]).toEqual([4, 2]);
});

test('all that one reconcile needs are kept until it has them all', async () => {
  const { asked, reconcile } = keeping();
  const both: Parameters<typeof reconcile> = [[['a']], [['b'], { kind: 'B' }, 1]];
  const first = await reconcile(...both);
  asked[0]?.answer();
  await (first as Postponed).until;
  const second = await reconcile(...both);
  asked[1]?.answer();
  await (second as Postponed).until;
  expect(await reconcile(...both)).toEqual(['a', 'b']);
  expect(asked).toHaveLength(2);
});
