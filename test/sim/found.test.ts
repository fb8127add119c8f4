/** Minimal histories in which the simulation found a bug, each with the bug as its title. */

import { expect, test } from 'vitest';
import { CONFIG, FORWARD, PLAIN, SECRET, TEAM, type Settings } from './daemon/sim-config.ts';
import type { Action, Operation, SyncedPlural } from './history/operations.ts';
import { seededHistory } from './history/seeded-history.ts';
import { runHistory } from './sim-run.ts';
import { CALM } from './world/faults.ts';

const SETTINGS = PLAIN;
const ENDPOINTS = { plural: 'endpoints', annotations: {}, labels: {}, ips: 1 } as const;

const SERVICE = { plural: 'services', object: 0, ports: 1, annotations: {}, labels: {} } as const;

const SHOP_SECRET = { plural: 'secrets', namespace: 'shop', name: 'tls', place: 'name' } as const;

/** What is violated when these happen one after the other, each once the one before has settled. */
function history(actions: readonly Action[], settings: Partial<Settings> = {}): Promise<string[]> {
  return run(
    actions.map((action, at) => ({ ...action, atMs: 10_000 * (at + 1) })),
    settings,
  );
}

function run(
  operations: readonly Operation[],
  settings: Partial<Settings>,
  {
    seed,
    daemons,
    isCalm = false,
  }: { readonly seed: number; readonly daemons: number; readonly isCalm?: boolean } = {
    seed: 1,
    daemons: 1,
  },
): Promise<string[]> {
  const parts = { seed, daemons, hasDryRun: false, isCalm };
  return runHistory({ ...parts, settings: { ...SETTINGS, ...settings }, operations });
}

const OBJECT = { plural: 'endpoints', object: 0 } as const;
const RESTORE = { kind: 'restore', downMs: 8000, outage: 'refused', passes: true } as const;

test('with deleteVirtual, a host that was restored from a backup without a copy does not delete the virtual object', async () => {
  const restored = await history(
    [
      { kind: 'put', object: 0, ...ENDPOINTS },
      { ...RESTORE, side: 'host', revisions: 3, outage: 'proxied', passes: false },
      { kind: 'put', object: 0, ...ENDPOINTS, ips: 2 },
    ],
    { deletesVirtual: true },
  );
  expect(restored).toEqual([]);
});

test('after a restore, an object that has its old version and other content is synced', async () => {
  const edit = { plural: 'endpoints', side: 'virtual', object: 0, key: 'example.com/forward' } as const;
  const restored = await run(
    [
      { atMs: 10_000, kind: 'put', object: 0, ...ENDPOINTS },
      { atMs: 20_000, kind: 'annotate', ...edit, value: 'v1' },
      { atMs: 30_000, ...RESTORE, side: 'virtual', revisions: 1, passes: false },
      { atMs: 31_000, kind: 'annotate', ...edit, value: 'v2' },
    ],
    {},
  );
  expect(restored).toEqual([]);
});

test('an edit that a restored host has lost is written again although the host has passed its old revisions', async () => {
  const restored = await history([
    { kind: 'put', object: 0, ...ENDPOINTS },
    { kind: 'put', object: 0, ...ENDPOINTS, ips: 3 },
    { ...RESTORE, side: 'host', revisions: 1 },
  ]);
  expect(restored).toEqual([]);
});

test('a copy that another client applied again under the name of another copy is not changed', async () => {
  const clone = await history([
    { kind: 'put', object: 0, ...ENDPOINTS },
    { kind: 'clone', plural: 'endpoints', object: 0, at: 1 },
    { kind: 'put', object: 1, ...ENDPOINTS },
  ]);
  expect(clone).toEqual([]);
});

test('a copy with a damaged name remains the copy of its own object, not of another one with the same host name', async () => {
  const damaged = await history([
    { kind: 'put', object: 3, ...ENDPOINTS },
    { kind: 'put', object: 4, ...ENDPOINTS },
    { kind: 'damage', plural: 'endpoints', object: 3, key: 'vcluster.loft.sh/object-name', value: null },
  ]);
  expect(damaged).toEqual([]);
});

test('a value that is being synced back is not stored in translated form if the patch is removed in the meantime', async () => {
  const edit = {
    plural: 'endpoints',
    side: 'host',
    object: 0,
    key: 'example.com/team',
    value: 'v1',
  } as const;
  const interrupted = await history([
    { kind: 'put', object: 0, ...ENDPOINTS },
    { kind: 'crash', daemon: 0, afterWrites: 1, downMs: 25_000 },
    { kind: 'annotate', ...edit },
    { kind: 'configure', settings: { isPatched: false }, isRestart: true },
  ]);
  expect(interrupted).toEqual([]);
});

