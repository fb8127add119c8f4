/**
 * Time counts against an expression only while its process gets the processor: a busy machine is not its fault. The guest judges so by its
 * own clock, the watchdog from outside.
 */

/** So much of its time an expression must have had of the processor to be blamed. */
export const PROCESSOR_SHARE = 0.7;
/** But nobody waits for ever: after so many times its limit it is blamed all the same. */
export const STARVED_FACTOR = 10;
