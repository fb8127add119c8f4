import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

/** The scenarios against real kube-apiservers: a pair of clusters for each worker, one test after another, each in namespaces of its own. */
export default defineConfig({
  test: {
    include: ['test/e2e/**/*.test.ts'],
    globalSetup: ['test/e2e/global-setup.ts'],
    setupFiles: ['test/support/long-integers.ts'],
    pool: 'forks',
    execArgv: ['--no-node-snapshot'],
    // Each has a pair of clusters. Most tests wait most of the time.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    // A busy machine may need a minute for what takes milliseconds. These limits only end a test that hangs.
    expect: { requireAssertions: true, poll: { timeout: 60_000 } },
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
