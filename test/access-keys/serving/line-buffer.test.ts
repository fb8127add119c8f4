import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LineBuffer } from '../../../src/access-keys/serving/line-buffer.ts';

test('what is taken are the lines in order, in UTF-8, once', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 20 });
  const line = fc.tuple(text, fc.nat({ max: 20_000 })).map(([part, times]) => `${part.repeat(times)}\n`);
  fc.assert(
    fc.property(fc.array(fc.array(line, { maxLength: 6 }), { maxLength: 4 }), (batches) => {
      const buffer = new LineBuffer();
      for (const lines of batches) {
        for (const one of lines) buffer.append(one);
        const expected = Buffer.from(lines.join(''));
        expect(buffer.length).toBe(expected.length);
        const { bytes, count } = buffer.take();
        expect([count, bytes.equals(expected)]).toEqual([lines.length, true]);
      }
    }),
    { numRuns: 30 },
  );
});
