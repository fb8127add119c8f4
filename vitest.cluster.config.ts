import { defineConfig } from 'vitest/config';

/** The scenarios against real kube-apiservers: one pair of clusters, one test after another, each in namespaces of its own. */
export default defineConfig({
  test: {
    include: ['test/e2e/**/*.test.ts'],
    globalSetup: ['test/e2e/global-setup.ts'],
    pool: 'forks',
    execArgv: ['--no-node-snapshot'],
    fileParallelism: false,
    // A busy machine may need a minute for what takes milliseconds. These limits only end a test that hangs.
    expect: { requireAssertions: true, poll: { timeout: 60_000 } },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
