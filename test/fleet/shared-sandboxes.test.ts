/** The memory that the sandbox processes of a fleet get of its container. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fittedShare } from '../../src/fleet/shared-sandboxes.ts';

const MIB = 2 ** 20;
const WANTED = { sandboxes: 3, memoryBytes: 128 * MIB };

describe('in a container', () => {
  test.each([
    { of: 'no limit', mib: undefined, memory: 128, isExceeded: false },
    { of: '4 GiB', mib: 4096, memory: 128, isExceeded: false },
    { of: '1 GiB, as the chart gives it', mib: 1024, memory: 71, isExceeded: false },
    { of: '512 MiB', mib: 512, memory: 32, isExceeded: true },
  ])('of $of', ({ mib, memory, isExceeded }) => {
    const share = fittedShare(WANTED, mib === undefined ? undefined : mib * MIB);
    expect(Math.floor(share.memoryBytes / MIB)).toBe(memory);
    expect([share.sandboxes, share.isExceeded]).toEqual([3, isExceeded]);
  });
});

test('never more than is wanted, and together with all other limits no more than the container has, or it is said', () => {
  const input = fc.record({
    sandboxes: fc.integer({ min: 2, max: 64 }),
    wantedMib: fc.integer({ min: 16, max: 1024 }),
    containerMib: fc.integer({ min: 128, max: 65_536 }),
  });
  fc.assert(
    fc.property(input, ({ sandboxes, wantedMib, containerMib }) => {
      const share = fittedShare({ sandboxes, memoryBytes: wantedMib * MIB }, containerMib * MIB);
      expect(share.memoryBytes).toBeLessThanOrEqual(wantedMib * MIB);
      const others = 128 + containerMib * (0.4 + 1 / 8);
      const sum = others + sandboxes * (48 + share.memoryBytes / MIB);
      expect(share.isExceeded || sum <= containerMib).toBe(true);
    }),
  );
});
