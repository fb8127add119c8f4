import { defineConfig } from 'vitest/config';

/** What only shows after a minute, or with a slow API server: commands that run on, and deadlines that outlive what they were for. Its tests mostly wait. */
export default defineConfig({
  test: {
    include: ['test/long/**/*.test.ts'],
    pool: 'forks',
    execArgv: ['--no-node-snapshot'],
    maxWorkers: 2,
    sequence: { concurrent: true },
    maxConcurrency: 12,
    setupFiles: ['test/support/compile-cache.ts'],
    expect: { requireAssertions: true, poll: { timeout: 60_000 } },
    testTimeout: 300_000,
    hookTimeout: 120_000,
  },
});
