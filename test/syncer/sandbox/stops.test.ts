/** The match that a stop of the sandbox is attributed to. */

import { expect, test } from 'vitest';
import { silentLogger } from '../../../src/base/logger.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { Batch } from '../../../src/syncer/sandbox/batch.ts';
import { compileExpression } from '../../../src/syncer/sandbox/front-end/compile-expression.ts';
import { NO_OBJECTS, ProgramEntry } from '../../../src/syncer/sandbox/program-entry.ts';
import { programOf } from './test-sandbox.ts';

const OPTIONS = { expressionTimeoutMs: 100, batchTimeoutMs: 1000, clock: systemClock, logger: silentLogger };

test('each match that runs out of memory is tried on a new process before it fails', () => {
  const entry = new ProgramEntry(programOf(compileExpression('value', 1)), undefined, systemClock);
  const outcomes: string[] = [];
  const batch = new Batch();
  for (const name of ['a', 'b', 'c']) {
    batch.add({
      entry,
      object: { namespace: 'ns', name },
      values: [name],
      paths: undefined,
      objects: NO_OBJECTS,
      complete: (_values, errors) => void outcomes.push(`${name}: ${errors?.get(0)?.kind ?? 'value'}`),
    });
  }
  batch.encode();
  const memory = (isFresh: boolean): boolean => batch.handleStop('memory', isFresh, OPTIONS);
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
