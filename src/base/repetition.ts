/** When a failure that repeats is worth a log line: at 1, 2, 4, 8, … repetitions. */

/** True for 1, 2, 4, 8, … */
export function isReported(count: number): boolean {
  return count > 0 && Number.isInteger(Math.log2(count));
}
