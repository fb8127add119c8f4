/** Each mutant still applies to the source, and has a unique name. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mutated } from './mutated.ts';
import { MUTANTS } from './mutants.ts';

test.each(MUTANTS.map((mutant) => [mutant.name, mutant] as const))('%s', (_name, mutant) => {
  const text = readFileSync(join(import.meta.dirname, '..', '..', '..', 'src', mutant.file), 'utf8');
  expect(mutated(mutant, text)).not.toBe(text);
});

test('mutants have unique names', () => {
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
});
