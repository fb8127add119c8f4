/** Whether a process runs. */

import { existsSync, readFileSync } from 'node:fs';

/** False for a zombie, too. */
export function isAlive(pid: number): boolean {
  if (process.platform !== 'linux') {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  }
  const path = `/proc/${pid}/stat`;
  if (!existsSync(path)) return false;
  return !/^\d+ \(.*\) [ZX]/.test(readFileSync(path, 'utf8'));
}
