/** The order of the test files: the longest first, so that no worker is left with one at the end while the other has nothing to do. */

import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Those that take longer than 4 s, longest first. Half of them mostly wait, so they leave the processor to the other worker. */
const LONGEST: readonly string[] = [
  'docs/packed', // installs the package first, unless it has not changed
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
  'apiserver/storage/sqlite/kill',
  'apiserver/request/request-cost',
  'syncer/translate/merge/merge-properties',
  'scenarios/embedded-references',
];

/** Vitest knows how long files took in an earlier run. In the first one, such as in CI, it takes their size, and the scenarios are small files. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isTimed = files.some((file) => this.ctx.cache.getTestSpecificationResult(file) !== undefined);
    return isTimed ? sorted : sorted.toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const at = LONGEST.indexOf(relative(import.meta.dirname, moduleId).replace('.test.ts', ''));
  return at < 0 ? LONGEST.length : at;
}
