import { defineConfig } from 'vitest/config';

/** The scenarios against real kube-apiservers: one pair of clusters, one test after another, each in namespaces of its own. */
export default defineConfig({
  test: {
    include: ['test/e2e/**/*.test.ts'],
    globalSetup: ['test/e2e/global-setup.ts'],
    pool: 'forks',
    execArgv: ['--no-node-snapshot'],
    fileParallelism: false,
    // A busy machine may need longer than the default of 1 s for what takes milliseconds.
    expect: { requireAssertions: true, poll: { timeout: 10_000 } },
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
