/** The sandbox processes that all members share, and what they may use of the memory of the container. */

import type { Clock } from '../base/clock.ts';
import { containerMemoryLimit } from '../base/container-memory.ts';
import type { Logger } from '../base/logger.ts';
import { SandboxProcesses } from '../expressions/processes.ts';
import { CACHES_SHARE, INPUT_SHARE } from './member-limits.ts';

const MIB = 2 ** 20;
/** Of the process of the fleet, without the caches of its members. */
const BASE_BYTES = 128 * MIB;
/** What may be used of the container besides. */
const OTHER_SHARES = CACHES_SHARE + INPUT_SHARE;
/** Resident, of a sandbox process that evaluates nothing. */
const BASELINE_BYTES = 48 * MIB;
/** With less, few expressions run. */
const MEMORY_MIN = 32 * MIB;

export interface SandboxShare {
  /** Number of processes. */
  readonly sandboxes: number;
  /** What each may use above its baseline. */
  readonly memoryBytes: number;
}

/** `wanted`, with less memory where all limits together exceed that of the container. `isExceeded`: they do in any case. */
export function fittedShare(
  wanted: SandboxShare,
  containerBytes: number | undefined,
): SandboxShare & { readonly isExceeded: boolean } {
  if (containerBytes === undefined) return { ...wanted, isExceeded: false };
  const left = containerBytes * (1 - OTHER_SHARES) - BASE_BYTES;
  const fitting = left / wanted.sandboxes - BASELINE_BYTES;
  const memoryBytes = Math.min(wanted.memoryBytes, Math.max(MEMORY_MIN, Math.floor(fitting)));
  return { ...wanted, memoryBytes, isExceeded: memoryBytes > fitting };
}

export function sharedSandboxes(
  wanted: SandboxShare,
  parts: { readonly clock: Clock; readonly logger: Logger },
): SandboxProcesses {
  const container = containerMemoryLimit();
  const { sandboxes, memoryBytes, isExceeded } = fittedShare(wanted, container);
  const fields = {
    containerMiB: mib(container ?? 0),
    sandboxes,
    memoryMiB: mib(memoryBytes),
    wantedMiB: mib(wanted.memoryBytes),
  };
  if (isExceeded) parts.logger.warn(fields, EXCEEDED);
  else if (memoryBytes < wanted.memoryBytes) parts.logger.info(fields, LOWERED);
  return new SandboxProcesses({ ...parts, memoryBytes, sharedBy: sandboxes });
}

function mib(bytes: number): number {
  return Math.floor(bytes / MIB);
}

const LOWERED =
  'the sandbox processes may use less memory than endpointSyncer.defaults.sandbox.memory, because the container has no more for them';
const EXCEEDED =
  'the limits of the fleet add up to more memory than its container has, which may end it: raise the memory limit of the container, or lower endpointSyncer.fleet.limits.sandboxes';
