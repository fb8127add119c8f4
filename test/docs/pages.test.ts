/** Every command of the pages that need no cluster is run from the packed install, and prints what the page shows. */

import { expect, test } from 'vitest';
import { differences } from './differences.ts';
import { packedEnvironment } from './packed-install.ts';
import { pagesThatNeed, pagesWithCommands, PLAYED_PAGES } from './pages.ts';
import { playPages } from './session.ts';

test('every page with commands is tested', () => {
  expect(pagesWithCommands().toSorted()).toEqual(Object.keys(PLAYED_PAGES).toSorted());
});

test.each(pagesThatNeed('nothing'))('%s', { timeout: 300_000 }, async (page) => {
  expect(differences(await playPages({ pages: [page], env: await packedEnvironment() }))).toEqual([]);
});
