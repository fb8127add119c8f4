/** Beside a whole vCluster, as its sidecar, with the documented values: the copies change hands, and nothing of a tenant is lost or damaged. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { CHART } from '../e2e/deploy/helm.ts';
import { documentedBlocks } from '../e2e/documented-blocks.ts';
import type { KindName, TestCluster } from '../scenarios/cluster-client.ts';
import type { Daemon } from '../scenarios/daemon.ts';
import { slice } from '../scenarios/endpoint-slices.ts';
import { eventually } from '../support/eventually.ts';
import { endpoints, ipsOf, service, subset } from '../scenarios/objects.ts';
import { VclusterHost } from './host.ts';
import { TEAM_A, VCLUSTER } from './pod.ts';
import { copiesOf, WholeVcluster } from './vcluster.ts';

const LAST_SYNCED = 'endpoint-syncer/last-synced';
const OWNER = 'example.com/owner';
const PATCHES = [
  {
    path: `metadata.annotations["${OWNER}"]`,
    expression: '"team-" + value',
    reverseExpression: 'value.replace(/^team-/, "")',
  },
];
/** Our chart, as the documentation installs it for a sidecar, with patches. */
const OUR_VALUES = {
  sidecar: true,
  vclusterConfigSecret: `vc-config-${VCLUSTER}`,
  config: {
    endpointSyncer: { name: VCLUSTER },
    sync: {
      toHost: { endpoints: { patches: PATCHES }, endpointSlices: { enabled: true, patches: PATCHES } },
    },
  },
};
/** vCluster's defaults, and the values of the documentation. */
const ON: JsonObject = {};
const OFF = parse(documentedBlocks('deploy.md').get('vcluster-values.yaml') ?? '') as JsonObject; // our own page
const [ENDPOINTS, SLICE] = ['db', 'own'].map((name) => `${name}-x-default-x-${VCLUSTER}`) as [string, string];
const COPIES: readonly [KindName, string][] = [
  ['Endpoints', ENDPOINTS],
  ['EndpointSlice', SLICE],
];
/** Until the audit log has a write that its client knows of. */
const AUDITED = { timeout: 60_000 };
/** How long both programs are left alone with the same objects. */
const CONTENTION_MS = 30_000;

