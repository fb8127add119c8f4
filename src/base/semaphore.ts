/** Limits how many tasks run at the same time; the others wait in order. */

export interface Semaphore {
  /** Runs `task` when a permit is free, and releases the permit however the task ends. */
  run<T>(task: () => Promise<T>): Promise<T>;
}

export function createSemaphore(permits: number): Semaphore {
  let free = permits;
  const waiting: (() => void)[] = [];
  const release = (): void => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return {
    async run(task) {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        return await task();
      } finally {
        release();
      }
    },
  };
}
