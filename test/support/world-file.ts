/** Files of `test/cases/world`: what people reported, as it was. `test/world.test.ts` holds that each has its test. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const WORLD = join(import.meta.dirname, '..', 'cases', 'world');

/** Path of the file or folder `field/f1-date.yaml` of the corpus. */
export function worldFile(name: string): string {
  return join(WORLD, name);
}

export function worldText(name: string): string {
  return readFileSync(worldFile(name), 'utf8');
}
