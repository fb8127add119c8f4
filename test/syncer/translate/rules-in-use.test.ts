/** What an earlier patch made of a value stays on the host only as long as that patch is in use, whatever the tenant writes on its own object. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KubeObject, StringMap } from '../../../src/kube/object.ts';
import { LAST_SYNCED } from '../../../src/syncer/translate/bookkeeping.ts';
import { decodeLastSynced, shortHash, UNPROVABLE } from '../../../src/syncer/translate/last-synced.ts';
import type { MergeMemory } from '../../../src/syncer/translate/merge-metadata.ts';
import { costlyRuns } from '../../support/costly-runs.ts';
import { annotationOf, copyOf, merge, noPatches, touch, type TestPatches } from './merge-setup.ts';
import { endpoints } from './setup.ts';

type Value = string | undefined;

interface Policy {
  readonly name: string;
  readonly forward: (value: string) => Value;
  readonly reverse?: (value: string) => Value;
}

const POLICIES: readonly Policy[] = [
  { name: 'as it is', forward: (value) => value, reverse: (value) => value },
  { name: 'lower case', forward: (value) => value.toLowerCase() },
  {
    name: 'no premium',
    forward: (value) => (value.toLowerCase() === 'premium' ? 'basic' : value.toLowerCase()),
  },
  {
    name: 'prefix',
    forward: (value) => `team-${value}`,
    reverse: (value) => value.replace(/^team-/, ''),
  },
  { name: 'constant', forward: () => 'basic' },
  { name: 'nothing', forward: () => undefined },
];
const [, LOWER, NO_PREMIUM, PREFIX] = POLICIES;

const MEMBERS = ['annotations', 'labels'] as const;

/** The policy for the annotation and for the label `k`. */
function patchesOf(policy: Policy | undefined, rules?: string): TestPatches {
  const { name = '', forward = (value: string): Value => value, reverse } = policy ?? {};
  const isPatched = ([, , key]: readonly unknown[]): boolean => key === 'k';
  const patch = (object: KubeObject, change: (value: string) => Value): KubeObject => {
    const changes = MEMBERS.map((member): [string, { k?: Value }] => {
      const value = object.metadata[member]?.['k'];
      return [member, value === undefined ? {} : { k: change(value) }];
    });
    return touch(object, Object.fromEntries(changes));
  };
  return {
    ...noPatches,
    flowOf: (path) => (isPatched(path) && reverse === undefined ? 'toHost' : 'both'),
    rulesOf: (path) => (isPatched(path) ? (rules ?? shortHash(name)) : undefined),
    forward: (object) => patch(object, forward),
    reverse: (object) => patch(object, reverse ?? ((value) => value)),
  };
}

function withValue(object: KubeObject, k: Value): KubeObject {
  return touch(object, { annotations: { k }, labels: { k } });
}

function valuesOf({ metadata }: KubeObject): readonly Value[] {
  return MEMBERS.map((member) => metadata[member]?.['k']);
}

const MARKS: Record<string, (host: KubeObject) => StringMap> = {
  'no mark': () => ({}),
  'any text as a record': () => ({ [LAST_SYNCED]: '{"v":1}' }),
  'the record of the copy': (host) => ({ [LAST_SYNCED]: annotationOf(host, LAST_SYNCED) ?? '' }),
  'all of the bookkeeping': (host) => ({ ...host.metadata.annotations }),
};

/** As the build before this one has written it. */
function withoutVersions(copy: KubeObject): KubeObject {
  const text = annotationOf(copy, LAST_SYNCED)?.replace(/,"[al]v":"[^"]*"/g, '');
  return touch(copy, { annotations: { [LAST_SYNCED]: text } });
}

const RECORDS: Record<string, (copy: KubeObject) => KubeObject> = {
  'of an earlier policy': (copy) => copy,
  'without the version': withoutVersions,
};

describe.each(Object.entries(MARKS))('with %s, a value of the copy on the virtual side', (_, marks) => {
  const virtual = withValue(endpoints({}), 'PREMIUM');
  const strict = patchesOf(NO_PREMIUM);

  test.each(Object.entries(RECORDS))(
    'gets the rules in use, once, with a record %s',
    async (__, recorded) => {
      const host = recorded(await copyOf(virtual, patchesOf(LOWER)));
      const pinned = touch(withValue(virtual, 'premium'), { annotations: marks(host) });
      const merged = await merge({ virtual: pinned, host, patches: strict, memory: RESTARTED });
      expect(valuesOf(merged.host)).toEqual(['basic', 'basic']);
      const again = await merge({ ...merged, patches: strict, memory: RESTARTED });
      expect(again.host.metadata).toEqual(merged.host.metadata);
    },
  );

  test('stays on the host under the rules that made it', async () => {
    const prefixed = patchesOf(PREFIX);
    const host = await copyOf(virtual, prefixed);
    const echoed = touch(withValue(virtual, 'team-PREMIUM'), { annotations: marks(host) });
    const merged = await merge({ virtual: echoed, host, patches: prefixed, memory: RESTARTED });
    expect(merged.host.metadata).toEqual(host.metadata);
    expect(valuesOf(merged.virtual)).toEqual(['PREMIUM', 'PREMIUM']);
  });
});

const RESTARTED: MergeMemory = { agreed: undefined, restoresEchoes: true };

