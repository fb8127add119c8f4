/** The folder that holds the master key. */

import { chmodSync } from 'node:fs';
import { expect, test } from 'vitest';
import { silentLogger, type Logger } from '../../src/observe/logger.ts';
import { temporaryFolder } from '../store/temporary-folder.ts';
import { startComposed } from './composed.ts';

test.each([
  [0o777, 1],
  [0o1777, 1],
  [0o770, 0],
  [0o700, 0],
])('of mode %o: %i warnings', async (mode, count) => {
  using folder = temporaryFolder();
  chmodSync(folder.path, mode);
  const warnings: string[] = [];
  const logger: Logger = { ...silentLogger, warn: (_fields, message) => void warnings.push(message) };
  await using api = await startComposed({ dataDir: folder.path, logger });
  expect(api.dataDir).toBe(folder.path);
  expect(warnings.filter((message) => message.includes('data directory'))).toHaveLength(count);
});