test('with deleteVirtual, a copy that moves with its namespace does not take its virtual object along', async () => {
  const moved = await run(
    [
      { atMs: 10_000, kind: 'put', object: 0, ...ENDPOINTS },
      { atMs: 20_000, kind: 'configure', settings: { isMapped: true }, isRestart: false },
    ],
    { deletesVirtual: true },
    // With this seed, the event of the old copy's deletion comes before the response.
    { seed: 3, daemons: 1 },
  );
  expect(moved).toEqual([]);
});

test('with deleteVirtual, a virtual Service is deleted with its copy, even if the deletion of its Endpoints is noticed first', async () => {
  const deleted = await run(
    [
      { kind: 'putService', form: 'plain', ...SERVICE, atMs: 10_000 },
      { kind: 'put', object: 0, ...ENDPOINTS, atMs: 20_000 },
      { kind: 'delete', plural: 'services', side: 'host', object: 0, atMs: 40_000 },
    ],
    { areServicesSynced: true, deletesVirtual: true },
    // With this seed, the event of the Endpoints comes first, and that of the Service after the virtual Endpoints are deleted.
    { seed: 12, daemons: 1, isCalm: true },
  );
  expect(deleted).toEqual([]);
});

test('with deleteVirtual, the deletion of a foreign object that had the place of a copy deletes nothing', async () => {
  const freed = await history(
    [
      { kind: 'foreign', object: 0, plural: 'endpoints', isReplacing: false },
      { kind: 'put', object: 0, ...ENDPOINTS },
      { kind: 'delete', object: 0, plural: 'endpoints', side: 'host' },
    ],
    { deletesVirtual: true },
  );
  expect(freed).toEqual([]);
});

test('with deleteVirtual, an object that was created again outlives the copy of the one before it', async () => {
  const renewed = await history(
    [
      { kind: 'put', object: 0, ...ENDPOINTS },
      { kind: 'pause', daemon: 0, forMs: 35_000 },
      { kind: 'delete', object: 0, plural: 'endpoints', side: 'virtual' },
      { kind: 'delete', object: 0, plural: 'endpoints', side: 'host' },
      { kind: 'put', object: 0, ...ENDPOINTS },
    ],
    { deletesVirtual: true },
  );
  expect(renewed).toEqual([]);
});

test('a clone of a copy whose namespace is mapped later is not touched', async () => {
  const clone = await history([
    { kind: 'put', object: 0, ...ENDPOINTS },
    { kind: 'clone', plural: 'endpoints', object: 0, at: 2 },
    { kind: 'put', object: 2, ...ENDPOINTS },
    { kind: 'configure', settings: { isMapped: true }, isRestart: false },
  ]);
  expect(clone).toEqual([]);
});

test('an object that was created again while the daemon was paused gets the Events about its references', async () => {
  const put = { kind: 'put', object: 0, ...ENDPOINTS, annotations: { [CONFIG]: 'ca' } } as const;
  const renewed = await history(
    [
      put,
      { kind: 'pause', daemon: 0, forMs: 25_000 },
      { kind: 'delete', object: 0, plural: 'endpoints', side: 'virtual' },
      put,
    ],
    { hasReferences: true },
  );
  expect(renewed).toEqual([]);
});

test('a Service with a selector that was created again while the daemon was paused gets its Event', async () => {
  const renewed = await history(
    [
      { kind: 'putService', ...SERVICE, form: 'selector' },
      { kind: 'pause', daemon: 0, forMs: 25_000 },
      { kind: 'delete', object: 0, plural: 'services', side: 'virtual' },
      { kind: 'putService', ...SERVICE, form: 'selector' },
    ],
    { areServicesSynced: true },
  );
  expect(renewed).toEqual([]);
});

test('an object that a tenant creates while it is imported from the host is what the copy names', async () => {
  const place = { plural: 'configmaps', namespace: 'shop', name: 'ca', place: 'name' } as const;
  const object = { kind: 'object', ...place, form: 'plain', value: 'v1' } as const;
  const replaced = await run(
    [
      { atMs: 10_000, kind: 'put', object: 0, ...ENDPOINTS, annotations: { [CONFIG]: 'ca' } },
      { atMs: 20_000, kind: 'trouble', forMs: 30_000, rates: { ...CALM, latencyMaxMs: 3000 } },
      { atMs: 20_001, ...object, side: 'host' },
      { atMs: 23_000, ...object, side: 'virtual' },
    ],
    { hasReferences: true, isPatched: false },
  );
  expect(replaced).toEqual([]);
});

