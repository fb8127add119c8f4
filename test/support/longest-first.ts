/** Runs the longest test files first, so that the workers finish at about the same time. */

import { join, relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take longer than 4 s, longest first. */
const LONGEST: readonly string[] = [
  'e2e/real',
  'e2e/real-leaders',
  'e2e/kill',
  'e2e/trust',
  'e2e/real-references',
  'e2e/restore',
  'e2e/fleet-replicas',
  'e2e/faults',
  'e2e/real-live-commands',
  'e2e/fleet',
  'e2e/pages',
  'scenarios/embedded-sync',
  'scenarios/embedded-live-commands',
  'scenarios/embedded-operation',
  'attack/watchdog',
  'attack/one-key',
  'attack/worked-attacks',
  'scenarios/embedded-references',
  'attack/fuzz',
  'attack/revoked-while-waiting',
  'scenarios/embedded-shutdown',
  'sim/memory',
  'apiserver/request/read-body',
  'kill/kill',
  'cli/test/test',
  'sim/sim',
  'attack/noisy-neighbour',
  'cli/api',
  'cli/eval',
  'access-keys/cases',
  'sim/prediction',
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
