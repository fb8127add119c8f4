/** Compiled code is cached between starts. V8 uses it only with the flags that it was compiled with. */

import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');
const run = promisify(execFile);

test('a start uses the code that the installation compiled', async () => {
  const cache = mkdtempSync(join(tmpdir(), 'endpoint-syncer-compiled-'));
  try {
    await run('sh', ['-c', prepare().replace('node_modules/.cache/compile', cache)], { cwd: ROOT });
    const before = kept(cache);
    expect(before.size).toBeGreaterThan(100);
    const env = { ...process.env, NODE_COMPILE_CACHE: cache };
    await run(process.execPath, [join(ROOT, 'src', 'main.ts'), 'run', '--help'], { env });
    expect(kept(cache)).toEqual(before);
  } finally {
    rmSync(cache, { recursive: true, force: true });
  }
});

function prepare(): string {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: { prepare: string };
  };
  return scripts.prepare;
}

/** Every file, and when it was written last. */
function kept(folder: string): Map<string, number> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) =>
    statSync(join(folder, name)),
  );
  return new Map(files.filter((file) => file.isFile()).map(({ ino, mtimeMs }) => [`${ino}`, mtimeMs]));
}
