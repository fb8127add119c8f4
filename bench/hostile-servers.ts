/** What the API server of a hostile member may send, by name. */

import { HOSTILE_INPUTS, type Answer } from '../test/attack/hostile-input.ts';
import { flapping } from '../test/attack/hostile-member.ts';

export const HOSTILE_SERVERS: Readonly<Record<string, Answer>> = {
  ...HOSTILE_INPUTS,
  '10 000 objects that change all the time': flapping(10_000),
};
