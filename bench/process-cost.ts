/** CPU time and memory of a process and its descendants, from /proc (Linux). */

import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessCost {
  /** User and system time so far, of the tree and of its ended children, ms. Granularity: one clock tick, 10 ms. */
  readonly cpuMs: number;
  /** Sum of VmRSS over the tree, bytes; pages that two of them share count twice. */
  readonly rssBytes: number;
  /** The same of VmHWM, the largest that each process has had so far: what a limit of memory must hold. */
  readonly peakBytes: number;
  readonly processes: number;
}

const TICK_MS = 10;

export function costOf(rootPid: number): ProcessCost {
  const members = treeOf(rootPid);
  return {
    cpuMs: members.reduce((sum, { ticks }) => sum + ticks, 0) * TICK_MS,
    rssBytes: members.reduce((sum, { pid }) => sum + sizeOf('VmRSS', pid), 0),
    peakBytes: members.reduce((sum, { pid }) => sum + sizeOf('VmHWM', pid), 0),
    processes: members.length,
  };
}

/** Memory of the tree that no other process shares, bytes. */
export function privateBytesOf(rootPid: number): number {
  return treeOf(rootPid).reduce((sum, { pid }) => sum + privateOf(pid), 0);
}

function treeOf(rootPid: number): readonly Stat[] {
  const stats = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => statOf(Number(name)));
  const tree = new Set([rootPid]);
  for (let grown = true; grown;) {
    grown = false;
    for (const { pid, parent } of stats)
      if (tree.has(parent) && !tree.has(pid)) {
        tree.add(pid);
        grown = true;
      }
  }
  return stats.filter(({ pid }) => tree.has(pid));
}

interface Stat {
  readonly pid: number;
  readonly parent: number;
  readonly ticks: number;
}

function statOf(pid: number): Stat[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may contain spaces; everything after it is fixed: state, ppid, … utime, stime, cutime, cstime.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0);
    return [{ pid, parent: Number(fields[1]), ticks }];
  } catch {
    return []; // it ended in between
  }
}

function privateOf(pid: number): number {
  try {
    const lines = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8').matchAll(/^Private_\w+:\s+(\d+) kB$/gm);
    return [...lines].reduce((sum, [, kib]) => sum + Number(kib) * 1024, 0);
  } catch {
    return 0;
  }
}

function sizeOf(name: 'VmRSS' | 'VmHWM', pid: number): number {
  try {
    const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(
      readFileSync(`/proc/${pid}/status`, 'utf8'),
    );
    return Number(match?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
