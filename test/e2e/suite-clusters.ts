/** The clusters of the worker that runs this test file. No other file uses them meanwhile. */

import { inject } from 'vitest';
import type { ProvidedClusters } from './global-setup.ts';

export function suiteClusters(): ProvidedClusters {
  const worker = process.env['VITEST_POOL_ID'];
  const clusters = inject('clusters')[Number(worker) - 1];
  if (clusters === undefined) throw new Error(`no clusters were started for the worker ${worker}`);
  return clusters;
}
