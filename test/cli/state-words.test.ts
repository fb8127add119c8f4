/** A state of an object has one word, wherever it is shown. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { STATES } from '../../src/syncer/rehearsal/sync-status.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

test('the page of the demo counts and colours the states of status', () => {
  const shown = /const STATES = \[([^\]]*)\]/u.exec(read('src/showcase/assets/clusters.js'))?.[1] ?? '';
  const words = [...shown.matchAll(/'([^']+)'/gu)].map(([, word]) => word);
  expect(new Set(words)).toEqual(new Set([...STATES, 'updated now', 'host only']));
  const style = read('src/showcase/assets/page.css');
  const coloured = [...style.matchAll(/\[data-state='([^']+)'\]/gu)].map(([, word]) => word);
  expect(new Set(coloured)).toEqual(new Set(words));
});

test('the page of commands explains each of them', () => {
  const [, listed = ''] = /States: (.*?);/su.exec(read('docs/commands.md')) ?? [];
  expect(new Set(Array.from(listed.matchAll(/`([a-z]+)`/gu), ([, word]) => word))).toEqual(new Set(STATES));
});

test('what the engine logs of an object that is not in sync is one of them', () => {
  const [, kinds = ''] =
    /interface Wait \{\s+readonly outcome: ([^;]+);/u.exec(read('src/syncer/reconcile/left.ts')) ?? [];
  const words = [...kinds.matchAll(/'([^']+)'/gu)].map(([, word]) => word);
  expect(words).toHaveLength(4);
  expect(STATES).toEqual(expect.arrayContaining(words));
});
