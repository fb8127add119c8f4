/** Runs the longest test files first, so that the workers finish at about the same time. */

import { join, relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take longer than 4 s, longest first. */
const LONGEST: readonly string[] = [
  'scenarios/embedded-sync',
  'attack/fuzz',
  'scenarios/embedded-operation',
  'attack/worked-attacks',
  'attack/watchdog',
  'sim/sim',
  'scenarios/embedded-shutdown',
  'attack/noisy-neighbour',
  'cli/test/test',
  'scenarios/embedded-live-commands',
  'kill/kill',
  'apiserver/request/request-cost',
  'syncer/translate/merge-properties',
  'scenarios/embedded-references',
];

/** Vitest sorts by the durations of an earlier run. Without one, as in CI, it sorts by file size, but the longest files are small. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isTimed = files.some((file) => this.ctx.cache.getTestSpecificationResult(file) !== undefined);
    return isTimed ? sorted : sorted.toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const at = LONGEST.indexOf(relative(join(import.meta.dirname, '..'), moduleId).replace('.test.ts', ''));
  return at < 0 ? LONGEST.length : at;
}