test('a copy that a former leader writes to an earlier place is deleted', async () => {
  const late = await run(
    [
      { atMs: 25_000, kind: 'pause', daemon: 1, forMs: 1500 },
      { atMs: 25_100, kind: 'configure', settings: { isMapped: true }, isRestart: false },
      { atMs: 25_200, kind: 'put', object: 1, ...ENDPOINTS },
      { atMs: 25_300, kind: 'deleteLease' },
      { atMs: 40_000, kind: 'compact', side: 'host' },
    ],
    { hasLeaderElection: true },
    { seed: 3, daemons: 2 },
  );
  expect(late).toEqual([]);
});

test('an object without a Service does not keep a host name from one that may take it over', async () => {
  const plain = { kind: 'service', side: 'virtual', object: 3 } as const;
  const blocked = await history([
    { kind: 'service', side: 'host', object: 3, form: 'selector' },
    { kind: 'put', object: 4, ...ENDPOINTS },
    { kind: 'service', side: 'host', object: 3, form: 'plain' },
    { ...plain, form: 'plain' },
    { kind: 'put', object: 3, ...ENDPOINTS },
  ]);
  expect(blocked).toEqual([]);
});

test('with deleteVirtual, Endpoints outlive the deletion of the copy of their Service by this program', async () => {
  const released = await history(
    [
      { kind: 'putService', ...SERVICE, form: 'plain' },
      { kind: 'put', object: 0, ...ENDPOINTS },
      { kind: 'pause', daemon: 0, forMs: 35_000 },
      { kind: 'delete', object: 0, plural: 'services', side: 'virtual' },
      { kind: 'put', object: 0, ...ENDPOINTS },
    ],
    { areServicesSynced: true, deletesVirtual: true },
  );
  expect(released).toEqual([]);
});

test('a reload while imports of a removed kind are deleted leaves none behind', async () => {
  const left = await run(
    [
      { atMs: 1000, kind: 'object', side: 'host', ...SHOP_SECRET, form: 'plain', value: 'v1' },
      { atMs: 11_000, kind: 'put', object: 0, ...ENDPOINTS, annotations: { [SECRET]: 'tls' } },
      { atMs: 20_000, kind: 'trouble', forMs: 2000, rates: { ...CALM, latencyMaxMs: 300 } },
      { atMs: 20_000, kind: 'configure', settings: { hasReferences: false }, isRestart: true },
      { atMs: 20_600, kind: 'configure', settings: { isPatched: false }, isRestart: false },
    ],
    { hasReferences: true },
  );
  expect(left).toEqual([]);
});

test('a reload after the deletion of the last object that names a kind leaves no import behind', async () => {
  const left = await run(
    [
      { atMs: 1000, kind: 'object', side: 'host', ...SHOP_SECRET, form: 'plain', value: 'v1' },
      { atMs: 11_000, kind: 'put', object: 0, ...ENDPOINTS, annotations: { [SECRET]: 'tls' } },
      { atMs: 20_000, kind: 'trouble', forMs: 2000, rates: { ...CALM, refused: 0.4 } },
      { atMs: 20_000, kind: 'delete', plural: 'endpoints', side: 'virtual', object: 0 },
      { atMs: 20_200, kind: 'configure', settings: { hasReferences: false }, isRestart: false },
    ],
    { hasReferences: true, isPatched: false },
    { seed: 9, daemons: 1 },
  );
  expect(left).toEqual([]);
});

test('a Secret that was refused for its content is imported once it is allowed', async () => {
  const place = { plural: 'secrets', namespace: 'shop', name: 'ca', place: 'name', side: 'host' } as const;
  const allowed = await history(
    [
      // The last digit selects a kubeconfig.
      { kind: 'object', ...place, form: 'forbidden', value: 'v3' },
      { kind: 'put', object: 0, ...ENDPOINTS, annotations: { [SECRET]: 'ca' } },
      { kind: 'object', ...place, form: 'plain', value: 'v3' },
    ],
    { hasReferences: true },
  );
  expect(allowed).toEqual([]);
});

