/** What an Event says about patches that fail: on one line, with the position of each. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PatchError } from '../../../src/base/errors.ts';
import { excerptOf, placeOf } from '../../../src/base/excerpt.ts';
import { outcomeOf } from '../../../src/syncer/reconcile/controller.ts';
import { capturedRun } from '../../cli/captured-run.ts';
import { testFolder } from '../../support/test-folder.ts';

const { write } = testFolder();

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

/** Of JavaScript, in which a line may end in each of them. */
const LINE_ENDS = ['\n', '\r\n', '\r', '\u2028', '\u2029'];

test('the caret points at the same character whatever is before it', () => {
  const part = fc.constantFrom(
    ...LINE_ENDS,
    ' ',
    '\t',
    'a',
    '\u0007',
    '\u202e',
    'ü',
    '\u{1f600}',
    ' '.repeat(130),
  );
  const before = fc.array(part, { maxLength: 8 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(before, before, (head, tail) => {
      const text = `${head}such${tail}`;
      const { line, column, excerpt } = placeOf(text, head.length);
      expect(excerptOf(text, line, column)).toBe(excerpt);
      const { warning } = outcomeOf(failure(0, { excerpt }), 0, '');
      const [, at = '', shown = ''] = /at column (\d+) of: (.*)$/u.exec(warning?.note ?? '') ?? [];
      expect(shown.slice(Number(at) - 1)).toMatch(/^such/u);
    }),
  );
});

test('the position that the engine gives is in a line of the expression, however its lines end', async () => {
  const names = LINE_ENDS.map((_, at) => `a${at}`);
  const patches = LINE_ENDS.map((end, at) => ({
    path: `metadata.annotations.${names[at]}`,
    expression: `(() => {${end}  const note = 1;${end}\treturn value.no.such;${end}})()`,
  }));
  const sync = { toHost: { endpoints: { patches } } };
  const config = write(
    'config.yaml',
    JSON.stringify({ endpointSyncer: { name: 'vc', host: { namespace: 'host' } }, sync }),
  );
  const annotations = Object.fromEntries(names.map((name) => [name, 'x']));
  const metadata = { namespace: 'shop', name: 'web', annotations };
  const object = write('object.json', JSON.stringify({ apiVersion: 'v1', kind: 'Endpoints', metadata }));
  const { err } = await capturedRun(['render', '--config', config, '-f', object]);
  const excerpts = [...err.matchAll(/^.*metadata\.annotations\.(a\d): .*\n(.*)\n(\s*\^)$/gmu)];
  expect(excerpts.map(([, name, line = '', caret = '']) => [name, line.slice(caret.length - 1)])).toEqual(
    names.map((name) => [name, 'such;']),
  );
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
