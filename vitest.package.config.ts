import { defineConfig } from 'vitest/config';

/** The packed install and the pages that it plays: npm packs and installs the package first, unless its sources have not changed. */
export default defineConfig({
  test: {
    include: ['test/docs/{packed,pages}.test.ts'],
    pool: 'forks',
    execArgv: ['--no-node-snapshot'],
    setupFiles: ['test/support/compile-cache.ts'],
    // A busy machine may need a minute for what takes milliseconds. These limits only end a test that hangs.
    expect: { requireAssertions: true, poll: { timeout: 60_000 } },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
