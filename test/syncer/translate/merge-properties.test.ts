/** Properties of the merge for every history of changes, with interruptions at any point. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KubeObject, StringMap } from '../../../src/kube/object.ts';
import { jsonEquals, setOwn } from '../../../src/base/json.ts';
import {
  isBookkeepingAnnotation,
  LAST_SYNCED,
  MANAGED_ANNOTATIONS,
} from '../../../src/syncer/translate/bookkeeping.ts';
import { isBookkeepingLabel } from '../../../src/syncer/translate/labels.ts';
import { type Arrival, decodeLastSynced, shortHash } from '../../../src/syncer/translate/last-synced.ts';
import type { Flow } from '../../../src/syncer/translate/types.ts';
import { merge, noPatches, written, type Merged, type TestPatches } from './merge-setup.ts';
import { endpoints, translators } from './setup.ts';
import { costlyRuns } from '../../support/costly-runs.ts';

const LEADER = 'control-plane.alpha.kubernetes.io/leader';
const REWRITTEN = 'vcluster.loft.sh/label-suffix-x-a4d451ec23';

type MapName = 'annotations' | 'labels';

/** One state of the world. Objects are replaced, never changed. */
interface World {
  readonly virtual: KubeObject;
  readonly host: KubeObject | undefined;
}

type Action =
  | { readonly kind: 'sync' }
  /** The host write is done, the virtual write is not. */
  | { readonly kind: 'crash' }
  | { readonly kind: 'edit'; readonly side: 'virtual' | 'host'; readonly edit: Edit };

interface Edit {
  readonly map: MapName;
  readonly key: string;
  readonly value: string | undefined;
}

const plainKey = fc.constantFrom('a', 'b', 'example.com/c', '__proto__', 'constructor');
const value = fc.option(fc.constantFrom('', 'x', 'y', 'zzz'), { nil: undefined });
const map = fc.constantFrom<MapName[]>('annotations', 'labels');

function editOf(key: fc.Arbitrary<string>): fc.Arbitrary<Edit> {
  return fc.record({ map, key, value });
}

const virtualKey = fc.oneof(plainKey, fc.constantFrom('release', LEADER, REWRITTEN, 'p', 't', 'o', 'm'));
const hostKey = fc.oneof(
  plainKey,
  fc.constantFrom('release', LEADER, REWRITTEN, 'p', 't', 'o', 'm'),
  fc.constantFrom(
    LAST_SYNCED,
    MANAGED_ANNOTATIONS,
    'vcluster.loft.sh/managed-by',
    'vcluster.loft.sh/namespace',
  ),
);

const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({ kind: fc.constant<'sync'>('sync') }),
  fc.record({ kind: fc.constant<'crash'>('crash') }),
  fc.record({
    kind: fc.constant<'edit'>('edit'),
    side: fc.constant<'virtual'>('virtual'),
    edit: editOf(virtualKey),
  }),
  fc.record({ kind: fc.constant<'edit'>('edit'), side: fc.constant<'host'>('host'), edit: editOf(hostKey) }),
);
const history = fc.array(action, { maxLength: 14 });

function edited(object: KubeObject, { map: name, key, value: wanted }: Edit): KubeObject {
  const changed = Object.fromEntries(
    Object.entries(object.metadata[name] ?? {}).filter(([one]) => one !== key),
  ) as StringMap;
  if (wanted !== undefined) setOwn(changed, key, wanted);
  return { ...object, metadata: { ...object.metadata, [name]: changed } };
}

function editedBy(world: World, { side, edit }: { side: 'virtual' | 'host'; edit: Edit }): World {
  if (side === 'virtual') return { ...world, virtual: written(edited(world.virtual, edit)) };
  return world.host === undefined ? world : { ...world, host: edited(world.host, edit) };
}

async function merged(world: World, patches: TestPatches, arrival?: Arrival): Promise<Merged> {
  return await merge({ ...world, patches, ...(arrival && { arrival }) });
}

async function afterOneWrite(
  world: World,
  { patches = noPatches, arrival }: { patches?: TestPatches; arrival?: Arrival },
): Promise<World> {
  const pair = await merged(world, patches, arrival);
  if (isHostWritten(world, pair)) return { ...world, host: pair.host };
  return pair.isVirtualChanged ? { ...world, virtual: written(pair.virtual) } : world;
}

function isHostWritten(world: World, { host }: Merged): boolean {
  if (world.host === undefined) return true;
  const names: MapName[] = ['annotations', 'labels'];
  return !names.every((name) => jsonEquals(world.host?.metadata[name] ?? {}, host.metadata[name] ?? {}));
}

