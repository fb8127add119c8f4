/** Watches the files of a configuration, also where they are replaced through a symbolic link, as mounted ConfigMaps are. */

import { watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sleep, type Clock } from '../../base/clock.ts';
import { ConfigError } from '../../base/errors.ts';
import { readConfigText, type FileTexts } from '../../config/load.ts';

/** A file that has not changed for so long is not being written. */
const SETTLE_MS = 250;

/** For a folder that does not exist yet, or that the system cannot watch because all its inotify instances are in use. */
const POLL_MS = 5000;

export interface Watching {
  close(): void;
}

/**
 * Calls `onChange` with the texts of the files when one has changed since it was read as `files`, and all have been still for
 * {@link SETTLE_MS}. `onChange` returns the texts that it read itself, as far as they are known: it may read other files, and what differs
 * from a text that was still is looked at again. One call runs at a time, whichever files change.
 */
export function watchConfigFiles(
  files: FileTexts,
  onChange: (texts: FileTexts) => Promise<FileTexts | undefined>,
  clock: Clock,
): Watching {
  const closing = new AbortController();
  const folders = new Map<string, Watching>();
  let paths = [...files.keys()];
  let known = files;
  let isChanged = false;
  let looking: Promise<void> | undefined;

  const look = async (): Promise<void> => {
    while (isChanged && !closing.signal.aborted) {
      isChanged = false;
      const texts = await stillTexts(paths, clock, closing.signal);
      if (closing.signal.aborted || agree(texts, known)) continue;
      const read = (await onChange(texts)) ?? texts;
      paths = [...read.keys()];
      known = new Map([...read].filter(([path, text]) => texts.has(path) && texts.get(path) === text));
      follow();
    }
    looking = undefined;
  };
  const schedule = (): void => {
    isChanged = true;
    looking ??= look();
  };
  const follow = (): void => {
    if (closing.signal.aborted) return;
    const wanted = new Set(paths.map((path) => dirname(path)));
    for (const [folder, watching] of folders) {
      if (wanted.has(folder)) continue;
      watching.close();
      folders.delete(folder);
    }
    for (const folder of wanted)
      if (!folders.has(folder)) folders.set(folder, watchFolder(folder, schedule, clock));
    // A file may have changed after it was read and before its folder was watched.
    schedule();
  };

  follow();
  return {
    close() {
      closing.abort();
      for (const watching of folders.values()) watching.close();
    },
  };
}

/** Whether every text of `texts` is the one in `known`. */
export function agree(texts: FileTexts, known: FileTexts): boolean {
  return [...texts].every(([path, text]) => known.has(path) && known.get(path) === text);
}

/** The folder, not the file: a watch on a file ends when the file is replaced. */
function watchFolder(folder: string, onChange: () => void, clock: Clock): Watching {
  try {
    return watch(folder, onChange);
  } catch {
    const poll = (): void => {
      onChange();
      timer = clock.schedule(POLL_MS, poll);
    };
    let timer = clock.schedule(POLL_MS, poll);
    return { close: () => timer.cancel() };
  }
}

/** The texts of the files once none of them has changed for {@link SETTLE_MS}, nor while it was read. */
async function stillTexts(paths: readonly string[], clock: Clock, signal: AbortSignal): Promise<FileTexts> {
  for (let before = await stampsOf(paths); ;) {
    await sleep(clock, SETTLE_MS, signal);
    const texts = await Promise.all(paths.map(async (path) => [path, await readText(path)] as const));
    const now = await stampsOf(paths);
    if (now === before || signal.aborted) return new Map(texts);
    before = now;
  }
}

/** Differs after every write to one of the files, and after its replacement. */
async function stampsOf(paths: readonly string[]): Promise<string> {
  const stamps = paths.map(async (path) => {
    try {
      const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
      return [ino, size, mtimeNs, ctimeNs].join(' ');
    } catch {
      return ''; // there is no such file
    }
  });
  return (await Promise.all(stamps)).join('\n');
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readConfigText(path);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return undefined;
  }
}
