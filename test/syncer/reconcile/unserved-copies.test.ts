/** The mark by which the host's endpoints controller spares the copy of an Endpoints that has no Service there. It hides it from the mirroring one. */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { annotated, changesOf, clustersAfter, object, rehearsed, type Clusters } from '../memory-world.ts';

const LEADER = 'control-plane.alpha.kubernetes.io/leader';
const MARK = 'endpoint-syncer';
const ELECTED = '{"holderIdentity":"a"}';
const SERVICE = object({ name: 'web-x-shop-x-vc', namespace: 'host', uid: 'hs' }, { spec: {} });
const DEFAULT = configWith('');
const CROSSING = configWith(', metadata: {excludeAnnotations: []}');

function configWith(settings: string): string {
  return `
endpointSyncer: {name: vc, host: {namespace: host}${settings}}
sync: {toHost: {endpointSlices: {enabled: false}}}
`;
}

/** `before`: what the copy has, if there is one. */
async function leaderOn(
  {
    virtual,
    before,
    isServed,
  }: Readonly<Record<'virtual' | 'before', string | undefined>> & { isServed: boolean },
  config: string,
) {
  const original = annotated(object(), { [LEADER]: virtual });
  const services = isServed ? [SERVICE] : [];
  let host: Clusters['host'] = { Service: services };
  if (before !== undefined) {
    const first = await rehearsed({ virtual: { Endpoints: [original] } }, {}, config);
    const copies = clustersAfter(first).host.Endpoints ?? [];
    host = { Service: services, Endpoints: copies.map((copy) => annotated(copy, { [LEADER]: before })) };
  }
  const result = await rehearsed({ virtual: { Endpoints: [original] }, host }, {}, config);
  const after = clustersAfter(result);
  const valueIn = (objects: readonly KubeObject[] = []): string | undefined =>
    objects[0]?.metadata.annotations?.[LEADER];
  const next = changesOf(await rehearsed(after, {}, config));
  return { host: valueIn(after.host.Endpoints), virtual: valueIn(after.virtual.Endpoints), next };
}

describe.each([
  ['by default', DEFAULT],
  ['where the annotation is not excluded', CROSSING],
])('%s, a copy', (_, config) => {
  test.each([undefined, MARK])(
    'without a host Service gets the mark, whether it had it or not: %s',
    async (before) => {
      const { host, virtual, next } = await leaderOn({ virtual: undefined, before, isServed: false }, config);
      expect({ host, virtual, next }).toEqual({ host: MARK, virtual: undefined, next: [] });
    },
  );

  test.each([undefined, MARK])('with one has none, whether it had it or not: %s', async (before) => {
    const { host, virtual, next } = await leaderOn({ virtual: undefined, before, isServed: true }, config);
    expect({ host, virtual, next }).toEqual({ host: undefined, virtual: undefined, next: [] });
  });

  test.each([true, false])(
    'gets no mark of the tenant, and the tenant keeps it; with a host Service: %s',
    async (isServed) => {
      const result = await leaderOn({ virtual: MARK, before: undefined, isServed }, config);
      expect(result).toEqual({ host: isServed ? undefined : MARK, virtual: MARK, next: [] });
    },
  );
});

test.each([true, false])(
  'what another client elects on the host stays; with a host Service: %s',
  async (isServed) => {
    const result = await leaderOn({ virtual: undefined, before: ELECTED, isServed }, DEFAULT);
    expect(result).toEqual({ host: ELECTED, virtual: undefined, next: [] });
  },
);

test.each([true, false])(
  'what a tenant elects crosses only where it is not excluded; with a host Service: %s',
  async (isServed) => {
    const result = await leaderOn({ virtual: ELECTED, before: undefined, isServed }, CROSSING);
    expect(result).toEqual({ host: ELECTED, virtual: ELECTED, next: [] });
    const excluded = await leaderOn({ virtual: ELECTED, before: undefined, isServed }, DEFAULT);
    expect(excluded).toEqual({ host: isServed ? undefined : MARK, virtual: ELECTED, next: [] });
  },
);
