/** Other writers of the same objects on both sides, beside the daemon: vCluster's own syncers, and pairs of agents. */

import { expect, test } from 'vitest';
import type { Operation } from './history/operations.ts';
import { runHistory } from './sim-run.ts';
import { FORWARD, PLAIN, TEAM, type Settings } from './daemon/sim-config.ts';
import { DAEMON_MANAGER } from './daemon/sim-daemon.ts';

const SETTINGS: Settings = { ...PLAIN, areSlicesSynced: true };
const START_MS = 10_000;
const MINUTE_MS = 60_000;
/** Corrections on both sides: some at once, then with delays of 1 s, 2 s, … 32 s. */
const WRITES_MAX = 24;

interface Result {
  readonly violations: readonly string[];
  /** Writes in the minute after the other writers have started, by manager. */
  readonly writes: Readonly<Record<string, number>>;
  readonly lines: readonly string[];
}

async function run(operations: readonly Operation[], settings: Partial<Settings> = {}): Promise<Result> {
  const lines: string[] = [];
  const writes: Record<string, number> = {};
  const trace = (line: string): void => {
    lines.push(line);
    const [, seconds, manager = ''] = /^ *([\d.]+) {2}(\S+) (?:wrote|deleted) /.exec(line) ?? [];
    const atMs = Number(seconds) * 1000;
    if (atMs >= START_MS && atMs < START_MS + MINUTE_MS) writes[manager] = (writes[manager] ?? 0) + 1;
  };
  const parts = { seed: 1, daemons: 1, hasDryRun: false, isCalm: false };
  const violations = await runHistory({
    ...parts,
    settings: { ...SETTINGS, ...settings },
    operations,
    trace,
  });
  return { violations: violations.slice(0, 3), writes, lines };
}

const SERVICES: readonly Operation[] = [
  { atMs: 1000, kind: 'service', side: 'host', object: 0, form: 'plain' },
  { atMs: 1000, kind: 'service', side: 'virtual', object: 0, form: 'plain' },
];
const SERVICE = { kind: 'service', side: 'virtual', object: 0 } as const;
const PUT = { kind: 'put', object: 0, labels: {}, ips: 1, annotations: { [TEAM]: 'v1' } } as const;

const VALUE = /"example\.com\/team":"([^"]*)"/;

/** The values of the annotation that these writes to the virtual cluster have stored, without repetitions. */
function storedValues(lines: readonly string[], plural: string): readonly string[] {
  const written = lines.filter((line) => line.includes(` wrote virtual ${plural} shop/web @`));
  return [...new Set(written.map((line) => VALUE.exec(line)?.[1] ?? ''))];
}

test.each(['endpoints', 'endpointslices'] as const)(
  'no value of %s grows while vCluster syncs them too, and the user gets the own one back',
  async (plural) => {
    const { violations, writes, lines } = await run([
      ...SERVICES,
      { atMs: 2000, kind: 'vcluster', plurals: [plural] },
      { atMs: START_MS, ...PUT, plural },
      { atMs: START_MS + MINUTE_MS, kind: 'vcluster', plurals: [] },
    ]);
    expect(violations).toEqual([]);
    expect(writes[DAEMON_MANAGER]).toBeLessThanOrEqual(WRITES_MAX);
    expect(
      lines.some((line) => line.includes('event Contested on shop: Field manager "vcluster" copies')),
    ).toBe(true);
    expect(storedValues(lines, plural)).toEqual(['v1', 'team-v1']);
    expect(lines.findLast((line) => line.includes(` wrote virtual ${plural} shop/web @`))).toContain(
      '{"example.com/team":"v1"}',
    );
  },
);

test('a copy that vCluster makes of a new object is left alone while this program cannot read that object', async () => {
  const { violations, writes, lines } = await run([
    ...SERVICES,
    { atMs: 2000, ...PUT, plural: 'endpoints', annotations: { [FORWARD]: 'v0' } },
    { atMs: START_MS, kind: 'vcluster', plurals: ['endpoints'] },
    { atMs: START_MS + 9000, ...PUT, plural: 'endpoints' },
    {
      atMs: START_MS + 12_000,
      kind: 'restore',
      side: 'virtual',
      revisions: 0,
      downMs: 15_000,
      outage: 'refused',
      passes: false,
    },
    { atMs: START_MS + 14_000, kind: 'delete', side: 'virtual', plural: 'endpoints', object: 0 },
    { atMs: START_MS + 18_000, ...PUT, plural: 'endpoints', annotations: {} },
    { atMs: START_MS + MINUTE_MS, kind: 'vcluster', plurals: [] },
  ]);
  expect(violations).toEqual([]);
  expect(writes[DAEMON_MANAGER]).toBeLessThanOrEqual(WRITES_MAX);
  expect(lines.some((line) => line.includes('team-team-'))).toBe(false);
});

