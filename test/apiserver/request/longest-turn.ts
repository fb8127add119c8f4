/** How long one turn of the event loop kept the processor: what everything else in the process had to wait. */

/**
 * Milliseconds of processor time that the longest turn of the event loop took while `work` ran. Processor time of this thread, not the
 * time of the clock: another process that uses the same processor does not count.
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

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
