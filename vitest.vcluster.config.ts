import { defineConfig } from 'vitest/config';

/** The suite with whole vClusters, which test/vcluster/main.ts starts in namespaces of its own. */
export default defineConfig({
  test: {
    include: ['test/vcluster/**/*.test.ts'],
    pool: 'forks',
    execArgv: ['--no-node-snapshot'],
    fileParallelism: false,
    expect: { requireAssertions: true },
    // vCluster takes half a minute to start, several times that on a busy machine.
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