test('a Secret that is refused for its content is named by no copy, whichever namespace refers to it first', async () => {
  const put = { kind: 'put', ...ENDPOINTS, annotations: { [SECRET]: 'tls' } } as const;
  const named = await run(
    [
      { atMs: 1000, kind: 'object', side: 'host', ...SHOP_SECRET, form: 'forbidden', value: 'v3' },
      { atMs: 11_000, kind: 'trouble', forMs: 2000, rates: { ...CALM, hung: 0.2 } },
      { atMs: 11_000, object: 0, ...put },
      { atMs: 11_000, object: 2, ...put },
      { atMs: 13_000, kind: 'compact', side: 'host' },
    ],
    { hasReferences: true },
    // One of the two reads of the Secret hangs.
    { seed: 2, daemons: 1 },
  );
  expect(named).toEqual([]);
});

test('imports of a copy that the endpoints controller of the host has replaced are deleted', async () => {
  const onHost = { kind: 'service', side: 'host', object: 0 } as const;
  const left = await run(
    [
      { atMs: 1000, kind: 'object', ...SHOP_SECRET, side: 'virtual', form: 'plain', value: 'v1' },
      { atMs: 2000, kind: 'put', object: 0, ...ENDPOINTS, annotations: { [SECRET]: 'tls' } },
      { atMs: 3000, kind: 'putService', ...SERVICE, form: 'classed' },
      { atMs: 20_000, kind: 'trouble', forMs: 2000, rates: { ...CALM, latencyMaxMs: 300 } },
      { atMs: 20_000, ...onHost, form: 'absent' },
      { atMs: 20_010, ...onHost, form: 'selector' },
    ],
    { hasReferences: true, areServicesSynced: true },
  );
  expect(left).toEqual([]);
});

/** Per kind: what a user creates, and how a client of the host puts an object of its own in the place of the copy. */
const REPLACED: readonly (readonly [SyncedPlural, Action, readonly Action[]])[] = [
  [
    'endpoints',
    { kind: 'put', object: 0, ...ENDPOINTS, annotations: { [SECRET]: 'tls' } },
    [{ kind: 'foreign', isReplacing: true, ...OBJECT }],
  ],
  [
    'endpointslices',
    { kind: 'put', object: 0, ...ENDPOINTS, plural: 'endpointslices', annotations: { [SECRET]: 'tls' } },
    [{ kind: 'foreign', isReplacing: true, plural: 'endpointslices', object: 0 }],
  ],
  [
    'services',
    { kind: 'putService', ...SERVICE, form: 'external', annotations: { [SECRET]: 'tls' } },
    [
      { kind: 'delete', side: 'host', plural: 'services', object: 0 },
      { kind: 'service', side: 'host', object: 0, form: 'unmarked' },
    ],
  ],
];

test.each(
  REPLACED.flatMap((row) => (['virtual', 'host'] as const).map((from) => [row[0], from, row] as const)),
)(
  'of %s that have opted out, the import from the %s goes when a foreign object takes the place of the copy',
  async (plural, from, [, put, replace]) => {
    const isService = plural === 'services';
    const left = await run(
      [
        { atMs: 1000, kind: 'object', ...SHOP_SECRET, side: from, form: 'plain', value: 'v1' },
        // Without it, the host's controller deletes the foreign Endpoints.
        ...(isService
          ? []
          : [{ atMs: 2000, kind: 'service', side: 'host', object: 0, form: 'plain' } as const]),
        { atMs: 10_000, ...put },
        { atMs: 20_000, kind: 'optOut', side: 'virtual', isOut: true, plural, object: 0 },
        // So that no reconcile sees the place empty.
        { atMs: 30_000, kind: 'pause', daemon: 0, forMs: 5000 },
        ...replace.map((action) => ({ atMs: 31_000, ...action })),
      ],
      { hasReferences: true, areSlicesSynced: true, areServicesSynced: isService },
    );
    expect(left).toEqual([]);
  },
);

test('a slice that the host derived from a damaged copy of Endpoints is not a copy of the slice with its name', async () => {
  const key = 'vcluster.loft.sh/object-host-name';
  const deleted = await run(
    [
      { atMs: 1000, kind: 'put', object: 0, ...ENDPOINTS },
      { atMs: 2000, kind: 'putService', ...SERVICE, form: 'balanced' },
      { atMs: 20_000, kind: 'trouble', forMs: 2000, rates: { ...CALM, latencyMaxMs: 300 } },
      { atMs: 20_000, kind: 'damage', plural: 'endpoints', object: 0, key, value: null },
      { atMs: 22_000, kind: 'compact', side: 'host' },
    ],
    { areSlicesSynced: true, areServicesSynced: true, isMapped: true },
  );
  expect(deleted).toEqual([]);
});

