import { defineConfig } from 'vitest/config';

/** The pages in a real Chromium. */
export default defineConfig({
  test: {
    include: ['test/browser/**/*.test.ts'],
    pool: 'forks',
    execArgv: ['--no-node-snapshot'],
    fileParallelism: false,
    // A busy machine may need a minute for what takes milliseconds. These limits only end a test that hangs.
    expect: { requireAssertions: true, poll: { timeout: 60_000 } },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
