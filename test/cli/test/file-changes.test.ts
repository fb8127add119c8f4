/** `test --watch` notices changes of files that it learns about while the cases run. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FileChanges } from '../../../src/cli/test/test.ts';

test('a file that changes in another folder during the first round counts, although it was not watched yet', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'file-changes-'));
  const file = join(folder, 'config.yaml');
  const changes = new FileChanges([import.meta.filename]);
  try {
    changes.reset();
    writeFileSync(file, 'changed');
    changes.add([file]);
    expect(await changes.next()).toBeUndefined();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
