/** V8's garbage collector, for tests of what is released. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** The result collects garbage. A collection that V8 had begun earlier keeps what was in use then, so one may not be enough. */
export function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void; // V8 defines it
}
