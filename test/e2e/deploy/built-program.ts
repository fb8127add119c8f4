/** Programs of the tests that are built once from their Go modules, into a cache outside the checkout. */

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Path of the program that `test/e2e/NAME/build.sh` builds; `module` is the one whose version its go.mod pins. The first call may build it. */
export async function builtProgram(name: string, module: string): Promise<string> {
  const source = join(import.meta.dirname, '..', name);
  const goMod = readFileSync(join(source, 'go.mod'), 'utf8');
  const pinned = goMod.split('\n').find((line) => line.includes(`${module} v`));
  const version = pinned?.trim().split(' ').at(-1);
  if (version === undefined) throw new Error(`${source}/go.mod does not pin ${module}`);
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const folder = join(cache, 'endpoint-syncer', name, version);
  if (!existsSync(join(folder, `${name}.version`))) {
    process.stderr.write(`building ${name} ${version} into ${folder}, once\n`);
    await promisify(execFile)(join(source, 'build.sh'), [folder], { maxBuffer: 64 * 1024 * 1024 });
  }
  return join(folder, name);
}
