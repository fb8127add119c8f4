/** The bytes of a watch event, encoded once for all watchers: with a thousand watchers, encoding is most of the work. */

import type { StoredEntry } from '../storage/store.ts';
import type { ObjectViews } from '../objects/object-view.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';

/** One line of a watch. */
export interface WatchFrame {
  /** The line as a chunk of HTTP/1.1, ready for the socket. */
  readonly chunk: Buffer;
  /** The line alone; shares its bytes with the chunk. */
  readonly line: Buffer;
}

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED';

export class WatchFrames {
  readonly #views: ObjectViews;
  /** An event goes to one watcher after another, so only the last frame is needed again. */
  #last:
    | { type: WatchEventType; definition: ResourceDefinition; entry: StoredEntry; frame: WatchFrame }
    | undefined;

  constructor(views: ObjectViews) {
    this.#views = views;
  }

  /** An event with the complete object. */
  event(type: WatchEventType, definition: ResourceDefinition, entry: StoredEntry): WatchFrame {
    const last = this.#last;
    if (last?.entry === entry && last.type === type && last.definition === definition) return last.frame;
    const frame = frameOf(eventLine(type, this.#views.text(definition, entry)));
    this.#last = { type, definition, entry, frame };
    return frame;
  }
}

export function eventLine(type: string, objectText: string): string {
  return `{"type":"${type}","object":${objectText}}\n`;
}

export function frameOf(line: string): WatchFrame {
  const bytes = Buffer.byteLength(line);
  const size = `${bytes.toString(16)}\r\n`;
  const chunk = Buffer.from(`${size}${line}\r\n`);
  return { chunk, line: chunk.subarray(size.length, size.length + bytes) };
}
