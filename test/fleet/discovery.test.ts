/** What a fleet knows of the vClusters of a host, from caches of names and versions and single reads. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { exactNamespaces } from '../../src/fleet/discovery.ts';
import { secretText, VALUES_KEY, type VclusterObjects } from '../../src/fleet/vcluster.ts';
import { settle } from '../support/fake-clock.ts';
import { FleetHost, fleetIn } from './fleet-host.ts';

const KEY = 'team-a/vc';

test.for<[string[], string[] | undefined]>([
  [
    ['team-a', 'team-b'],
    ['team-a', 'team-b'],
  ],
  [['team-*'], undefined],
  [['team-a', '*'], undefined],
])('the namespaces %j are watched as %j', ([include, watched]) => {
  expect(exactNamespaces(fleetIn(...include))).toEqual(watched);
});

test('workloads of vClusters are found in the watched namespaces, without their templates', async () => {
  await using host = new FleetHost(fleetIn('team-a'));
  host.install(KEY);
  host.install('team-b/vc');
  const labels = { app: 'other' };
  host.put('statefulsets.apps', { metadata: { namespace: 'team-a', name: 'db', labels } });
  host.put('deployments.apps', {
    metadata: { namespace: 'team-a', name: 'second', labels: { app: 'vcluster' } },
    spec: { replicas: 2, template: { spec: { containers: [] } } },
  });
  await host.whenSynced();
  const found = host.discovery.workloads();
  expect(found.map(({ metadata }) => metadata.name).toSorted()).toEqual(['second', 'vc']);
  expect(found.find(({ metadata }) => metadata.name === 'second')?.['spec']).toEqual({ replicas: 2 });
});

describe('of a change', () => {
  test.for<[string, string, string[]]>([
    ['statefulsets.apps', 'team-a/x', ['team-a/x']],
    ['deployments.apps', 'team-a/x', ['team-a/x']],
    ['secrets', 'team-a/vc-x', ['team-a/x']],
    // The values of `x`, or the access to `config-x`.
    ['secrets', 'team-a/vc-config-x', ['team-a/config-x', 'team-a/x']],
    ['configmaps', 'team-a/endpoint-syncer-x', ['team-a/x']],
    ['secrets', 'team-a/other', []],
    ['secrets', 'team-a/vc-', []],
    ['configmaps', 'team-a/vc-x', []],
  ])('in %s %s, %j are decided about', async ([plural, key, expected]) => {
    await using host = new FleetHost(fleetIn('team-*'));
    await host.whenSynced();
    const changed = new Set<string>();
    host.discovery.subscribe((vcluster) => changed.add(vcluster));
    host.discovery.subscribeWorkloads((vcluster) => changed.add(vcluster));
    const [namespace = '', name = ''] = key.split('/');
    const object = { metadata: { namespace, name, labels: { app: 'vcluster' } } };
    for (const change of [
      () => host.put(plural, object),
      () => host.put(plural, { ...object, data: { a: 'Yg==' } }),
      () => host.remove(plural, key),
    ]) {
      changed.clear();
      change();
      await settle();
      expect([...changed].toSorted()).toEqual(expected);
    }
  });
});

test('what is cached has no contents, and a Secret is read for them', async () => {
  await using host = new FleetHost(fleetIn('team-*'));
  host.install(KEY);
  await host.whenSynced();
  const known = host.discovery.known(KEY);
  const { access, values, overlay } = known;
  expect([access?.metadata.name, values?.metadata.name, overlay]).toEqual([
    'vc-vc',
    'vc-config-vc',
    undefined,
  ]);
  expect([access, values].flatMap((object) => Object.keys(object ?? {}))).toEqual(['metadata', 'metadata']);
  await host.discovery.readAccess(known);
  expect(host.reads.splice(0)).toEqual(['secrets/team-a/vc-vc']);
  await host.discovery.readValues(known);
  expect(host.reads.splice(0)).toEqual(['secrets/team-a/vc-config-vc']);
});

test('of a workload, what decides is cached, however much else it has', async () => {
  await using host = new FleetHost(fleetIn('team-*'));
  const labels = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`a${at}`, 'b']));
  const metadata = { namespace: 'team-a', name: 'vc', labels: { app: 'vcluster', ...labels } };
  const annotations = { text: 'x'.repeat(200_000), 'loft.sh/paused': 'true' };
  host.put('statefulsets.apps', { metadata: { ...metadata, annotations }, spec: { replicas: 1 } });
  await host.whenSynced();
  const [workload] = host.discovery.workloadsIn('team-a');
  expect(workload?.metadata.annotations).toEqual({ 'loft.sh/paused': 'true' });
  expect(JSON.stringify(workload).length).toBeLessThan(2000);
  expect(host.discovery.workloadsIn('team-b')).toEqual([]);
});

const CHANGES = ['access', 'values', 'overlay', 'workload', 'read'] as const;

test('after any history, what is read is what the host has', async () => {
  const change = fc.record({ what: fc.constantFrom(...CHANGES), text: fc.option(fc.constantFrom('a', 'b')) });
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 12 }), async (changes) => {
      await using host = new FleetHost(fleetIn('team-*'));
      await host.whenSynced();
      const held: Partial<Record<(typeof CHANGES)[number], string>> = {};
      for (const { what, text } of changes) {
        if (what === 'read') await read(host);
        else {
          set(host, what, text);
          await settle();
          if (text === null) delete held[what];
          else held[what] = text;
        }
      }
      const { access, values, overlay, workloads } = await read(host);
      expect({
        access: access && secretText(access, 'config'),
        values: values && secretText(values, VALUES_KEY),
        overlay: overlay && (overlay['data'] as Record<string, string>)[VALUES_KEY], // as `set` writes it
        workload: workloads[0]?.metadata.labels?.['text'],
      }).toEqual({ access: undefined, values: undefined, overlay: undefined, workload: undefined, ...held });
    }),
    { numRuns: 50 },
  );
});

async function read({ discovery }: FleetHost): Promise<VclusterObjects> {
  const known = discovery.known(KEY);
  return { ...known, access: await discovery.readAccess(known), ...(await discovery.readValues(known)) };
}

function set(host: FleetHost, what: 'access' | 'values' | 'overlay' | 'workload', text: string | null): void {
  const [namespace, name] = ['team-a', 'vc'];
  switch (what) {
    case 'access':
      return text === null
        ? host.remove('secrets', 'team-a/vc-vc')
        : host.putSecret(KEY, 'vc-', { config: text });
    case 'values':
      return text === null ? host.remove('secrets', 'team-a/vc-config-vc') : host.setValues(KEY, text);
    case 'overlay':
      return text === null
        ? host.remove('configmaps', 'team-a/endpoint-syncer-vc')
        : host.put('configmaps', {
            metadata: { namespace, name: 'endpoint-syncer-vc' },
            data: { [VALUES_KEY]: text },
          });
    case 'workload':
      return text === null
        ? host.remove('statefulsets.apps', KEY)
        : host.put('statefulsets.apps', {
            metadata: { namespace, name, labels: { app: 'vcluster', text } },
          });
  }
}
