/** Watches the content of a file, including one that is replaced through a symbolic link, as mounted ConfigMaps are. */

import { statSync, watch, type FSWatcher } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Debounce: an editor that saves a file writes, renames and touches it. */
const QUIET_MS = 100;

/** Calls `onChange` when the content has changed, also between `readAtMs` and now; one call at a time. */
function watchFile(path: string, readAtMs: number, onChange: () => Promise<void>): { close(): void } {
  let content = readText(path);
  let timer: NodeJS.Timeout | undefined;
  let running = Promise.resolve();
  const look = async (): Promise<void> => {
    const next = await readText(path);
    if (next === undefined || next === (await content)) return;
    content = Promise.resolve(next);
    await onChange();
  };
  const schedule = (check: () => Promise<void>): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      running = running.then(check);
    }, QUIET_MS);
  };
  // The folder, not the file: a watch on a file ends when the file is replaced.
  const watcher: FSWatcher = watch(dirname(path), () => schedule(look));
  if (isWrittenSince(path, readAtMs)) schedule(onChange);
  return {
    close() {
      clearTimeout(timer);
      watcher.close();
    },
  };
}

function isWrittenSince(path: string, atMs: number): boolean {
  const written = statSync(path, { throwIfNoEntry: false });
  return written !== undefined && written.mtimeMs > atMs;
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return undefined; // being replaced at this moment: the next event reads it
  }
}

/**
 * Watches the files of a configuration that was read at `readAtMs`; a reload may read other files. `reload` returns those that it read, as
 * far as they are known; one reload runs at a time, whichever files change.
 */
export function watchConfigFiles(
  { files, readAtMs }: { readonly files: readonly string[]; readonly readAtMs: number },
  reload: () => Promise<readonly string[] | undefined>,
): { close(): void } {
  const watchers = new Map<string, { close(): void }>();
  let reloading = Promise.resolve();
  let isClosed = false;
  const follow = (wanted: readonly string[], atMs: number): void => {
    for (const [file, watcher] of watchers) {
      if (wanted.includes(file)) continue;
      watcher.close();
      watchers.delete(file);
    }
    for (const file of wanted)
      if (!isClosed && !watchers.has(file)) watchers.set(file, watchFile(file, atMs, onChange));
  };
  const onChange = (): Promise<void> => {
    reloading = reloading.then(async () => {
      const atMs = Date.now();
      follow((await reload()) ?? [...watchers.keys()], atMs);
    });
    return reloading;
  };
  follow(files, readAtMs);
  return {
    close() {
      isClosed = true;
      follow([], 0);
    },
  };
}