test('an edit on the host is not lost if the first list of a daemon shows the object before it was created again', async () => {
  const put = { kind: 'put', object: 0, ...ENDPOINTS } as const;
  const edit = { kind: 'annotate', plural: 'endpoints', side: 'host', object: 0, key: 'note' } as const;
  const edited = await run(
    [
      { atMs: 10_000, ...put },
      { atMs: 20_000, kind: 'compact', side: 'virtual' },
      { atMs: 20_001, kind: 'delete', plural: 'endpoints', side: 'virtual', object: 0 },
      { atMs: 30_000, ...put },
      { atMs: 40_000, kind: 'trouble', forMs: 5000, rates: { ...CALM, staleLists: 1, latencyMaxMs: 300 } },
      { atMs: 40_001, kind: 'crash', daemon: 0, afterWrites: 0, downMs: 100 },
      { atMs: 40_002, ...edit, value: 'v1' },
      { atMs: 50_000, kind: 'compact', side: 'host' },
    ],
    // With seed 1, the list is that old.
    {},
  );
  expect(edited).toEqual([]);
});

test('imports of a removed kind are deleted although an admission webhook rejects their deletion at first', async () => {
  const left = await run(
    [
      { atMs: 1000, kind: 'object', side: 'host', ...SHOP_SECRET, form: 'plain', value: 'v1' },
      { atMs: 11_000, kind: 'put', object: 0, ...ENDPOINTS, annotations: { [SECRET]: 'tls' } },
      { atMs: 20_000, kind: 'trouble', forMs: 1000, rates: { ...CALM, rejected: 1 } },
      { atMs: 20_000, kind: 'configure', settings: { hasReferences: false }, isRestart: true },
      { atMs: 30_000, kind: 'compact', side: 'host' },
    ],
    { hasReferences: true },
  );
  expect(left).toEqual([]);
});

test('with deleteVirtual, the copy of a Service outlives the Endpoints for which it was synced', async () => {
  const left = await run(
    [
      { atMs: 1000, kind: 'put', object: 0, ...ENDPOINTS },
      { atMs: 11_000, kind: 'putService', ...SERVICE, form: 'plain' },
      { atMs: 20_000, kind: 'delete', plural: 'endpoints', side: 'host', object: 0 },
    ],
    { areServicesSynced: true, deletesVirtual: true },
    { seed: 2, daemons: 1 },
  );
  expect(left).toEqual([]);
});

test('a Service is synced again once this program has given its slice the label back that names it', async () => {
  const place = { object: 4, labels: {}, annotations: {} } as const;
  const left = await run(
    [
      { atMs: 2649, kind: 'putService', plural: 'services', ...place, form: 'classed', ports: 2 },
      { atMs: 5317, kind: 'put', plural: 'endpointslices', ...place, ips: 1 },
      { atMs: 29_077, kind: 'vcluster', plurals: ['endpointslices'] },
      { atMs: 37_853, kind: 'compact', side: 'host' },
    ],
    { areEndpointsSynced: false, areSlicesSynced: true, areServicesSynced: true },
    // With this seed, the response comes before the event of the watch.
    { seed: 3052, daemons: 1 },
  );
  expect(left).toEqual([]);
});

test.each([1, 3, 4, 6])(
  'an edit of a copy is synced back before the copy goes because the host Service of another one is created (seed %i)',
  async (seed) => {
    const lines: string[] = [];
    const team = { ...ENDPOINTS, annotations: { [TEAM]: 'v1' } };
    // The Service of the one and the Endpoints of the other have the same host name.
    const operations: readonly Operation[] = [
      { atMs: 1000, kind: 'put', object: 3, ...team },
      { atMs: 10_000, kind: 'restart', daemon: 0, downMs: 20_000 },
      {
        atMs: 15_000,
        kind: 'annotate',
        plural: 'endpoints',
        side: 'host',
        object: 3,
        key: TEAM,
        value: 'team-v2',
      },
      { atMs: 16_000, kind: 'putService', form: 'headless', ...SERVICE, object: 4 },
      { atMs: 17_000, kind: 'put', object: 4, ...ENDPOINTS },
      { atMs: 40_000, kind: 'compact', side: 'host' },
    ];
    const settings = { ...SETTINGS, areServicesSynced: true };
    const parts = { seed, daemons: 1, hasDryRun: false, isCalm: true };
    const trace = (line: string): void => void lines.push(line);
    expect(await runHistory({ ...parts, settings, operations, trace })).toEqual([]);
    expect(lines.findLast((line) => line.includes(' wrote virtual endpoints c/a-x-b '))).toContain(
      `"${TEAM}":"v2"`,
    );
  },
);

