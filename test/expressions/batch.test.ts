/** Batches: responses of a child process that an attacker controls, and the match that a stop is attributed to. */

import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { JsonValue } from '../../src/base/json.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { Batch, readResults, type IsolateSource } from '../../src/expressions/batch.ts';
import { compileExpression } from '../../src/expressions/front-end/compile-expression.ts';
import { isolateMessage } from '../../src/expressions/guest-source.ts';
import { NO_OBJECTS, ProgramEntry } from '../../src/expressions/program-entry.ts';
import { LIMITS, programOf } from './test-sandbox.ts';

const isolate: IsolateSource = {
  message: isolateMessage(1, {
    vcluster: { name: 'vc', namespace: 'ns', config: {} },
    names: { vcluster: 'vc', hostNamespace: 'ns', mode: 'single', byName: {}, mappingsOnly: false },
    limits: LIMITS,
  }),
  owner: '',
  main: 'main-0',
  clock: systemClock,
  logger: silentLogger,
  batched: () => undefined,
  killed: () => undefined,
};
const entry = new ProgramEntry(programOf(compileExpression('value', 1)), undefined, systemClock);

type Complete = Parameters<Batch['add']>[0]['complete'];

function add(batch: Batch, values: JsonValue[], complete: Complete, name = 'web'): void {
  const object = { namespace: 'ns', name };
  batch.add({ isolate, entry, object, values, paths: undefined, objects: NO_OBJECTS, complete });
}

describe('an answer', () => {
  test('of strings', () => {
    expect(readResults('{"values":["a","b"]}')).toEqual({ values: ['a', 'b'], errors: [] });
  });

  test('of strings that need escapes', () => {
    const values = ['","', '"', '\\', '\n', '\u2028', '\ud83d\ude00', '],[', '\t'];
    expect(readResults(JSON.stringify({ values }))).toEqual({ values, errors: [] });
  });

  test('of values, undefined and errors', () => {
    const error = { index: 2, kind: 'runtime', message: 'm', line: 1, column: 2 };
    const text = JSON.stringify({ values: [null, {}, null, null], undefinedAt: [0], errors: [error] });
    expect(readResults(text)).toEqual({ values: [undefined, {}, undefined, null], errors: [error] });
  });

  test.each([
    '',
    '[]',
    'x',
    '{}',
    '1',
    'null',
    '[["a"]]',
    '{"values":[]}',
    '{"values":"x"}',
    '{"values":["a""]}',
    '{"values":[1],"undefinedAt":[5]}',
    '{"values":[1],"undefinedAt":[-1]}',
    '{"values":[1],"undefinedAt":[0.5]}',
    '{"values":[1],"undefinedAt":0}',
    '{"values":[1],"errors":[{"index":9,"kind":"runtime","message":"m","line":0,"column":0}]}',
    '{"values":[1],"errors":[{"index":0,"kind":"runtime","message":[],"line":0,"column":0}]}',
    '{"values":[1],"errors":[0]}',
    '{"values":[1],"errors":{}}',
    '{"values":[1]}more',
  ])('%j is none', (text) => {
    expect(readResults(text)).toBeUndefined();
  });

  test('with a value that is too deep or ill-formed fails there', () => {
    const deep = `${'['.repeat(65)}${']'.repeat(65)}`;
    const results = readResults(`{"values":[1,${deep},"\\ud800"]}`);
    expect(results?.errors.map(({ index, kind }) => [index, kind])).toEqual([
      [1, 'result'],
      [2, 'result'],
    ]);
  });
});

describe('a batch', () => {
  const twoJobs = (outcomes: unknown[]): Batch => {
    const batch = new Batch();
    for (const values of [['a', 'b', 'c'], ['d']])
      add(batch, values, (results, errors) => void outcomes.push([results, [...(errors?.keys() ?? [])]]));
    return batch;
  };
  const error = (index: number) => ({ index, kind: 'runtime', message: 'm', line: 0, column: 0 });

  test('assigns results and errors to jobs, in any division, and sends only the rest again', () => {
    const outcomes: unknown[] = [];
    const batch = twoJobs(outcomes);
    expect(batch.receive(JSON.stringify({ values: [1] }))).toBe(true);
    expect(JSON.parse(batch.encode().slice('B1'.length))).toMatchObject([
      { program: 1, values: ['b', 'c'] },
      { program: 1, values: ['d'] },
    ]);
    const rest = { values: [null, null, 4], undefinedAt: [0], errors: [error(1)] };
    expect(batch.receive(JSON.stringify(rest))).toBe(true);
    expect(outcomes).toEqual([
      [[1, undefined, undefined], [2]],
      [[4], []],
    ]);
    expect([batch.isFinished, batch.matchesLeft]).toEqual([true, 0]);
  });

  test('takes no more results than it has matches', () => {
    const outcomes: unknown[] = [];
    expect(twoJobs(outcomes).receive(JSON.stringify({ values: [1, 2, 3, 4, 5] }))).toBe(false);
    expect(outcomes).toEqual([]);
  });

  test('fails a job that cannot be encoded, in a later turn', async () => {
    // As JSON.stringify throws for a text of more than half a gigabyte.
    const tooLarge = {
      toJSON: () => {
        throw new RangeError('Invalid string length');
      },
    } as unknown as JsonValue;
    const batch = new Batch();
    const failed = new Promise((resolve) =>
      add(batch, [tooLarge], (_values, errors) => resolve(errors?.get(0)?.message)),
    );
    expect([batch.isFinished, batch.matchesLeft]).toEqual([true, 0]);
    expect(await failed).toBe('the value is too large or too deep for the sandbox');
  });
});

test('each match that runs out of memory is tried on a new process before it fails', () => {
  const outcomes: string[] = [];
  const batch = new Batch();
  for (const name of ['a', 'b', 'c']) {
    const complete: Complete = (_values, errors) =>
      void outcomes.push(`${name}: ${errors?.get(0)?.kind ?? 'value'}`);
    add(batch, [name], complete, name);
  }
  batch.encode();
  const memory = (isFresh: boolean): boolean => batch.handleStop('memory', isFresh);
  expect(memory(false)).toBe(true); // sent again with one call per match
  expect(memory(false)).toBe(true); // `a` on a new process
  expect(batch.receive('{"values":["a"]}')).toBe(true);
  expect(memory(false)).toBe(true); // `b` on a new process: the memory may be that of `a`
  expect(batch.nextJob?.object.name).toBe('b');
  expect(memory(true)).toBe(true); // `b` alone
  expect(batch.nextJob?.object.name).toBe('c');
  batch.receive('{"values":["c"]}');
  expect(outcomes).toEqual(['a: value', 'b: memory', 'c: value']);
});
