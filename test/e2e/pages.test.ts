/** Every command of the pages that need kubectl or real clusters is run from the packed install, and prints what the page shows. */

import { expect, test } from 'vitest';
import { differences } from '../docs/differences.ts';
import { pagesThatNeed } from '../docs/pages.ts';
import { playOnClusters, playWithKubectl } from './play-on-clusters.ts';
import { suiteClusters } from './suite-clusters.ts';

test.each(pagesThatNeed('kubectl'))('%s', { timeout: 900_000 }, async (page) => {
  expect(differences(await playWithKubectl([page], suiteClusters().kubectl))).toEqual([]);
});

test.each(pagesThatNeed('clusters'))('%s', { timeout: 900_000 }, async (page) => {
  const continued = page === 'docs/deploy.md' ? pagesThatNeed('install') : [];
  expect(differences(await playOnClusters([page, ...continued]))).toEqual([]);
});