test.each([1500, 3000, 8000])(
  'a copy that is deleted and created again while vCluster copies it back does not grow, after %d ms',
  async (afterMs) => {
    const deleteMs = START_MS + afterMs;
    const { violations, lines } = await run([
      ...SERVICES,
      { atMs: 2000, kind: 'vcluster', plurals: ['endpoints'] },
      { atMs: START_MS, ...PUT, plural: 'endpoints' },
      { atMs: deleteMs, ...SERVICE, form: 'selector' },
      { atMs: deleteMs + 500, ...SERVICE, form: 'plain' },
      { atMs: START_MS + MINUTE_MS, kind: 'vcluster', plurals: [] },
    ]);
    expect(violations).toEqual([]);
    expect(storedValues(lines, 'endpoints')).toEqual(['v1', 'team-v1']);
    const last = lines.findLast((line) => line.includes(' wrote host endpoints team/web-x-shop-x-vc @'));
    expect(last).toContain('"example.com/team":"team-v1"');
  },
);

test.each([500, 8000])(
  'a copy that a restarted daemon deletes and creates again while vCluster copies it back does not grow, after %d ms',
  async (afterMs) => {
    const restartMs = START_MS + afterMs;
    const { violations, lines } = await run([
      ...SERVICES,
      { atMs: 2000, kind: 'vcluster', plurals: ['endpoints'] },
      { atMs: START_MS, ...PUT, plural: 'endpoints', annotations: { [FORWARD]: 'v1' } },
      { atMs: restartMs, kind: 'restart', daemon: 0, downMs: 500 },
      { atMs: restartMs + 1000, ...SERVICE, form: 'selector' },
      { atMs: restartMs + 1500, ...SERVICE, form: 'plain' },
      { atMs: START_MS + MINUTE_MS, kind: 'vcluster', plurals: [] },
    ]);
    expect(violations).toEqual([]);
    expect(lines.filter((line) => line.includes('[[v1'))).toEqual([]);
  },
);

test('a change of the user is synced while vCluster syncs the object too', async () => {
  const { violations, lines } = await run([
    ...SERVICES,
    { atMs: 2000, kind: 'vcluster', plurals: ['endpoints'] },
    { atMs: START_MS, ...PUT, plural: 'endpoints' },
    {
      atMs: START_MS + 30_000,
      kind: 'annotate',
      plural: 'endpoints',
      side: 'virtual',
      object: 0,
      key: TEAM,
      value: 'v2',
    },
    { atMs: START_MS + 31_000, kind: 'vcluster', plurals: [] },
  ]);
  expect(violations).toEqual([]);
  const host = lines.findLast((line) => line.includes(' wrote host endpoints team/web-x-shop-x-vc @'));
  expect(host).toContain('"example.com/team":"team-v2"');
});

test('the label of a slice that names its Service does not grow when vCluster starts beside the daemon', async () => {
  const { violations, writes, lines } = await run([
    ...SERVICES,
    { atMs: 2000, ...PUT, plural: 'endpointslices' },
    { atMs: START_MS, kind: 'vcluster', plurals: ['endpointslices'] },
    { atMs: START_MS + MINUTE_MS, kind: 'vcluster', plurals: [] },
  ]);
  expect(violations).toEqual([]);
  expect(writes[DAEMON_MANAGER]).toBeLessThanOrEqual(WRITES_MAX);
  expect(lines.findLast((line) => line.includes(' wrote virtual endpointslices shop/web @'))).toContain(
    '"kubernetes.io/service-name":"web"',
  );
  expect(lines.filter((line) => line.includes(' deleted virtual endpointslices shop/web '))).toEqual([]);
});

