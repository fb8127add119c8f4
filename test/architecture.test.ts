/** ARCHITECTURE.md names files that exist, and its import table is the one that is enforced. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { IMPORT_TABLE } from './support/import-table.ts';

const ROOT = join(import.meta.dirname, '..');
const TEXT = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8');

describe('ARCHITECTURE.md', () => {
  test('every path that it names exists', () => {
    const paths = [...TEXT.matchAll(/`((?:src|test|docs|bench)\/[^`<]*)`/gu)].map(([, path = '']) => path);
    expect(paths.length).toBeGreaterThan(20);
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  test('its import table is equal to the enforced one', () => {
    const rows = [...TEXT.matchAll(/^\| `([a-z-]+)` \| [^|]* \| ([^|]*) \|$/gmu)].map(
      ([, folder = '', list = '']) => [
        folder,
        [...list.matchAll(/`([a-z-]+)`/gu)].map(([, name = '']) => name).toSorted(),
      ],
    );
    const enforced = Object.entries(IMPORT_TABLE).map(([folder, list]) => [folder, list.toSorted()]);
    expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(enforced));
  });
});
