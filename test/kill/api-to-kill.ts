/** The key and token API over SQLite in a process to be killed: loads its modules, waits for a line, serves, and prints its address. */

import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { startManagementApi } from '../../src/access-keys/management-api.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { managementConfig } from '../access-keys/composed-api.ts';

const [, , dataDir = ''] = process.argv;
await once(createInterface({ input: process.stdin }), 'line');
const { url } = await startManagementApi({
  config: managementConfig(dataDir, { store: { driver: 'sqlite' } }),
  clock: systemClock,
  random: systemRandom,
  logger: silentLogger,
  version: '0.0.0',
  signal: new AbortController().signal,
});
process.stdout.write(`${url}\n`);
