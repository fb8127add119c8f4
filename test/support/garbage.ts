/** V8's garbage collector, for tests of what is released. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** The result collects garbage. A collection that V8 had begun earlier keeps what was in use then, so one may not be enough. */
export function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void; // V8 defines it
  // Other tests of this process look at the globals of a new context.
  setFlagsFromString('--no-expose-gc');
  return collect;
}
