/** The rows of the patch benchmark, and the table. */

import type { PeerName } from './patch-peers.ts';
import type { Rate } from './patch-work.ts';
import { ratioText, type Ratio } from './statistics.ts';

export interface Row {
  /** Matches per object. */
  readonly shape: number;
  /** Where the expression is evaluated. In the daemon, results are not cached. */
  readonly place: 'daemon' | 'sandbox';
  readonly memo: boolean;
  /** `queue full`: many objects are in progress; `single`: one at a time. */
  readonly mode: 'queue full' | 'single';
  readonly ours: Rate;
  readonly peers: Readonly<Partial<Record<PeerName, Rate>>>;
  /** Ours divided by the peer's. */
  readonly ratio: Readonly<Partial<Record<PeerName, Ratio>>>;
}

const TITLES: Readonly<Record<PeerName, string>> = {
  gojaPerObject: 'goja, runtime per object',
  gojaReused: 'goja, one runtime',
  isolatedVmNaive: 'isolated-vm, naive',
  plainFunction: 'plain function',
};

/** Million matches per second; for each peer also the ratio of ours to it. */
export function report(rows: readonly Row[], missing: Readonly<Partial<Record<PeerName, string>>>): string {
  const peers = Object.keys(TITLES) as PeerName[];
  const head = [
    'matches',
    'place',
    'memo',
    'mode',
    'objects/s',
    'M matches/s',
    ...peers.map((peer) => TITLES[peer]),
  ];
  const body = rows.map((row) => [
    String(row.shape),
    row.place,
    row.memo ? 'on' : 'off',
    row.mode,
    String(row.ours.objectsPerSecond),
    millions(row.ours),
    ...peers.map((peer) => {
      const [rate, ratio] = [row.peers[peer], row.ratio[peer]];
      return rate && ratio ? `${millions(rate)} (${ratioText(ratio)})` : 'missing';
    }),
  ]);
  const notes = Object.entries(missing).map(([peer, reason]) => `${peer} is missing: ${reason}`);
  return [...table([head, ...body]), ...notes].join('\n');
}

function millions({ matchesPerSecond }: Rate): string {
  const value = matchesPerSecond / 1e6;
  return value.toFixed(value < 1 ? 3 : 2);
}

function table(lines: readonly (readonly string[])[]): string[] {
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  return lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
