/**
 * For the programs that tests start: what they compile is the same every time. Apart from what Vitest's own processes keep, for
 * `main.ts` changes V8's flags, and V8 throws away what was compiled under others.
 */

import { join } from 'node:path';

export const COMPILE_CACHE = join(
  import.meta.dirname,
  '..',
  '..',
  'node_modules',
  '.cache',
  'endpoint-syncer-tests',
);

process.env['NODE_COMPILE_CACHE'] = COMPILE_CACHE;
