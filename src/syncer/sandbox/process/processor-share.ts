/** Time limits require a minimum of processor time, because on a busy machine an expression could time out without having run. The guest
 * measures its own processor time; the watchdog reads it from the system.
 */

/** Share of its time limit that an expression must have used as processor time to count as timed out. */
export const PROCESSOR_SHARE = 0.7;
/** After this multiple of its limit, an expression counts as timed out in any case. */
export const STARVED_FACTOR = 10;
