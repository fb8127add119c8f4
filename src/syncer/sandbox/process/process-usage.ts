/** Reads memory and processor time of another process. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Bytes; undefined when the process has ended or the system does not report it. Read from /proc on Linux, from `ps` elsewhere. */
export function residentBytes(pid: number): number | undefined {
  try {
    const text =
      process.platform === 'linux'
        ? readFileSync(`/proc/${pid}/status`, 'utf8')
        : `VmRSS: ${execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })}`;
    const kib = /VmRSS:\s*(\d+)/.exec(text)?.[1];
    return kib === undefined ? undefined : Number(kib) * 1024;
  } catch {
    return undefined;
  }
}

/** Processor time used so far, milliseconds; undefined on systems other than Linux, which counts in hundredths of a second. */
export function processorMs(pid: number): number | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold anything; user and system time are the 12th and 13th fields after it.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(fields[11]) + Number(fields[12]);
    return Number.isFinite(ticks) ? ticks * 10 : undefined;
  } catch {
    return undefined;
  }
}
