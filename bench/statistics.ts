/** Order statistics of what was measured, and the ratios of two subjects that were measured in the same rounds. */

/** Nearest rank; 0 without values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Over the rounds. */
export interface Ratio {
  readonly least: number;
  readonly median: number;
  readonly greatest: number;
}

/** Ours divided by the other's within each round, because both then ran under the same load of the machine. */
export function ratioOf(ours: readonly number[], others: readonly number[]): Ratio | undefined {
  const ratios = others.flatMap((other, round) => {
    const own = ours[round];
    return own === undefined ? [] : [own / other];
  });
  return ratios.length === 0
    ? undefined
    : { least: Math.min(...ratios), median: median(ratios), greatest: Math.max(...ratios) };
}

export function ratioText({ least, median, greatest }: Ratio): string {
  const [low, middle, high] = [least, median, greatest].map((ratio) => Number(ratio.toPrecision(3)));
  return `${middle} × [${low}–${high}]`;
}
