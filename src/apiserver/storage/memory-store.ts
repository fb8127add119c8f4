/** The in-memory driver: an engine without a log. Every write completes in the turn of its call. */

import { systemClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/logger.ts';
import type { Engine } from './engine.ts';
import { RevisionedStore } from './revisioned-store.ts';
import type { HistoryOptions, Notes } from './store.ts';

const HISTORY_LIMIT = 2048;

export class MemoryStore extends RevisionedStore {
  constructor({ historyLimit: eventsMax = HISTORY_LIMIT }: Pick<HistoryOptions, 'historyLimit'> = {}) {
    super({
      engine: memoryEngine(),
      eventsMax,
      bytesMax: Number.POSITIVE_INFINITY,
      clock: systemClock,
      logger: silentLogger,
    });
  }
}

const DONE = Promise.resolve();

function memoryEngine(): Engine {
  const tables = new Map<string, Map<string, string>>();
  return {
    name: 'memory',
    isShared: false,
    load: () => DONE,
    encode: () => '',
    append: () => undefined,
    compact: () => DONE,
    forget: () => undefined,
    probe: () => DONE,
    notes(table) {
      const notes = tables.get(table) ?? new Map<string, string>();
      tables.set(table, notes);
      return memoryNotes(notes);
    },
    close: () => DONE,
  };
}

function memoryNotes(notes: Map<string, string>): Notes {
  return {
    read: async () => new Map(notes),
    async write(changes) {
      for (const [key, value] of changes) {
        if (value === undefined) notes.delete(key);
        else notes.set(key, value);
      }
    },
  };
}
