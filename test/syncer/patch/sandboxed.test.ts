/** Paths and expressions of `test/cases` with the real sandbox, in one child process. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PatchConfig } from '../../../src/syncer/patch/patch-schema.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { isJsonObject, type JsonObject } from '../../../src/base/json.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { compilePatches, type CompiledPatches } from '../../../src/syncer/patch/compile.ts';
import { createPatchPipeline } from '../../../src/syncer/patch/pipeline.ts';
import { createSandbox } from '../../../src/expressions/sandbox.ts';
import type { Sandbox } from '../../../src/expressions/types.ts';
import { loadCases } from '../../support/cases.ts';
import { build, context, pipelineOptions } from './build.ts';

const VCLUSTER = { name: 'vcluster', namespace: 'vcluster-ns', config: {} };
const LIMITS = {
  expressionTimeoutMs: 1000,
  batchTimeoutMs: 5000,
  memoryBytes: 128 * 1024 * 1024,
  memoBytes: 1024 * 1024,
};

interface Job {
  readonly id: string;
  readonly object: JsonObject;
  readonly patches: readonly PatchConfig[];
  readonly compiled: CompiledPatches;
}

const jobs: Job[] = [];
let programCount = 0;
for (const { id, input } of loadCases('patches')) {
  const isExpression = id.startsWith('expr-');
  if (!isExpression && !id.startsWith('path-')) continue;
  const object = isExpression ? { value: input['value'] ?? null } : input['patch'];
  const patches = isExpression ? [{ path: 'value', expression: input['expression'] }] : input['patches'];
  if (!isJsonObject(object)) throw new Error(`${id} has no object`);
  const compiled = compilePatches(patches as unknown as PatchConfig[], programCount); // typed by the cases
  programCount += compiled.programs.length;
  jobs.push({ id, object, patches: patches as unknown as PatchConfig[], compiled });
}

describe.each([true, false])('in the daemon where it can: %s', (localEvaluation) => {
  let sandbox: Sandbox;

  beforeAll(async () => {
    const programs = jobs.flatMap(({ compiled }) => compiled.programs);
    sandbox = await createSandbox({
      programs,
      vcluster: VCLUSTER,
      limits: LIMITS,
      localEvaluation,
      clock: systemClock,
      logger: silentLogger,
    });
  });

  afterAll(() => sandbox[Symbol.asyncDispose]());

  describe('as the trusted evaluator of the other tests', () => {
    test.each(jobs)('$id', async ({ object, patches, compiled }) => {
      const options = { vcluster: VCLUSTER.name, hostNamespace: VCLUSTER.namespace };
      const pipeline = createPatchPipeline({
        ...pipelineOptions(patches, options),
        compiled,
        evaluator: sandbox,
      });
      const trusted = build(patches, options);
      const expected = await trusted.pipeline.apply('toHost', object, context());
      // Twice: the second answer may be a remembered one.
      for (let run = 0; run < 2; run++) {
        expect((await pipeline.apply('toHost', object, context())).object).toEqual(expected.object);
      }
    });
  });
});
