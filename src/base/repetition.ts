/** Which repetitions of a failure are logged: 1, 2, 4, 8, … */

/** True for 1, 2, 4, 8, … */
export function isReported(count: number): boolean {
  return count > 0 && Number.isInteger(Math.log2(count));
}
