/** Arbitrary text for properties. */

import fc from 'fast-check';

/**
 * Of any code points, lone surrogates included, up to 10 of them without `lengthMax`. fast-check's unit `binary` makes the same texts, but
 * first a table of all code points, which takes three seconds in each process.
 */
export function anyText(lengthMax = 10): fc.Arbitrary<string> {
  const point = fc.integer({ min: 0, max: 0x10_ff_ff });
  return fc.array(point, { maxLength: lengthMax }).map((points) => String.fromCodePoint(...points));
}
