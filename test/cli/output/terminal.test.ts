/** Progress and colours on a terminal. */

import { describe, expect, test } from 'vitest';
import { paintFor, progressOn } from '../../../src/cli/output/terminal.ts';

/** A terminal whose writes are recorded, and a clock that the test advances. */
function terminal(isTTY: boolean) {
  const written: string[] = [];
  const clock = { nowMs: 0 };
  const output = { isTTY, write: (text: string | Uint8Array) => written.push(String(text)) > 0 };
  return { written, clock, output, monotonicMs: () => clock.nowMs };
}

describe('progress', () => {
  test('appears after one second, at most ten times a second, and is removed at the end', () => {
    const { written, clock, output, monotonicMs } = terminal(true);
    {
      using progress = progressOn(output, 'rendering', monotonicMs);
      for (clock.nowMs = 0; clock.nowMs < 1000; clock.nowMs += 100) progress.update(1, 4);
      expect(written).toEqual([]);
      for (clock.nowMs = 1000; clock.nowMs < 1200; clock.nowMs += 10) progress.update(2, 4);
      expect(written).toEqual(Array(2).fill('\rrendering [############............] 2/4\u001b[K'));
    }
    expect(written.at(-1)).toBe('\r\u001b[K');
  });

  test('of unknown length is a label, until it ends', () => {
    const { written, output, monotonicMs } = terminal(true);
    const progress = progressOn(output, 'copying a.db', monotonicMs);
    progress.announce();
    progress[Symbol.dispose]();
    progress[Symbol.dispose]();
    expect(written).toEqual(['\rcopying a.db …\u001b[K', '\r\u001b[K']);
  });

  test('writes nothing to a file or a pipe', () => {
    const { written, clock, output, monotonicMs } = terminal(false);
    using progress = progressOn(output, 'rendering', monotonicMs);
    clock.nowMs = 5000;
    progress.update(1, 2);
    progress.announce();
    expect(written).toEqual([]);
  });
});

describe('colours', () => {
  test.each([
    [true, {}, '\u001b[31mx\u001b[0m'],
    [true, { NO_COLOR: '' }, '\u001b[31mx\u001b[0m'],
    [true, { NO_COLOR: '1' }, 'x'],
    [true, { TERM: 'dumb' }, 'x'],
    [false, {}, 'x'],
  ])('on a terminal %s with %j', (isTTY, env, text) => {
    expect(paintFor({ isTTY }, env).red('x')).toBe(text);
  });
});