test('an edit of the copy of a Service is synced back before the copy is created again', async () => {
  const lines: string[] = [];
  const team = { ...SERVICE, annotations: { [TEAM]: 'v1' } };
  const edit = { kind: 'annotate', plural: 'services', side: 'host', object: 0, key: TEAM } as const;
  const operations: readonly Operation[] = [
    { atMs: 1000, kind: 'put', object: 0, ...ENDPOINTS },
    { atMs: 2000, kind: 'putService', ...team, form: 'headless' },
    { atMs: 10_000, kind: 'restart', daemon: 0, downMs: 20_000 },
    // Its type changes twice, so that the same object gets a cluster IP.
    { atMs: 12_000, kind: 'putService', ...team, form: 'external' },
    { atMs: 14_000, kind: 'putService', ...team, form: 'plain' },
    { atMs: 16_000, ...edit, value: 'team-v2' },
  ];
  const settings = { ...SETTINGS, areServicesSynced: true };
  const parts = { seed: 1, daemons: 1, hasDryRun: false, isCalm: true };
  const trace = (line: string): void => void lines.push(line);
  expect(await runHistory({ ...parts, settings, operations, trace })).toEqual([]);
  expect(lines.findLast((line) => line.includes(' wrote virtual services '))).toContain(`"${TEAM}":"v2"`);
});

test('of two slices with one host name, that of the Service on the host has its copy, also once another syncer has copied names back', async () => {
  const slice = { kind: 'put', ...ENDPOINTS, plural: 'endpointslices' } as const;
  const left = await run(
    [
      { atMs: 1000, ...slice, object: 4 },
      { atMs: 10_000, kind: 'putService', ...SERVICE, object: 3, form: 'plain' },
      { atMs: 10_400, kind: 'putService', ...SERVICE, object: 4, form: 'plain' },
      { atMs: 20_000, ...slice, object: 3 },
      { atMs: 30_000, kind: 'vcluster', plurals: ['endpoints', 'endpointslices'] },
      { atMs: 31_000, ...slice, object: 1 },
    ],
    { areEndpointsSynced: false, areSlicesSynced: true, areServicesSynced: true },
  );
  expect(left).toEqual([]);
});

test('an object that has opted out and whose copy is deleted imports nothing', async () => {
  const side = { plural: 'endpoints', object: 0 } as const;
  const left = await history(
    [
      { kind: 'put', object: 0, ...ENDPOINTS, annotations: { [SECRET]: 'tls' } },
      { kind: 'optOut', ...side, side: 'virtual', isOut: true },
      { kind: 'delete', ...side, side: 'host' },
      { kind: 'object', side: 'host', ...SHOP_SECRET, form: 'plain', value: 'v1' },
    ],
    { hasReferences: true },
  );
  expect(left).toEqual([]);
});

test.each<[string, boolean, readonly Action[]]>([
  ['while the host is away', false, []],
  ['before a restart', true, []],
  ['and back in after it', false, [{ kind: 'optOut', ...OBJECT, side: 'virtual', isOut: false }]],
])(
  'the copy of an object that opts out %s stays where a configuration without mappings put it',
  async (_, isRestart, after) => {
    const left = await run(
      [
        { atMs: 1000, kind: 'put', object: 0, ...ENDPOINTS },
        { atMs: 10_000, ...RESTORE, side: 'host', revisions: 0, downMs: 20_000 },
        { atMs: 11_000, kind: 'configure', settings: { isMapped: true }, isRestart },
        { atMs: 21_000, kind: 'optOut', ...OBJECT, side: 'virtual', isOut: true },
        ...after.map((action) => ({ ...action, atMs: 60_000 })),
      ],
      {},
    );
    expect(left).toEqual([]);
  },
);

test.each([false, true])(
  'what stands in for a slice whose controller changes does not stay, in mapped namespaces: %s',
  async (isMapped) => {
    const slice = { plural: 'endpointslices', object: 0 } as const;
    const label = { key: 'endpointslice.kubernetes.io/managed-by', value: 'custom' };
    const left = await history(
      [
        { kind: 'put', ...slice, ips: 2, annotations: {}, labels: {} },
        { kind: 'label', ...slice, side: 'host', ...label },
      ],
      { isMapped, areSlicesSynced: true },
    );
    expect(left).toEqual([]);
  },
);