/** Syncs as the engine does: one decision, the host's write, then the virtual one. Answers the number of writes. `seen`: where this process
 * has synced the pair before. */
async function settle(
  start: World,
  patches: TestPatches,
  seen?: World,
): Promise<{ world: World; writes: number }> {
  let [world, writes] = [start, 0];
  const recordIn = ({ host }: World) => host?.metadata.annotations?.[LAST_SYNCED];
  while (writes < 10) {
    const hasArrived = seen !== undefined && recordIn(world) === recordIn(seen);
    const pair = await merged(world, patches, hasArrived ? 'arrived' : undefined);
    const isHostChanged = isHostWritten(world, pair);
    if (!isHostChanged && !pair.isVirtualChanged) break;
    writes += Number(isHostChanged) + Number(pair.isVirtualChanged);
    world = {
      virtual: pair.isVirtualChanged ? written(pair.virtual) : world.virtual,
      host: isHostChanged ? pair.host : world.host,
    };
  }
  return { world, writes };
}

async function play(actions: readonly Action[], patches: TestPatches): Promise<World> {
  let world: World = { virtual: written(endpoints({})), host: undefined };
  for (const one of actions) {
    const pair = await merged(world, patches);
    if (one.kind === 'sync') world = (await settle(world, patches)).world;
    else if (one.kind === 'crash') world = { ...world, host: pair.host };
    else world = editedBy(world, one);
  }
  return world;
}

/** p: both ways, and the reverse is not the exact inverse. t: forward only. o: reverse only. m: created by a patch. */
const PATCHED_FLOW: Record<string, Flow> = { p: 'both', t: 'toHost', o: 'toVirtual', m: 'both' };

function mapValues(
  object: KubeObject,
  change: (key: string, value: string) => string | undefined,
): KubeObject {
  const { metadata } = object;
  const changed = (values: StringMap = {}): StringMap => {
    const result: StringMap = {};
    for (const [key, old] of Object.entries(values)) {
      const next = change(key, old);
      if (next !== undefined) setOwn(result, key, next);
    }
    return result;
  };
  return {
    ...object,
    metadata: { ...metadata, annotations: changed(metadata.annotations), labels: changed(metadata.labels) },
  };
}

const patched: TestPatches = {
  ...noPatches,
  flowOf: (path) => PATCHED_FLOW[String(path[2])] ?? 'both',
  rulesOf: (path) => (PATCHED_FLOW[String(path[2])] === undefined ? undefined : shortHash('patched')),
  forward(object) {
    const result = mapValues(object, (key, old) => {
      if (key === 'p') return old === 'zzz' ? undefined : `f${old}`;
      return key === 't' ? `t${old}` : old;
    });
    const { metadata } = result;
    metadata.annotations = { ...metadata.annotations, m: metadata.annotations?.['m'] ?? 'created' };
    return result;
  },
  reverse: (object) =>
    mapValues(object, (key, old) => {
      if (key === 'p') return old === '' ? undefined : old.replace(/^f/, '');
      return key === 'o' ? `r${old}` : old;
    }),
};

/** The patch of p fails where p is x on the virtual side, and in reverse where it is y on the host. */
const failing: TestPatches = {
  ...patched,
  failures(direction, { metadata: { annotations, labels } }) {
    const failsOn = direction === 'forward' ? 'x' : 'y';
    const isFailed = annotations?.['p'] === failsOn || labels?.['p'] === failsOn;
    return isFailed ? { covers: (path) => path[2] === 'p', locate: () => [] } : undefined;
  },
};

const ALL_PATCHES: [string, TestPatches][] = [
  ['without patches', noPatches],
  ['with patches', patched],
  ['with patches that fail', failing],
];

