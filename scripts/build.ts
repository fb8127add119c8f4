/** Builds `dist/` for the package, because Node does not strip types of files below `node_modules`. */

import { execFileSync } from 'node:child_process';
import { cpSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const [SOURCE, TARGET] = [join(ROOT, 'src'), join(ROOT, 'dist')];

rmSync(TARGET, { recursive: true, force: true });
execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json'], {
  cwd: ROOT,
  stdio: 'inherit',
});
// Files that the program reads, such as vCluster's default values.
cpSync(SOURCE, TARGET, {
  recursive: true,
  filter: (path) => statSync(path).isDirectory() || !path.endsWith('.ts'),
});