describe('beside a whole vCluster', () => {
  let host: VclusterHost;
  let vcluster: WholeVcluster;
  let virtual: TestCluster;
  let folder = '';
  let uids: readonly string[] = [];
  let sidecar: Daemon | undefined;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-beside-'));
    host = await VclusterHost.start();
    vcluster = await WholeVcluster.start(host, TEAM_A, ON);
    virtual = await vcluster.virtual();
  });
  afterAll(async () => {
    await virtual[Symbol.asyncDispose]();
    await vcluster[Symbol.asyncDispose]();
    await host[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  const copy = (kind: KindName, name: string): Promise<KubeObject> =>
    vcluster.host.get(kind, TEAM_A.namespace, name);
  const uidsNow = async () =>
    (await Promise.all(COPIES.map((one) => copy(...one)))).map(({ metadata }) => metadata.uid ?? '');
  const ownerOf = ({ metadata }: KubeObject): string | undefined => metadata.annotations?.[OWNER];
  const whenCopies = async (holds: (copy: KubeObject) => boolean): Promise<void> => {
    for (const [kind, name] of COPIES) await vcluster.host.when(kind, [TEAM_A.namespace, name], holds);
  };
  const setOwner = async (owner: string): Promise<void> => {
    for (const [kind, name] of [
      ['Endpoints', 'db'],
      ['EndpointSlice', 'own'],
    ] as const)
      await virtual.merge(kind, ['default', name], { metadata: { annotations: { [OWNER]: owner } } });
  };
  const setService = (name: string): Promise<unknown> =>
    virtual.merge('EndpointSlice', ['default', 'own'], {
      metadata: { labels: { 'kubernetes.io/service-name': name } },
    });
  const tenantsOwners = async (): Promise<unknown[]> => [
    ownerOf(await virtual.get('Endpoints', 'default', 'db')),
    ownerOf(await virtual.get('EndpointSlice', 'default', 'own')),
  ];
  const tenantsService = async (): Promise<unknown> => {
    const { labels } = (await virtual.get('EndpointSlice', 'default', 'own')).metadata;
    return labels?.['kubernetes.io/service-name'];
  };
  /** The writes of this program to the copies since `from`. */
  const ourWrites = (from: number) =>
    vcluster
      .writes('host', from)
      .filter(({ agent, name }) => agent === 'endpoint-syncer' && [ENDPOINTS, SLICE].includes(name));

  test('vCluster syncs what a tenant creates', async () => {
    for (const name of ['db', 'cache']) await virtual.create('Service', service(`default/${name}`));
    const annotations = { [OWNER]: 'shop' };
    await virtual.create('Endpoints', endpoints('default/db', { annotations }));
    await virtual.create('EndpointSlice', slice('default/own', 'cache', { annotations }));
    await whenCopies((one) => ownerOf(one) === 'shop');
    uids = await uidsNow();
    expect(uids.every((uid) => uid !== '')).toBe(true);
  });

  test('the sidecar takes the copies over: same uid, one write each, no advice', async () => {
    await vcluster.install(OFF);
    writeFileSync(join(folder, 'ours.yaml'), stringify(OUR_VALUES));
    await vcluster.helm('install', 'syncer', CHART, `--values=${join(folder, 'ours.yaml')}`);
    const from = vcluster.writes('host').length;
    sidecar = await (await vcluster.startSidecar()).ready(120_000);
    await whenCopies(
      (one) => ownerOf(one) === 'team-shop' && one.metadata.annotations?.[LAST_SYNCED] !== undefined,
    );
    await eventually(
      () => sidecar?.isIdle(),
      (idle) => idle === true,
    );
    expect(await uidsNow()).toEqual(uids);
    const written = (): string[] =>
      ourWrites(from)
        .map(({ name, verb, status }) => `${verb} ${name} ${status}`)
        .toSorted();
    // The audit log follows the response.
    await expect.poll(written, AUDITED).toEqual([`update ${ENDPOINTS} 200`, `update ${SLICE} 200`]);
    expect(await tenantsOwners()).toEqual(['shop', 'shop']);
    expect(
      sidecar.log.filter(({ level, msg }) => level !== 'info' && !/waiting for it/u.test(String(msg))),
    ).toEqual([]);
    expect(sidecar.stderr).not.toContain('virtual.server');
  });

  test('vCluster restarts, and changes of tenants arrive again', async () => {
    await vcluster.restart();
    await setOwner('checkout');
    await whenCopies((one) => ownerOf(one) === 'team-checkout');
    expect(await uidsNow()).toEqual(uids);
    expect(sidecar?.isRunning).toBe(true);
  });

  test('the sidecar restarts, and writes only what has changed meanwhile', async () => {
    await sidecar?.stop();
    await virtual.merge('Endpoints', ['default', 'db'], { subsets: [subset('10.1.0.9')] });
    const from = vcluster.writes('host').length;
    sidecar = await (await vcluster.startSidecar()).ready(120_000);
    await vcluster.host.when(
      'Endpoints',
      [TEAM_A.namespace, ENDPOINTS],
      (one) => ipsOf(one)[0] === '10.1.0.9',
    );
    await eventually(
      () => sidecar?.isIdle(),
      (idle) => idle === true,
    );
    const written = (): string[] => ourWrites(from).map(({ name, verb }) => `${verb} ${name}`);
    await expect.poll(written, AUDITED).toEqual([`update ${ENDPOINTS}`]);
  });

  test('a start is refused if vCluster syncs the same objects', async () => {
    await sidecar?.stop();
    await vcluster.install(ON);
    const refused = await vcluster.startSidecar();
    expect((await refused.exited).code).toBe(2);
    expect(refused.stderr).toMatch(
      /^\/etc\/endpoint-syncer\/config\.yaml:\d+:\d+: sync\.toHost\.endpoints\.enabled: /mu,
    );
    expect(refused.stderr).toMatch(
      /^\/etc\/vcluster\/config\.yaml:\d+:\d+: sync\.toHost\.endpoints\.enabled: /mu,
    );
  });

  test('if both sync nevertheless, no value of a tenant grows, and the fight ends', async () => {
    await setOwner('payments');
    await whenCopies((one) => ownerOf(one) === 'payments');
    const both = await (await vcluster.startSidecar('--beside-vcluster=force')).ready(120_000);
    const from = { host: vcluster.writes('host').length, virtual: vcluster.writes('virtual').length };
    const startedMs = performance.now();
    const owners = new Set<unknown>();
    const services = new Set<unknown>();
    await eventually(
      async () => {
        for (const owner of await tenantsOwners()) owners.add(owner);
        services.add(await tenantsService());
        return performance.now() - startedMs > CONTENTION_MS;
      },
      (isOver) => isOver,
      { timeoutMs: 4 * CONTENTION_MS },
    );
    // vCluster copies a corrected label back, which is undone.
    await eventually(
      async () => [...(await tenantsOwners()), await tenantsService()],
      (values) => values.join() === 'payments,payments,cache',
    );
    await both.stop();
    expect(
      [...services].filter((name) => name !== 'cache' && name !== `cache-x-default-x-${VCLUSTER}`),
    ).toEqual([]);
    const written = (['host', 'virtual'] as const).map((cluster) =>
      vcluster.writes(cluster, from[cluster]).filter(({ agent, resource }) => {
        return agent === 'endpoint-syncer' && ['endpoints', 'endpointslices'].includes(resource);
      }),
    );
    const [longest] = [...owners].map((owner) => String(owner).length).toSorted((a, b) => b - a);
    expect(longest).toBeLessThanOrEqual('team-payments'.length);
    // Corrections after 1, 2, 4, … s, on both sides of three objects; thousands without the back-off.
    expect(written.flat().length).toBeLessThan(40);
  });

  test('what a tenant moves or creates again stays in the virtual cluster while both sync', async () => {
    await virtual.create('Service', service('default/again'));
    await virtual.create('Endpoints', endpoints('default/again'));
    const again = `again-x-default-x-${VCLUSTER}`;
    await vcluster.host.when('Endpoints', [TEAM_A.namespace, again]);
    const both = await (await vcluster.startSidecar('--beside-vcluster=force')).ready(120_000);
    const uidOf = async (kind: KindName, name: string): Promise<unknown> =>
      (await virtual.find(kind, 'default', name))?.metadata.uid;
    await virtual.delete('Endpoints', 'default', 'again');
    await virtual.create('Endpoints', endpoints('default/again'));
    await setService('db');
    const tenants = async () => [await uidOf('Endpoints', 'again'), await uidOf('EndpointSlice', 'own')];
    const written = await tenants();
    const startedMs = performance.now();
    const found = await eventually(
      tenants,
      (now) => now.join() !== written.join() || performance.now() - startedMs > CONTENTION_MS,
      { timeoutMs: 4 * CONTENTION_MS },
    );
    expect(found).toEqual(written);
    await vcluster.host.when(
      'Endpoints',
      [TEAM_A.namespace, again],
      ({ metadata }) => metadata.annotations?.['vcluster.loft.sh/object-uid'] === written[0],
    );
    await setService('cache');
    await both.stop();
  });

  test('vCluster takes the copies back: same uid, its own content', async () => {
    // vCluster carries the last write of the sidecar back when it sees it, over an edit of the tenant too, who then makes it again.
    await eventually(
      async () => {
        await setOwner('billing');
        return Promise.all(COPIES.map(async (one) => ownerOf(await copy(...one))));
      },
      (owners) => owners.every((owner) => owner === 'billing'),
    );
    expect(await tenantsOwners()).toEqual(['billing', 'billing']);
    expect(await uidsNow()).toEqual(uids);
  });

  test('uninstalling vCluster leaves no copy', async () => {
    await vcluster.install(OFF);
    sidecar = await (await vcluster.startSidecar()).ready(120_000);
    await virtual.create('Endpoints', endpoints('default/new', { annotations: { [OWNER]: 'shop' } }));
    await vcluster.host.when('Endpoints', [TEAM_A.namespace, `new-x-default-x-${VCLUSTER}`]);
    await vcluster.helm('uninstall', VCLUSTER);
    await Promise.all([sidecar.terminate(), vcluster.stop()]);
    for (const kind of ['Endpoints', 'EndpointSlice'] as const)
      expect(
        await eventually(
          () => copiesOf(vcluster, kind),
          (names) => names.length === 0,
        ),
      ).toEqual([]);
  });
});