describe.each(ALL_PATCHES)('%s', (_name, patches) => {
  test('every history converges with at most two writes, then nothing is written', async () => {
    await fc.assert(
      fc.asyncProperty(history, async (actions) => {
        const world = await play(actions, patches);
        const { writes, world: settled } = await settle(world, patches);
        expect(writes).toBeLessThanOrEqual(2);
        const pair = await merged(settled, patches);
        expect([pair.isVirtualChanged, isHostWritten(settled, pair)]).toEqual([false, false]);
      }),
      { numRuns: costlyRuns(600) },
    );
  });

  test('it converges with a crash after every write', async () => {
    await fc.assert(
      fc.asyncProperty(history, async (actions) => {
        let world = await play(actions, patches);
        for (let write = 0; write < 4; write++) world = await afterOneWrite(world, { patches });
        const pair = await merged(world, patches);
        expect([pair.isVirtualChanged, isHostWritten(world, pair)]).toEqual([false, false]);
      }),
      { numRuns: costlyRuns(300) },
    );
  });

  test('values that belong to the host are not synced to the virtual side and not lost', async () => {
    await fc.assert(
      fc.asyncProperty(history, async (actions) => {
        const before = await play(actions, patches);
        const { world } = await settle(before, patches);
        const { annotations = {}, labels = {} } = world.virtual.metadata;
        expect(Object.keys(annotations).filter(isBookkeepingAnnotation)).toEqual([]);
        expect(Object.keys(labels).filter(isBookkeepingLabel)).toEqual([]);
        for (const [name, key] of [
          ['annotations', LEADER],
          ['labels', REWRITTEN],
        ] as const) {
          expect(world.virtual.metadata[name]?.[key]).toBe(before.virtual.metadata[name]?.[key]);
        }
        expect(world.host?.metadata.annotations?.[LEADER]).toBe(before.host?.metadata.annotations?.[LEADER]);
      }),
      { numRuns: costlyRuns(300) },
    );
  });
});

test('where a patch fails, both sides and the record stay as they are', async () => {
  await fc.assert(
    fc.asyncProperty(history, map, async (actions, name) => {
      const world = await play(actions, failing);
      const before = editedBy(world, { side: 'virtual', edit: { map: name, key: 'p', value: 'x' } });
      const { world: after } = await settle(before, failing);
      const entry = ({ host }: World) =>
        decodeLastSynced(host?.metadata.annotations?.[LAST_SYNCED])?.[name].get(shortHash('p'));
      expect(after.virtual.metadata[name]?.['p']).toBe('x');
      expect(after.host?.metadata[name]?.['p']).toBe(before.host?.metadata[name]?.['p']);
      expect(entry(after)).toEqual(entry(before) ?? entry(after));
      const { world: mended } = await settle(after, patched);
      expect(mended.host?.metadata[name]?.['p']).toBe('fx');
    }),
    { numRuns: costlyRuns(300) },
  );
});

test('a change of the host on which the patch fails once it is translated back stays there, and flows back later', async () => {
  await fc.assert(
    fc.asyncProperty(history, map, async (actions, name) => {
      const { world } = await settle(await play(actions, patched), patched);
      fc.pre(world.host !== undefined && world.host.metadata[name]?.['p'] !== 'fx');
      const edited = editedBy(world, { side: 'host', edit: { map: name, key: 'p', value: 'fx' } });
      const { world: after } = await settle(edited, failing);
      expect(after.host?.metadata[name]?.['p']).toBe('fx');
      expect(after.virtual.metadata[name]?.['p']).toBe(world.virtual.metadata[name]?.['p']);
      const { world: mended } = await settle(after, patched);
      expect(mended.virtual.metadata[name]?.['p']).toBe('x');
      expect(mended.host?.metadata[name]?.['p']).toBe('fx');
    }),
    { numRuns: costlyRuns(300) },
  );
});

/** Annotations and labels of both sides as the virtual side sees them, without what never crosses. */
function views({ virtual, host }: World): { virtual: StringMap; host: StringMap } {
  const { labels } = translators();
  const crossing = (object: KubeObject | undefined, isHost: boolean): StringMap => {
    const view: StringMap = {};
    for (const [key, held] of Object.entries(object?.metadata.annotations ?? {})) {
      if (!isBookkeepingAnnotation(key) && key !== LEADER) setOwn(view, `a:${key}`, held);
    }
    for (const [key, held] of Object.entries(object?.metadata.labels ?? {})) {
      const isOwn = isHost ? isBookkeepingLabel(key) || labels.isReserved(key) : labels.isRewritten(key);
      if (!isOwn) setOwn(view, `l:${isHost ? labels.keyToVirtual(key) : key}`, held);
    }
    return view;
  };
  return { virtual: crossing(virtual, false), host: crossing(host, true) };
}

