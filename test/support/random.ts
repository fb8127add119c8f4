/** Random numbers from a printed seed, so that a run can be repeated. */

export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** `STORE_SEED` of the environment, else any. */
export function anySeed(): number {
  return Number(process.env['STORE_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
}
