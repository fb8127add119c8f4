/** The packages that `dist/` contains, by the headings of their licenses. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const LICENSES = join(import.meta.dirname, '..', 'dist', 'third-party-licenses.txt');

export function bundledPackages(): readonly { readonly name: string; readonly version: string }[] {
  const headings = readFileSync(LICENSES, 'utf8').matchAll(/^## (\S+)@(\S+) \(/gmu);
  return [...headings].map(([, name = '', version = '']) => ({ name, version }));
}
