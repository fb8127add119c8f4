import { defineConfig } from 'vitest/config';

/** The scenarios against real kube-apiservers: one pair of clusters, one test after another, each in namespaces of its own. */
export default defineConfig({
  test: {
    include: ['test/e2e/**/*.test.ts'],
    globalSetup: ['test/e2e/global-setup.ts'],
    pool: 'forks',
    execArgv: ['--no-node-snapshot'],
    fileParallelism: false,
    expect: { requireAssertions: true },
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
