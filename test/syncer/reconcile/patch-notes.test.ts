/** What an Event says about patches that fail: on one line, with the position of each. */

import { expect, test } from 'vitest';
import { PatchError } from '../../../src/base/errors.ts';
import { excerptOf } from '../../../src/base/excerpt.ts';
import { outcomeOf } from '../../../src/syncer/reconcile/controller.ts';

function failure(index: number, details: Partial<PatchError> = {}): PatchError {
  return new PatchError('no', { index, path: 'metadata.labels.a', kind: 'runtime', ...details });
}

test('the position is that in the line of the expression, also in one that is cut', () => {
  for (const [source, line, column] of [
    ['value.no.such', 1, 10],
    ['const a = 1;\n  value.no.such', 2, 12],
    [`${' '.repeat(300)}value.no.such${' '.repeat(300)}`, 1, 310],
  ] as const) {
    const { warning } = outcomeOf(failure(0, { excerpt: excerptOf(source, line, column) }), 0, '');
    expect(warning?.note).not.toContain('\n');
    const [, at = '', text = ''] = /\(runtime\) at column (\d+) of: (.*)$/u.exec(warning?.note ?? '') ?? [];
    expect(text.slice(Number(at) - 1)).toMatch(/^such/);
  }
});

test('each patch is named, and retried as soon as one of them may be', () => {
  const error = failure(0).with([
    failure(2, { kind: 'result' }),
    failure(3, { kind: 'timeout', retryAfterMs: 7 }),
  ]);
  expect(outcomeOf(error, 0, '')).toEqual({
    retry: { afterMs: 7 },
    warning: {
      reason: 'PatchFailed',
      note: [
        'patches[0], path metadata.labels.a: no (runtime)',
        'patches[2], path metadata.labels.a: no (result)',
        'patches[3], path metadata.labels.a: no (timeout)',
      ].join('; '),
    },
  });
  expect(outcomeOf(failure(0).with([failure(1)]), 0, '').retry).toBe('never');
  expect(error.ofSyncedRest()).toMatchObject({ isRestSynced: true, others: [{ index: 2 }, { index: 3 }] });
});
