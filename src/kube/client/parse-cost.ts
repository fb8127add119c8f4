/** What parsing JSON text costs beside its bytes. */

import { randomInt } from 'node:crypto';

export interface ParseLimits {
  /** Objects and arrays. */
  readonly containersMax: number;
  /** Beginnings of lists of members, of which V8 describes each in some 200 bytes: `{"a":0,"b":0}` has two. */
  readonly shapesMax: number;
}

/**
 * 4 MiB of addresses have a quarter of a million containers, and a few dozen shapes. The longest text within these limits takes as long to parse as twice its bytes of
 * addresses; beyond them, up to thirty times as long.
 */
export const PARSE_LIMITS: ParseLimits = { containersMax: 400_000, shapesMax: 32_768 };

/** A shorter text may be anything: it takes a few milliseconds. */
const SHORT_CHARS = 64 * 1024;
/** V8 describes no shape of an object with more members. */
const MEMBERS_MAX = 128;
/** At most half of the slots are taken. */
const SLOTS = 65_536;
const [SPACE, QUOTE, BACKSLASH, COLON] = [0x20, 0x22, 0x5c, 0x3a];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];

/** Undefined: within the limits. The text need not be JSON. */
export function parseProblem(text: string, limits: ParseLimits = PARSE_LIMITS): string | undefined {
  if (text.length < SHORT_CHARS) return undefined;
  const shapes = new Int32Array(SLOTS);
  // So that no author of the text can choose names of which the hashes are the same.
  const seed = randomInt(2 ** 32 - 1);
  const opened: number[] = [];
  let [shape, members, found, containers] = [seed, 0, 0, 0];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      let key = shape;
      for (at += 1; at < text.length; at++) {
        const char = text.charCodeAt(at);
        if (char === QUOTE) break;
        key = Math.imul(key ^ char, 0x0100_0193);
        if (char === BACKSLASH) at += 1;
      }
      if (!isName(text, at + 1) || (members += 1) > MEMBERS_MAX) continue;
      shape = Math.imul(key ^ (key >>> 15), 0x2c1b_3c6d) | 1;
      if (!add(shapes, shape)) continue;
      found += 1;
      if (found > limits.shapesMax) return `more than ${limits.shapesMax} different beginnings of objects`;
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      containers += 1;
      if (containers > limits.containersMax) return `more than ${limits.containersMax} objects and arrays`;
      opened.push(shape, members);
      [shape, members] = [seed, 0];
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      members = opened.pop() ?? 0;
      shape = opened.pop() ?? seed;
    }
  }
  return undefined;
}

/** A string that ends before this place is the name of a member. */
function isName(text: string, at: number): boolean {
  let end = at;
  while (text.charCodeAt(end) <= SPACE) end += 1;
  return text.charCodeAt(end) === COLON;
}

/** False if it was there. 0 is a free slot. */
function add(slots: Int32Array, shape: number): boolean {
  let at = shape >>> 16;
  for (; slots[at] !== 0; at = (at + 1) % SLOTS) if (slots[at] === shape) return false;
  slots[at] = shape;
  return true;
}