describe('another version of the rules alone', () => {
  const virtual = withValue(endpoints({}), 'v');

  test.each([
    ['of other rules', patchesOf(LOWER)],
    ['of no rules', { ...patchesOf(LOWER), rulesOf: () => undefined }],
  ])('causes no write: a record %s', async (_, before) => {
    const upper = withValue(virtual, 'V');
    const host = await copyOf(upper, before);
    const merged = await merge({ virtual: upper, host, patches: patchesOf(NO_PREMIUM) });
    expect([merged.host.metadata, merged.isVirtualChanged]).toEqual([host.metadata, false]);
  });

  test('is recorded with the next change', async () => {
    const host = withoutVersions(await copyOf(withValue(virtual, 'V'), patchesOf(LOWER)));
    const changed = withValue(virtual, 'W');
    const { host: written } = await merge({ virtual: changed, host, patches: patchesOf(NO_PREMIUM) });
    const record = decodeLastSynced(annotationOf(written, LAST_SYNCED));
    const versions = MEMBERS.map((member) => record?.[member].get(shortHash('k'))?.rules);
    expect(versions).toEqual([shortHash('no premium'), shortHash('no premium')]);
  });

  test('leaves an echo to the memory of this process, which gives the value back', async () => {
    const prefixed = patchesOf(PREFIX);
    const host = withoutVersions(await copyOf(virtual, prefixed));
    const memory = { agreed: { virtual, host }, restoresEchoes: true };
    const echoed = withValue(virtual, 'team-v');
    const merged = await merge({ virtual: echoed, host, patches: prefixed, memory });
    expect([merged.host.metadata, valuesOf(merged.virtual)]).toEqual([host.metadata, ['v', 'v']]);
  });

  test('is not enough where the patch reads the host object', async () => {
    const reading = patchesOf(PREFIX, UNPROVABLE);
    const host = await copyOf(virtual, reading);
    expect(annotationOf(host, LAST_SYNCED)).not.toContain('"av"');
    const echoed = withValue(virtual, 'team-v');
    const merged = await merge({ virtual: echoed, host, patches: reading, memory: RESTARTED });
    expect(valuesOf(merged.host)).toEqual(['team-team-v', 'team-team-v']);
  });

  test('nor what a later program has added to a record, which is understood without that', async () => {
    const host = await copyOf(virtual, patchesOf(PREFIX));
    const text = annotationOf(host, LAST_SYNCED)?.replace(/\}$/, ',"later":{"x":[1]}}');
    const later = touch(host, { annotations: { [LAST_SYNCED]: text } });
    const merged = await merge({ virtual, host: later, patches: patchesOf(PREFIX) });
    expect([merged.host.metadata, merged.isVirtualChanged]).toEqual([later.metadata, false]);
    const removed = await merge({ virtual: endpoints({}), host: later, patches: patchesOf(PREFIX) });
    expect(valuesOf(removed.host)).toEqual([undefined, undefined]);
  });
});

/** What happens while no process runs, or before it sees anything of it. */
interface Step {
  /** Undefined: the same policy goes on. */
  readonly policy: Policy | undefined;
  readonly isRestart: boolean;
  readonly isOfBuildBefore: boolean;
  /** `kept`: as it is; `echo`: that of the copy. */
  readonly value: Value;
  readonly mark: string;
}

const step: fc.Arbitrary<Step> = fc.record({
  policy: fc.option(fc.constantFrom(...POLICIES), { nil: undefined }),
  isRestart: fc.boolean(),
  isOfBuildBefore: fc.boolean(),
  value: fc.constantFrom<Value[]>('PREMIUM', 'premium', 'x', undefined, 'kept', 'echo', 'echo', 'echo'),
  mark: fc.constantFrom(...Object.keys(MARKS)),
});

interface World {
  readonly virtual: KubeObject;
  readonly host: KubeObject;
  readonly memory: MergeMemory;
}

function changedBy({ virtual, host, memory }: World, change: Step): World {
  const { value, mark, policy, isRestart, isOfBuildBefore } = change;
  const [old] = valuesOf(virtual);
  const next = value === 'echo' ? valuesOf(host)[0] : value === 'kept' ? old : value;
  const marked = touch(virtual, { annotations: MARKS[mark]?.(host) ?? {} });
  return {
    virtual: withValue(marked, next),
    host: isOfBuildBefore ? withoutVersions(host) : host,
    memory: policy !== undefined || isRestart ? RESTARTED : memory,
  };
}

test('for every history, the host holds what the policy in use makes of a value that the virtual object had', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 6 }), async (steps) => {
      let policy = PREFIX;
      const virtual = withValue(endpoints({}), 'PREMIUM');
      let world: World = { virtual, host: await copyOf(virtual, patchesOf(policy)), memory: RESTARTED };
      const had = new Set<Value>(['PREMIUM']);
      for (const change of steps) {
        world = changedBy(world, change);
        policy = change.policy ?? policy;
        for (const value of valuesOf(world.virtual)) had.add(value);
        for (let round = 0; round < 3; round++) {
          const merged = await merge({ ...world, patches: patchesOf(policy) });
          const agreed = { virtual: merged.virtual, host: merged.host };
          world = { ...agreed, memory: merged.echo ? world.memory : { agreed, restoresEchoes: true } };
          for (const value of valuesOf(world.virtual)) had.add(value);
        }
        const allowed = [...had].map((value) => value && policy?.forward(value));
        for (const value of valuesOf(world.host)) expect(allowed).toContain(value);
      }
    }),
    { numRuns: costlyRuns(1000) },
  );
});
