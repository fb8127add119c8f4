/** Whether the copies of objects that are gone may be deleted: which virtual cluster this is. */

import { describe, expect, test } from 'vitest';
import type { Config } from '../../src/syncer/config/config.ts';
import { failure } from '../../src/kube/status-error.ts';
import type { KubeObject, Resource } from '../../src/kube/object.ts';
import type { ClusterClient } from '../../src/kube/types.ts';
import {
  ADOPTED,
  VIRTUAL_CLUSTER,
  VirtualIdentity,
  type CopiesEvidence,
} from '../../src/syncer/virtual-identity.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { recordingLogger, type LogLine } from '../expressions/test-sandbox.ts';

interface World {
  /** Of kube-system; undefined: it may not be read. */
  uid: string | undefined;
  annotations: Record<string, string>;
  evidence: CopiesEvidence;
  isAdopted?: boolean;
}

const NONE_KNOWN: CopiesEvidence = { copies: 3, isAnyOriginalKnown: false };
const SOME_KNOWN: CopiesEvidence = { copies: 3, isAnyOriginalKnown: true };
const NO_COPIES: CopiesEvidence = { copies: 0, isAnyOriginalKnown: false };

function identityIn(world: World) {
  const clock = new FakeClock();
  const lines: LogLine[] = [];
  const published: Record<string, string>[] = [];
  const held: boolean[] = [];
  const events: string[] = [];
  const get = async ({ plural }: Resource): Promise<KubeObject> => {
    if (plural === 'leases') return { metadata: { name: 'lease', annotations: world.annotations } };
    if (world.uid === undefined) throw failure(403, 'Forbidden', 'namespaces is forbidden');
    return { metadata: { name: 'kube-system', uid: world.uid } };
  };
  const client = { get } as unknown as ClusterClient; // nothing else is called
  const config = {
    name: 'vc',
    host: { namespace: 'host' },
    virtual: { adopt: world.isAdopted === true },
  } as Config; // nothing else is read
  const identity = new VirtualIdentity({
    config,
    clients: { virtual: client, host: client },
    leadership: { publish: (annotations) => void published.push({ ...annotations }) },
    recorder: { event: (_, __, { reason }) => void events.push(reason), flush: async () => undefined },
    clock,
    logger: recordingLogger(lines),
    metrics: { sync: { deletionsHeld: (isHeld) => void held.push(isHeld) } },
  });
  return {
    identity,
    clock,
    events,
    lines,
    published,
    held,
    ask: () => identity.objection(() => world.evidence),
  };
}

describe('copies of objects that are gone', () => {
  const same = { [VIRTUAL_CLUSTER]: 'a' };
  test.each<[string, World, RegExp | undefined, string | undefined]>([
    [
      'of the cluster that is known',
      { uid: 'a', annotations: same, evidence: NONE_KNOWN },
      undefined,
      undefined,
    ],
    [
      'of another cluster',
      { uid: 'b', annotations: same, evidence: NONE_KNOWN },
      /^this is another virtual cluster than before \(its namespace kube-system has the uid b, not a\); .*endpoint-syncer adopt/,
      undefined,
    ],
    [
      'of another cluster, which has objects that it made copies of since',
      { uid: 'b', annotations: same, evidence: SOME_KNOWN },
      /another virtual cluster/,
      undefined,
    ],
    [
      'of another cluster, before there are copies',
      { uid: 'b', annotations: same, evidence: NO_COPIES },
      undefined,
      'b',
    ],
    [
      'of another cluster, adopted',
      { uid: 'b', annotations: { ...same, [ADOPTED]: 'b' }, evidence: NONE_KNOWN },
      undefined,
      'b',
    ],
    [
      'of another cluster than the adopted one',
      { uid: 'c', annotations: { ...same, [ADOPTED]: 'b' }, evidence: NONE_KNOWN },
      /has the uid c, not a/,
      undefined,
    ],
    [
      'of another cluster, with virtual.adopt',
      { uid: 'b', annotations: same, evidence: NONE_KNOWN, isAdopted: true },
      undefined,
      'b',
    ],
    [
      'of a cluster that is not known yet, all of others',
      { uid: 'a', annotations: {}, evidence: NONE_KNOWN },
      /^the virtual cluster has no object that any of the 3 copies on the host was made from; /,
      undefined,
    ],
    [
      'of a cluster that is not known yet',
      { uid: 'a', annotations: {}, evidence: SOME_KNOWN },
      undefined,
      'a',
    ],
    ['of a new cluster without copies', { uid: 'a', annotations: {}, evidence: NO_COPIES }, undefined, 'a'],
    [
      'where kube-system may not be read',
      { uid: undefined, annotations: same, evidence: NONE_KNOWN },
      /no object that any of the 3 copies/,
      undefined,
    ],
    [
      'where kube-system may not be read, with a known object',
      { uid: undefined, annotations: {}, evidence: SOME_KNOWN },
      undefined,
      undefined,
    ],
  ])('%s', async (_, world, objection, recorded) => {
    const { ask, published, held } = identityIn(world);
    expect((await ask()) ?? 'none').toMatch(objection ?? /^none$/);
    expect(published).toEqual(recorded === undefined ? [] : [{ [VIRTUAL_CLUSTER]: recorded }]);
    expect(held).toEqual([objection !== undefined]);
  });

  test('are asked for again once objects have been listed again, maybe by another server', async () => {
    const world: World = { uid: 'a', annotations: { [VIRTUAL_CLUSTER]: 'a' }, evidence: NONE_KNOWN };
    const { clock, identity } = identityIn(world);
    const ask = (listedAtMs: number): Promise<string | undefined> =>
      identity.objection(() => world.evidence, listedAtMs);
    expect(await ask(-Infinity)).toBeUndefined();
    world.uid = 'b';
    clock.advance(1000);
    expect(await ask(clock.monotonicMs() - 2000)).toBeUndefined();
    expect(await ask(clock.monotonicMs() - 500)).toMatch(/another/);
  });

  test('wait until the cluster is adopted, with one line of the log for each change', async () => {
    const world: World = { uid: 'b', annotations: { [VIRTUAL_CLUSTER]: 'a' }, evidence: NONE_KNOWN };
    const { ask, clock, events, identity, lines } = identityIn(world);
    await ask();
    expect(identity.check()).toEqual({ isOk: true, detail: expect.stringContaining('another') as string });
    world.annotations = { ...world.annotations, [ADOPTED]: 'b' };
    expect(await ask()).toMatch(/another/);
    clock.advance(30_000);
    expect(await ask()).toBeUndefined();
    expect(identity.check()).toEqual({ isOk: true, detail: 'known' });
    expect(events).toEqual(['DeletionsHeld']);
    expect(lines.map(({ level, message }) => [level, message])).toEqual([
      ['warn', 'copies of objects that are gone are not deleted'],
      ['info', 'copies of objects that are gone are deleted again'],
    ]);
  });
});