/** What makes the daemon delete a copy, while vCluster syncs it as well: the object stays, because by vCluster's values it is known. */
const PLURALS = ['endpoints', 'endpointslices'] as const;
const LABEL = { kind: 'label', plural: 'endpointslices', side: 'virtual', object: 0 } as const;
const DELETING: readonly (readonly [
  string,
  (typeof PLURALS)[number],
  Partial<Settings>,
  readonly Operation[],
])[] = [
  ...PLURALS.flatMap((plural) => {
    const gone = { kind: 'delete', side: 'virtual', plural, object: 0 } as const;
    return [
      [
        'the object is created again at once',
        plural,
        {},
        [
          { atMs: START_MS + 5000, ...gone },
          { atMs: START_MS + 5010, ...PUT, plural },
        ],
      ],
      [
        'its Service gets a selector, and loses it',
        plural,
        {},
        [
          { atMs: START_MS + 5000, ...SERVICE, form: 'selector' },
          { atMs: START_MS + 5001, ...SERVICE, form: 'plain' },
        ],
      ],
      [
        'its Service goes, which is required, and comes back',
        plural,
        { requiresService: true },
        [
          { atMs: START_MS + 5000, ...SERVICE, form: 'absent' },
          { atMs: START_MS + 5030, ...SERVICE, form: 'plain' },
          { atMs: START_MS + 5040, ...PUT, plural },
        ],
      ],
    ] as const;
  }),
  [
    'it moves to another Service',
    'endpointslices',
    {},
    [{ atMs: START_MS + 5000, ...LABEL, key: 'kubernetes.io/service-name', value: 'db' }],
  ],
  [
    'it loses its Service, and gets it back',
    'endpointslices',
    {},
    [
      { atMs: START_MS + 5000, ...LABEL, key: 'kubernetes.io/service-name', value: null },
      { atMs: START_MS + 5500, ...LABEL, key: 'kubernetes.io/service-name', value: 'web' },
    ],
  ],
  [
    'it is managed by another controller',
    'endpointslices',
    {},
    [
      { atMs: START_MS + 5000, ...LABEL, key: 'endpointslice.kubernetes.io/managed-by', value: 'custom' },
      { atMs: START_MS + 6000, ...LABEL, key: 'endpointslice.kubernetes.io/managed-by', value: 'other' },
    ],
  ],
];

test.each(DELETING)('where %s, no %s are lost because of the daemon', async (_, plural, settings, more) => {
  const { violations } = await run(
    [
      ...SERVICES,
      { atMs: 1000, ...SERVICE, object: 1, form: 'plain' },
      { atMs: 2000, kind: 'vcluster', plurals: PLURALS },
      { atMs: START_MS, ...PUT, plural },
      ...more,
      { atMs: START_MS + MINUTE_MS, kind: 'vcluster', plurals: [] },
    ],
    { ...settings, syncedByVcluster: PLURALS },
  );
  expect(violations).toEqual([]);
});

test('vCluster’s copies of slices that are mirrored from Endpoints are left to the host’s controller', async () => {
  const { violations, writes } = await run([
    ...SERVICES,
    { atMs: 2000, ...PUT, plural: 'endpoints' },
    { atMs: START_MS, kind: 'vcluster', plurals: ['endpointslices'] },
    { atMs: START_MS + MINUTE_MS, kind: 'vcluster', plurals: [] },
  ]);
  expect(violations).toEqual([]);
  expect(writes[DAEMON_MANAGER]).toBe(undefined);
});

test('two agents that rewrite one annotation on both sides hold back neither each other’s server nor the rest of the object', async () => {
  const plain = { kind: 'annotate', plural: 'endpoints', side: 'virtual', object: 0, key: 'note' } as const;
  const { violations, writes, lines } = await run([
    ...SERVICES,
    { atMs: 2000, ...PUT, plural: 'endpoints' },
    { atMs: START_MS, kind: 'agents', plural: 'endpoints', object: 0, forMs: 3 * MINUTE_MS },
    { atMs: START_MS + 40_000, ...plain, value: 'v3' },
    { atMs: START_MS + 4 * MINUTE_MS, ...plain, value: 'v4' },
  ]);
  expect(violations).toEqual([]);
  // Each change that goes to the virtual side takes two writes.
  expect(writes[DAEMON_MANAGER]).toBeLessThanOrEqual(WRITES_MAX);
  expect(
    lines.some((line) =>
      /event Contested on shop: .*keep rewriting the annotation example\.com\/agent/.test(line),
    ),
  ).toBe(true);
  const noted = lines.find(
    (line) => line.includes('endpoint-syncer wrote host endpoints') && line.includes('"note":"v3"'),
  );
  expect(Number(noted?.trim().split(' ', 1)[0])).toBeCloseTo((START_MS + 40_000) / 1000, 0);
});
