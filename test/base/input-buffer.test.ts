/** Input in pieces of any size: nothing is lost, and a piece costs no more than its bytes. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { collectInput, InputBlocks, InputBuffer } from '../../src/base/input-buffer.ts';

const pieces = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 60 });

describe('a buffer', () => {
  test('has all pieces up to its limit, and is empty after they are taken', () => {
    fc.assert(
      fc.property(pieces, fc.nat(1000), (all, bytesMax) => {
        const buffer = new InputBuffer(bytesMax);
        const taken = all.filter((piece) => buffer.append(piece));
        const expected = Buffer.concat(taken);
        expect(buffer.length).toBe(expected.length);
        expect(buffer.capacity).toBeLessThanOrEqual(Math.min(bytesMax, 2 * expected.length));
        expect(buffer.take()).toEqual(expected);
        expect([buffer.length, buffer.capacity]).toEqual([0, 0]);
        const refused = all.filter((piece) => !taken.includes(piece));
        for (const piece of refused) expect(piece.length).toBeGreaterThan(bytesMax - expected.length);
      }),
    );
  });

  test('of a million pieces is copied 20 times, not a million times', () => {
    const buffer = new InputBuffer(2 ** 20);
    const capacities = new Set<number>();
    const piece = Buffer.from('x');
    for (let at = 0; at < 2 ** 20; at++) {
      buffer.append(piece);
      capacities.add(buffer.capacity);
    }
    expect([...capacities]).toEqual(Array.from({ length: 21 }, (_, power) => 2 ** power));
    expect(buffer.append(piece)).toBe(false);
  });
});

describe('blocks', () => {
  test('have the bytes of the pieces in their order', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20_000), { maxLength: 12 }), (lengths) => {
        const all = lengths.map((length, at) => Buffer.alloc(length, at));
        const passed: Buffer[] = [];
        const blocks = new InputBlocks((block) => passed.push(block));
        for (const piece of all) blocks.add(piece);
        blocks.flush();
        expect(Buffer.concat(passed)).toEqual(Buffer.concat(all));
        // Two in succession are more than one block.
        expect(passed.length).toBeLessThanOrEqual(2 * Math.ceil(Buffer.concat(all).length / 16_384) + 1);
      }),
    );
  });
});

describe('a stream', () => {
  async function* of(all: readonly (Uint8Array | string)[], read: { count: number }) {
    for (const piece of all) {
      read.count += 1;
      yield await Promise.resolve(piece);
    }
  }

  test('is collected, texts and bytes', async () => {
    const read = { count: 0 };
    expect(await collectInput(of(['ä', Buffer.from('b')], read), 3)).toEqual(Buffer.from('äb'));
  });

  test('is read no further than its limit', async () => {
    const read = { count: 0 };
    expect(await collectInput(of(['aa', 'bb', 'cc', 'dd'], read), 5)).toBeUndefined();
    expect(read.count).toBe(3);
  });
});
