import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

/** Every test that runs from the sources. The packed install, real kube-apiservers, vCluster and the browser have files of their own. */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [
      'test/docs/{packed,pages}.test.ts',
      'test/e2e/**',
      'test/vcluster/**',
      'test/browser/**',
      'node_modules/**',
    ],
    pool: 'forks',
    isolate: false,
    execArgv: ['--no-node-snapshot'],
    // One more than cores: some files mostly wait.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Of tests that mostly wait, see the scenarios.
    maxConcurrency: 3,
    // Of this process alone; what tests start gets another from the setup file.
    env: {
      NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules', '.cache', 'endpoint-syncer-vitest'),
    },
    setupFiles: ['test/support/compile-cache.ts'],
    // A busy machine may need a minute for what takes milliseconds. These limits only end a test that hangs.
    expect: { requireAssertions: true, poll: { timeout: 60_000 } },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
