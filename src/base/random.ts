/** Randomness as a port: a number in [0, 1). Tests pass a seeded one. */
export type Random = () => number;

export const systemRandom: Random = Math.random;