test.each([0, 8, 16])(
  'an arrived value that the tenant changes back while another one is on its way is not restored (%i ms)',
  async (ms) => {
    const edit = { kind: 'annotate', plural: 'endpoints', object: 0 } as const;
    const kept = await run(
      [
        { atMs: 10_000, kind: 'put', object: 0, ...ENDPOINTS },
        { atMs: 20_000, ...edit, side: 'host', key: 'example.com/plain', value: 'v1' },
        { atMs: 30_000, ...edit, side: 'host', key: 'note', value: 'v2' },
        { atMs: 30_005 + ms, ...edit, side: 'virtual', key: 'example.com/plain', value: null },
      ],
      {},
    );
    expect(kept).toEqual([]);
  },
);

test.each([
  ['the only object of its name', []],
  ['an object that shares its name with a later one', [3]],
])(
  'the copy of a deleted slice that was marked as a controller’s while no daemon ran does not block %s',
  async (_, created) => {
    const slice = { kind: 'put', ...ENDPOINTS, plural: 'endpointslices' } as const;
    const copy = { plural: 'endpointslices', object: 3 } as const;
    const blocked = await run(
      [
        { atMs: 10_000, ...slice, object: 3 },
        { atMs: 20_000, kind: 'crash', daemon: 0, afterWrites: 0, downMs: 8000 },
        { atMs: 21_000, kind: 'delete', side: 'virtual', ...copy },
        { atMs: 22_000, ...slice, object: 4 },
        ...created.map((object) => ({ atMs: 23_000, ...slice, object })),
        {
          atMs: 24_000,
          kind: 'label',
          side: 'host',
          ...copy,
          key: 'endpointslice.kubernetes.io/managed-by',
          value: 'endpointslice-controller.k8s.io',
        },
      ],
      { areSlicesSynced: true },
    );
    expect(blocked).toEqual([]);
  },
);

test('a copy that a finalizer holds is reported once, after 30 s', async () => {
  const lines: string[] = [];
  const operations: readonly Operation[] = [
    { kind: 'put', object: 0, ...ENDPOINTS, atMs: 10_000 },
    { kind: 'finalizer', plural: 'endpoints', side: 'host', object: 0, isSet: true, atMs: 20_000 },
    { kind: 'delete', plural: 'endpoints', side: 'host', object: 0, atMs: 30_000 },
    { kind: 'annotate', plural: 'endpoints', side: 'host', object: 0, key: TEAM, value: 'x', atMs: 90_000 },
    { kind: 'finalizer', plural: 'endpoints', side: 'host', object: 0, isSet: false, atMs: 120_000 },
  ];
  const parts = { seed: 1, daemons: 1, hasDryRun: false, isCalm: false, settings: SETTINGS, operations };
  expect(await runHistory({ ...parts, trace: (line) => lines.push(line) })).toEqual([]);
  const events = lines.filter((line) => line.includes('event Terminating'));
  expect(events).toHaveLength(1);
  expect(Number(events[0]?.trim().split(' ')[0])).toBeCloseTo(60, 0);
  expect(events[0]).toContain('and waits for the finalizer example.com/hold.');
});

test.each([13, 14])(
  'a Service that appears in an outage, after its Endpoints are gone, may be copied: its watch can be the first to read on, %i',
  async (seed) => {
    const service = { kind: 'service', side: 'virtual', object: 3 } as const;
    const copied = await run(
      [
        { atMs: 10_000, kind: 'put', ...ENDPOINTS, object: 3 },
        { atMs: 20_000, ...RESTORE, side: 'virtual', revisions: 0, downMs: 24_000 },
        { atMs: 24_000, kind: 'delete', plural: 'endpoints', side: 'virtual', object: 3 },
        { atMs: 28_000, ...service, form: 'plain' },
      ],
      { areServicesSynced: true },
      { seed, daemons: 1, isCalm: true },
    );
    expect(copied).toEqual([]);
  },
);

// Its deletion has ended, has deleted one of two slices, or has not begun.
test.each([2, 3, 4])(
  'a backup from amid the deletion of a namespace brings back no object that can get no Events, %i revisions ago',
  async (revisions) => {
    const put = { kind: 'put', ...ENDPOINTS, plural: 'endpointslices' } as const;
    const left = await run(
      [
        ...[0, 1].map((object) => ({ atMs: 10_000, ...put, object })),
        { atMs: 20_000, kind: 'namespace', side: 'virtual', name: 'shop', forMs: 60_000 },
        { atMs: 30_000, ...RESTORE, side: 'virtual', revisions },
        ...[0, 1].map((object) => ({ atMs: 45_000, ...put, object, annotations: { [CONFIG]: 'ca' } })),
      ],
      { hasReferences: true, areSlicesSynced: true },
    );
    expect(left).toEqual([]);
  },
);

