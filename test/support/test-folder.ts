/** A temporary folder for the tests of one file, deleted after them. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

export interface TestFolder {
  readonly folder: string;
  /** Writes a file into the folder; returns its path. */
  readonly write: (name: string, content: string | Uint8Array, mode?: number) => string;
}

export function testFolder(): TestFolder {
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-test-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const write: TestFolder['write'] = (name, content, mode) => {
    const path = join(folder, name);
    writeFileSync(path, content, { mode });
    return path;
  };
  return { folder, write };
}
