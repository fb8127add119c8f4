/**
 * Time counts against an expression only while its process gets the processor: on a busy machine it would time out without having run.
 * The guest measures its own processor time, the watchdog reads it from the system.
 */

/** Share of its time limit that an expression must have had of the processor to count as timed out. */
export const PROCESSOR_SHARE = 0.7;
/** After this many times its limit it has timed out in any case. */
export const STARVED_FACTOR = 10;
