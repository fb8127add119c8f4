/** The memory that the container of this process may use. */

import { totalmem } from 'node:os';

/** Bytes, from the control group (`memory.max`). Undefined: no limit below the memory of the machine, or a system without control groups. */
export function containerMemoryLimit(
  constrained = process.constrainedMemory(),
  machine = totalmem(),
): number | undefined {
  return constrained > 0 && constrained < machine ? constrained : undefined;
}
