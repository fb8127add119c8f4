/** Waits for changes of files, for `test --watch`. */

import { statSync, watch, type FSWatcher } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** One change causes several events: editors write, rename and touch. */
const QUIET_MS = 100;

/** Times of files are those of the last tick of the system. */
const TICK_MS = 10;

export class FileChanges {
  readonly #watchers = new Map<string, FSWatcher>();
  #hasChanged = false;
  #sinceMs = Infinity;
  #wake: (() => void) | undefined;

  constructor(paths: readonly string[]) {
    this.add(paths);
  }

  /** Watches these paths and their folders, because a file that is replaced is no longer watched itself. */
  add(paths: readonly string[]): void {
    for (const path of paths.flatMap((each) => [dirname(resolve(each)), resolve(each)])) {
      if (this.#watchers.has(path)) continue;
      try {
        this.#watchers.set(
          path,
          watch(path, () => this.#changed()).on('error', () => this.#remove(path)),
        );
        // It was read before it was watched.
        if (statSync(path).ctimeMs >= this.#sinceMs) this.#changed();
      } catch {
        // It does not exist yet: its folder is watched.
      }
    }
  }

  /** Forgets the changes so far. */
  reset(): void {
    this.#hasChanged = false;
    this.#sinceMs = Date.now() - TICK_MS;
  }

  /** Resolves after the first change since {@link reset}, once no more events follow. */
  async next(): Promise<void> {
    if (!this.#hasChanged) await new Promise<void>((wake) => (this.#wake = wake));
    do {
      this.#hasChanged = false;
      await new Promise((done) => setTimeout(done, QUIET_MS));
    } while (this.#hasChanged);
  }

  #changed(): void {
    this.#hasChanged = true;
    this.#wake?.();
    this.#wake = undefined;
  }

  #remove(path: string): void {
    this.#watchers.get(path)?.close();
    this.#watchers.delete(path);
  }
}
