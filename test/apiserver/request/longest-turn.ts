/** Measures the longest turn of the event loop. */

/**
 * Processor time of the longest turn of the event loop while `work` ran, milliseconds. Processor time of this thread instead of elapsed time,
 * so that other processes on the machine do not matter.
 */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let isRunning = true;
  let longestMs = 0;
  let lastMs = threadMs();
  const turn = (): void => {
    const nowMs = threadMs();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
    if (isRunning) setImmediate(turn);
  };
  setImmediate(turn);
  try {
    await work();
  } finally {
    isRunning = false;
  }
  turn();
  return longestMs;
}

/** Processor time of this thread so far, milliseconds. */
export function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
