/** Reloads a configuration when the text of one of its files changes, also if the file is replaced through a symbolic link, as mounted ConfigMaps are. */

import { watch } from 'node:fs';
import { dirname } from 'node:path';
import { ConfigError } from '../../base/errors.ts';
import { readConfigText, type FileTexts } from '../../config/load.ts';

/** An editor that saves a file writes, renames and touches it within this time. */
const SETTLE_MS = 100;

/** For a folder that does not exist yet, or that the system cannot watch because all its inotify instances are in use. */
const POLL_MS = 5000;

interface Closable {
  close(): void;
}

/**
 * Watches the files of a configuration that was read as `files`. `reload` returns the files that it read, as far as they are known: it may
 * read others. One reload runs at a time, whichever files change.
 */
export function watchConfigFiles(
  files: FileTexts,
  reload: () => Promise<FileTexts | undefined>,
  { pollMs = POLL_MS }: { readonly pollMs?: number } = {},
): Closable {
  const folders = new Map<string, Closable>();
  let inUse = files;
  let timer: NodeJS.Timeout | undefined;
  let looking = Promise.resolve();
  let isClosed = false;

  const look = async (): Promise<void> => {
    timer = undefined;
    const texts = await readTexts(inUse);
    if (isClosed || !hasChanged(inUse, texts)) return;
    inUse = (await reload()) ?? texts;
    follow();
  };
  const schedule = (): void => {
    timer ??= setTimeout(() => {
      looking = looking.then(look);
    }, SETTLE_MS);
  };
  const follow = (): void => {
    if (isClosed) return;
    const wanted = new Set([...inUse.keys()].map((file) => dirname(file)));
    for (const [folder, watcher] of folders) {
      if (wanted.has(folder)) continue;
      watcher.close();
      folders.delete(folder);
    }
    for (const folder of wanted)
      if (!folders.has(folder)) folders.set(folder, watchFolder(folder, schedule, pollMs));
    // A file may have changed after it was read and before its folder was watched.
    schedule();
  };

  follow();
  return {
    close() {
      isClosed = true;
      clearTimeout(timer);
      for (const watcher of folders.values()) watcher.close();
    },
  };
}

/** The folder, not the file: a watch on a file ends when the file is replaced. */
function watchFolder(folder: string, onChange: () => void, pollMs: number): Closable {
  try {
    return watch(folder, onChange);
  } catch {
    const timer = setInterval(onChange, pollMs);
    return { close: () => clearInterval(timer) };
  }
}

async function readTexts(files: FileTexts): Promise<FileTexts> {
  return new Map(
    await Promise.all([...files.keys()].map(async (file) => [file, await readText(file)] as const)),
  );
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readConfigText(path);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return undefined;
  }
}

function hasChanged(before: FileTexts, now: FileTexts): boolean {
  return [...now].some(([file, text]) => text !== before.get(file));
}
