import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

/** Tests that take seconds: they start programs, flood, kill, repeat, or wait for limits. */
const SYSTEM = [
  'test/attack/*.test.ts',
  'test/kill/*.test.ts',
  'test/sim/memory.test.ts',
  'test/scenarios/embedded-{broken-kinds,live-commands,operation,shutdown}.test.ts',
  'test/syncer/config/one-more-field.test.ts',
  'test/cli/{api,compile-cache,eval,loaded-files,patch-warnings,process-lifecycle,run,wrong-inputs}.test.ts',
  'test/showcase/demo.test.ts',
  'test/cli/live/absent-values.test.ts',
  'test/cli/test/*.test.ts',
  'test/apiserver/request/read-body.test.ts',
  'test/base/yaml/go-reader.test.ts',
  'test/fleet/values-reader.test.ts',
  'test/expressions/{processes,throttled-queue,guest/main}.test.ts',
  'test/access-keys/serving/{fuzz,secret-hunt}.test.ts',
];
const OWN_CONFIG = [
  'test/docs/{packed,pages}.test.ts',
  'test/e2e/**',
  'test/long/**',
  'test/vcluster/**',
  'test/browser/**',
  'node_modules/**',
];

/**
 * Every test that runs from the sources: `npm test` runs the project `unit`, `npm run test:system` the other. What takes
 * minutes, the packed install, real kube-apiservers, vCluster and the browser have configurations of their own.
 */
export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: ['test/**/*.test.ts'], exclude: [...OWN_CONFIG, ...SYSTEM] },
      },
      { extends: true, test: { name: 'system', include: SYSTEM, exclude: OWN_CONFIG } },
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
    setupFiles: ['test/support/compile-cache.ts', 'test/support/long-integers.ts'],
    // A busy machine may need a minute for what takes milliseconds. These limits only end a test that hangs.
    expect: { requireAssertions: true, poll: { timeout: 60_000 } },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