describe('without patches', () => {
  test('both sides of a synced pair agree on all synced keys', async () => {
    await fc.assert(
      fc.asyncProperty(history, async (actions) => {
        const { world } = await settle(await play(actions, noPatches), noPatches);
        const { virtual, host } = views(world);
        expect(host).toEqual(virtual);
      }),
      { numRuns: costlyRuns(600) },
    );
  });

  test('per key: a change of the virtual side takes precedence over one of the host; without a change the value is kept', async () => {
    const edits = fc.array(fc.record({ side: fc.constantFrom('virtual', 'host'), edit: editOf(plainKey) }), {
      maxLength: 10,
    });
    await fc.assert(
      fc.asyncProperty(history, edits, async (actions, changes) => {
        const { world: base } = await settle(await play(actions, noPatches), noPatches);
        let world = base;
        for (const change of changes) world = editedBy(world, change);
        const before = views(base).virtual;
        const now = views(world);
        const expected: StringMap = {};
        for (const key of Object.keys({ ...before, ...now.virtual, ...now.host })) {
          const wins = now.virtual[key] !== before[key] ? now.virtual[key] : now.host[key];
          if (wins !== undefined) setOwn(expected, key, wins);
        }
        const after = views((await settle(world, noPatches, base)).world);
        expect([after.virtual, after.host]).toEqual([expected, expected]);
      }),
      { numRuns: costlyRuns(600) },
    );
  });

  test('edits of different keys on both sides are all synced, with a crash after any write', async () => {
    const step = fc.record({
      side: fc.constantFrom('virtual', 'host'),
      steps: fc.integer({ min: 0, max: 2 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        let { world } = await settle({ virtual: written(endpoints({})), host: undefined }, noPatches);
        for (const [i, { side, steps: writes }] of steps.entries()) {
          world = editedBy(world, { side, edit: { map: 'labels', key: `e-${i}`, value: String(i) } });
          // The daemon that wrote the record knows that its write of the virtual object was rejected.
          for (let write = 0; write < writes; write++) world = await afterOneWrite(world, { arrival: 'due' });
        }
        for (let write = 0; write < 4; write++) world = await afterOneWrite(world, { arrival: 'due' });
        const wanted = Object.fromEntries(steps.map((_, i) => [`e-${i}`, String(i)]));
        expect(world.virtual.metadata.labels ?? {}).toEqual(wanted);
        expect(world.host?.metadata.labels).toMatchObject(wanted);
      }),
      { numRuns: costlyRuns(300) },
    );
  });

  test('a change back outweighs a change of the host whose sync was interrupted: both leave the same objects', async () => {
    const { world } = await settle({ virtual: written(endpoints({})), host: undefined }, noPatches);
    const set = (side: 'virtual' | 'host', key: string, wanted: string | undefined) =>
      ({ side, edit: { map: 'annotations', key, value: wanted } }) as const;
    const recorded = await afterOneWrite(editedBy(world, set('host', 'a', 'x')), {});
    const interrupted = editedBy(recorded, set('virtual', 'b', 'y'));
    const arrived = await afterOneWrite(recorded, { arrival: 'due' });
    expect(arrived.virtual.metadata.annotations).toEqual({ a: 'x' });
    const changedBack = editedBy(editedBy(arrived, set('virtual', 'b', 'y')), set('virtual', 'a', undefined));
    expect(changedBack.host).toEqual(interrupted.host);
    expect({ ...changedBack.virtual.metadata, resourceVersion: '' }).toEqual({
      ...interrupted.virtual.metadata,
      resourceVersion: '',
    });
    for (const end of [interrupted, changedBack]) {
      const { world: after } = await settle(end, noPatches);
      expect(views(after)).toMatchObject({ virtual: { 'a:b': 'y' }, host: { 'a:b': 'y' } });
      expect(after.virtual.metadata.annotations).toEqual({ b: 'y' });
    }
  });

  test('bookkeeping is corrected after any change by another client', async () => {
    const key = fc.constantFrom(LAST_SYNCED, MANAGED_ANNOTATIONS);
    const damage = fc.array(fc.record({ map: fc.constant<'annotations'>('annotations'), key, value }), {
      maxLength: 3,
    });
    await fc.assert(
      fc.asyncProperty(history, damage, async (actions, edits) => {
        const { world } = await settle(await play(actions, noPatches), noPatches);
        let { host = endpoints({}) } = world;
        for (const edit of edits) host = edited(host, edit);
        const after = (await settle({ ...world, host }, noPatches)).world;
        expect(after.virtual).toEqual(world.virtual);
        expect(views(after).host).toEqual(views(world).host);
        expect(decodeLastSynced(after.host?.metadata.annotations?.[LAST_SYNCED])).toBeDefined();
      }),
      { numRuns: costlyRuns(300) },
    );
  });

  test('the list of managed annotations is restored from the record', async () => {
    await fc.assert(
      fc.asyncProperty(history, async (actions) => {
        const { world } = await settle(await play(actions, noPatches), noPatches);
        const { host = endpoints({}) } = world;
        const damaged = edited(host, { map: 'annotations', key: MANAGED_ANNOTATIONS, value: undefined });
        const { world: after } = await settle({ ...world, host: damaged }, noPatches);
        expect(after.host?.metadata.annotations).toEqual(host.metadata.annotations);
      }),
      { numRuns: costlyRuns(300) },
    );
  });
});
