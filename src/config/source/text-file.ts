/** Reads the file that a command names; `-` is standard input. */

import { open } from 'node:fs/promises';
import { ConfigError, fileProblem } from '../../base/errors.ts';
import { problemOf } from './problem.ts';

/** The name of a file in messages. */
export function displayName(file: string): string {
  return file === '-' ? '<stdin>' : file;
}

/** The whole text of a file, or of standard input for `-`. Throws a `ConfigError` when it cannot be read. */
export async function readTextFile(file: string, bytesMax: number): Promise<string> {
  let content: Buffer;
  try {
    content = await readBounded(file === '-' ? process.stdin : chunksOf(file), bytesMax);
  } catch (error) {
    throw cannotBeRead(file, error);
  }
  if (content.length > bytesMax) throw unusable(file, `is larger than ${bytesMax} bytes`);
  try {
    // Drops a byte order mark too.
    return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch (error) {
    throw unusable(file, 'is not UTF-8 text', error);
  }
}

/** A `ConfigError` for an error of the file system. */
export function cannotBeRead(file: string, cause: unknown): ConfigError {
  return unusable(file, `cannot be read: ${fileProblem(cause)}`, cause);
}

/** Stops soon after the limit: a file may be a pipe or a device without an end. */
async function readBounded(source: AsyncIterable<Buffer | string>, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of source) {
    const part = Buffer.from(chunk);
    chunks.push(part);
    bytes += part.length;
    if (bytes > bytesMax) break;
  }
  return Buffer.concat(chunks);
}

async function* chunksOf(file: string): AsyncIterable<Buffer> {
  await using handle = await open(file);
  for (;;) {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(64 * 1024));
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

function unusable(file: string, message: string, cause?: unknown): ConfigError {
  return new ConfigError([problemOf(displayName(file), message)], { cause });
}
