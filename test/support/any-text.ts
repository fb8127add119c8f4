/** Arbitrary text for properties. */

import fc from 'fast-check';

const SURROGATES = { first: 0xd8_00, count: 0x8_00 };

/**
 * Of any code points but surrogates, up to `lengthMax` of them. fast-check's unit `binary` makes the same texts, but first a table of all
 * code points, which takes three seconds in each process.
 */
export function anyText(lengthMax: number): fc.Arbitrary<string> {
  const point = fc
    .integer({ min: 0, max: 0x10_ff_ff - SURROGATES.count })
    .map((at) => (at < SURROGATES.first ? at : at + SURROGATES.count));
  return fc.array(point, { maxLength: lengthMax }).map((points) => String.fromCodePoint(...points));
}