test.each(
  (['endpoints', 'endpointslices'] as const).flatMap((plural) =>
    [1, 2, 3].map((seed) => [plural, seed] as const),
  ),
)(
  'what vCluster copied back before a start does not grow when the record of the copy is removed before the first write succeeds, %s, %i',
  async (plural, seed) => {
    const left = await run(
      [
        { atMs: 1000, kind: 'service', side: 'virtual', object: 0, form: 'plain' },
        { atMs: 5000, kind: 'vcluster', plurals: [plural] },
        { atMs: 9000, kind: 'crash', daemon: 0, afterWrites: 1, downMs: 20_000 },
        { atMs: 10_000, kind: 'put', ...ENDPOINTS, plural, object: 0, annotations: { [TEAM]: 'v1' } },
        { atMs: 25_000, kind: 'vcluster', plurals: [] },
        { atMs: 28_000, kind: 'trouble', forMs: 8000, rates: { ...CALM, rejected: 1 } },
        { atMs: 33_000, kind: 'damage', plural, object: 0, key: 'endpoint-syncer/last-synced', value: null },
        { atMs: 50_000, kind: 'compact', side: 'host' },
      ],
      { areSlicesSynced: true },
      // With the first seed, this program writes the copy before vCluster does.
      { seed, daemons: 1 },
    );
    expect(left).toEqual([]);
  },
);

const ON_HOST = { kind: 'annotate', side: 'host', ...OBJECT, key: FORWARD } as const;

test.each<[string, (atMs: number) => readonly Operation[]]>([
  ['an edit', (atMs) => [{ atMs, ...ON_HOST, value: 'x' }]],
  ['a removal', (atMs) => [{ atMs, ...ON_HOST, value: null }]],
  [
    'a removal while admission removes the record',
    (atMs) => [
      { atMs: atMs - 9000, kind: 'admission', plural: 'endpoints', form: 'strips', forMs: 30_000 },
      { atMs, ...ON_HOST, value: null },
    ],
  ],
])('beside vCluster, a value does not grow by the correction of %s', async (_, changes) => {
  const at = (ms: number): readonly Operation[] => [
    ...changes(ms),
    { atMs: ms + 50_000, kind: 'annotate', side: 'virtual', ...OBJECT, key: FORWARD, value: `v${ms}` },
  ];
  const slow = { ...CALM, latencyMaxMs: 400 };
  const operations: readonly Operation[] = [
    { atMs: 1000, kind: 'service', side: 'virtual', object: 0, form: 'plain' },
    { atMs: 5000, kind: 'put', object: 0, ...ENDPOINTS, ips: 0, annotations: { [FORWARD]: 'v' } },
    { atMs: 9000, kind: 'vcluster', plurals: ['endpoints'] },
    { atMs: 9500, kind: 'trouble', forMs: 1_000_000, rates: slow },
    ...[1, 2, 3, 4, 5, 6].flatMap((round) => at(100_000 * round)),
  ];
  const settings: Partial<Settings> = { syncedByVcluster: ['endpoints'] };
  for (let seed = 1; seed <= 10; seed++)
    expect(await run(operations, settings, { seed, daemons: 1 })).toEqual([]);
});

/** Histories that are too long to write down. */
test.each([
  ['a patch that the sandbox stops on the first of two translations of a merge is tried again', 304317],
  [
    'a backup of a namespace that was being deleted brings back the Events of an object that a finalizer held',
    722166,
  ],
  [
    'what vCluster copied back before the last sync, and a backup brings back, counts as the value of the user',
    757842,
  ],
  ['a correction that vCluster copies back late and without its record is no value of the user', 1000242],
  [
    'a slice gets the Service back that vCluster has changed only with a copy, which the Service of another may keep away',
    1000807,
  ],
  ['a correction that vCluster copies back late and without its record is no value of the user', 1109792],
  [
    'Endpoints stay with the copy of their opted-out Service, whose bookkeeping names an object of another place',
    1308358,
  ],
  ['a Service that a list from the past shows beside its Endpoints keeps the copy that it gets', 1502425],
  ['an echo that counts as the value of the user stays what it has grown to', 2013832],
  ['a namespace that ends takes no virtual Service along, whatever admission rejects', 2015836],
  [
    'an import stays whose references end with the process, where admission removes the record of them',
    2208923,
  ],
] as const)('%s: seed %d', async (_, seed) => {
  expect(await runHistory(seededHistory(seed, 40))).toEqual([]);
});
