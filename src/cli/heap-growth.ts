/** Tunes the growth of V8's heap, for a process that serves requests and for the daemon after its start. */

import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const YOUNG_BYTES_MAX = 16 * 1024 * 1024;

/** The same of the daemon: while it starts, twice as much takes no less time, and its peak is 15 MiB higher. */
const DAEMON_YOUNG_BYTES_MAX = 8 * 1024 * 1024;

/** Above this size, a heap that doubles takes more memory than the rest of the process. */
const LARGE_HEAP_BYTES = 128 * 1024 * 1024;

/** A collection of a larger heap would hold the event loop for too long. 50 000 Endpoints of ten addresses take 575 MiB with what is collected. */
const COLLECTED_BYTES_MAX = 768 * 1024 * 1024;

/**
 * V8 starts with 1 MiB. With it, a server under load spends a third of its time in garbage collections, and so does the daemon while it reads its
 * first lists. Measured on creates: 32 % with 1 MiB, 8 % with 8 MiB or more. A larger young generation is only resident memory, so growing
 * stops at `bytesMax`. V8's own limit can be set only before V8 starts.
 */
export function growYoungGeneration(bytesMax = YOUNG_BYTES_MAX): void {
  setFlagsFromString('--semi-space-growth-factor=2');
  const observer = new PerformanceObserver(() => {
    const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
    if (!space || space.space_size < bytesMax) return;
    setFlagsFromString('--semi-space-growth-factor=1');
    observer.disconnect();
  });
  observer.observe({ entryTypes: ['gc'] });
}

/**
 * After the first pass of the daemon, its old generation grows by 20 % between collections: V8 would double it, and a burst, such as a list of a
 * thousand Endpoints, would grow it permanently. Not before, when all that is loaded stays: a tenth of the processor time until it is ready
 * went into collections that freed nothing. Releases the memory of the first lists: of V8's collections only the one of last resort shrinks
 * the young generation. Measured with 10 000 Endpoints: 0.2 s, 287 → 225 MiB; with 50 000: 0.4 s, 660 → 490 MiB. Then the young generation may
 * grow again: with 1 MiB, an update takes a quarter more processor time.
 */
function releaseStartMemory(): void {
  setFlagsFromString('--heap-growing-percent=20');
  if (process.memoryUsage().heapUsed > COLLECTED_BYTES_MAX) return;
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: { type: 'major'; flavor: 'last-resort' }) => void; // what V8 exposes
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', flavor: 'last-resort' });
  growYoungGeneration(DAEMON_YOUNG_BYTES_MAX);
}

/** The flags that V8 starts with. */
export function resetHeapGrowth(): void {
  setFlagsFromString('--heap-growing-percent=0');
  setFlagsFromString('--semi-space-growth-factor=2');
}

export interface StartupHeap {
  /** The first lists are about to be read, or the first pass begins. */
  grow(): void;
  /** See {@link releaseStartMemory}. */
  release(): void;
}

/**
 * The heap of the daemon, or of a fleet, while it starts. A small heap grows as V8 decides, a large one by 30 % between collections, because V8
 * would double it.
 */
export function createStartupHeap(): StartupHeap {
  let observer: PerformanceObserver | undefined;
  return {
    grow() {
      resetHeapGrowth();
      growYoungGeneration(DAEMON_YOUNG_BYTES_MAX);
      observer?.disconnect();
      observer = new PerformanceObserver(() => {
        if (getHeapStatistics().used_heap_size < LARGE_HEAP_BYTES) return;
        setFlagsFromString('--heap-growing-percent=30');
        observer?.disconnect();
      });
      observer.observe({ entryTypes: ['gc'] });
    },
    release() {
      observer?.disconnect();
      releaseStartMemory();
    },
  };
}
