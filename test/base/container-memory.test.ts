import { expect, test } from 'vitest';
import { containerMemoryLimit } from '../../src/base/container-memory.ts';

const GIB = 2 ** 30;

test.each([
  { system: 'a container with a limit', constrained: GIB, expected: GIB },
  { system: 'a control group without a limit', constrained: 2 ** 64, expected: undefined },
  { system: 'no control groups', constrained: 0, expected: undefined },
  { system: 'a limit that the machine does not reach', constrained: 4 * GIB, expected: undefined },
])('the memory of $system', ({ constrained, expected }) => {
  expect(containerMemoryLimit(constrained, 2 * GIB)).toBe(expected);
});
