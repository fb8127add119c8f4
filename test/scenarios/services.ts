/** Services with `endpointSyncer.services: sync`: which ones are copied, which fields are not synced, and the status that is synced back. */

import { describe, expect, test } from 'vitest';
import type { KubeObject, StringMap } from '../../src/kube/object.ts';
import { isJsonObject, type JsonObject } from '../../src/base/json.ts';
import { slice, whenSlice } from './endpoint-slices.ts';
import { MARKER } from './expected-copy.ts';
import { ipsOf } from './objects.ts';
import { sharedWorld } from './shared-world.ts';
import { pair, type NewWorld, type World } from './world.ts';

const SERVICES: JsonObject = {
  sync: { toHost: { endpointSlices: { enabled: true } } },
  endpointSyncer: { services: 'sync' },
};
const PATCHED: JsonObject = {
  sync: {
    toHost: {
      services: {
        patches: [
          {
            path: 'metadata.annotations.owner',
            expression: '"team-" + value',
            reverseExpression: 'value.replace(/^team-/, "")',
          },
          { path: 'metadata.annotations.secret', reference: { apiVersion: 'v1', kind: 'Secret' } },
          { path: 'metadata.annotations.selector', labels: {} },
          { path: 'spec.type', expression: '"NodePort"' },
          { path: 'spec.ports[*].port', expression: 'value + 1000', reverseExpression: 'value - 1000' },
        ],
      },
    },
  },
  endpointSyncer: { services: 'sync' },
};
/** Lets a tenant write the spec of the copy. */
const SPEC_OF_TENANT: JsonObject = {
  path: 'spec',
  expression: '({ ...value, ...JSON.parse(context.virtualObject.metadata.annotations.spec) })',
};
/** Values for the spec of a copy that fail the patch. */
const FORBIDDEN: readonly (readonly [name: string, spec: JsonObject, problem: string])[] = [
  ['selects', { selector: { app: 'host' } }, 'is never copied: a selector would match Pods of the host'],
  ['takes', { externalIPs: ['203.0.113.9'] }, 'endpointSyncer.services.allow names externalIPs'],
  ['balances', { loadBalancerIP: '203.0.113.9' }, 'endpointSyncer.services.allow names loadBalancerIP'],
  ['allocates', { clusterIP: '10.0.0.9' }, 'is allocated by the host'],
  ['invalid', { type: 'Other' }, 'must be one of ClusterIP, ExternalName, LoadBalancer, NodePort'],
];
const OBJECT_NAME = 'vcluster.loft.sh/object-name';
const INGRESS = [{ ip: '203.0.113.7' }];

export function serviceScenarios(newWorld: NewWorld): void {
  describe('Services', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, () => ({ config: SERVICES }));

    test('with synced Endpoints or slices are copied with ports, affinity, policies, labels and annotations', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const spec = {
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
        internalTrafficPolicy: 'Local',
        ports: [
          { name: 'http', port: 80, targetPort: 8080, protocol: 'TCP' },
          { name: 'dns', port: 53, targetPort: 53, protocol: 'UDP' },
        ],
      };
      const labels = { app: 'db', release: 'stable' };
      await world.virtual.create('Service', plain(`${ns}/db`, { spec, labels, annotations: { a: '1' } }));
      await world.createVirtual(`${ns}/db`);
      await world.virtual.create('Service', plain(`${ns}/sliced`));
      await world.virtual.create('EndpointSlice', slice(`${ns}/sliced-1`, 'sliced'));
      const copy = await whenService(world, `${ns}/db`);
      expect(specOf(copy)).toMatchObject({ type: 'ClusterIP', ...spec });
      expect(copy.metadata.labels).toMatchObject({ app: 'db', [MARKER]: world.vcluster });
      expect(copy.metadata.labels?.['release']).toBeUndefined();
      expect(copy.metadata.annotations).toMatchObject({
        a: '1',
        'vcluster.loft.sh/object-kind': '/v1, Kind=Service',
      });
      expect(specOf(copy)['selector']).toBeUndefined();
      await whenService(world, `${ns}/sliced`);
      const found = await whenSlice(world, `${ns}/sliced-1`);
      expect(found.metadata.labels?.['kubernetes.io/service-name']).toBe(world.hostName(`${ns}/sliced`));
    });

    test('get none of the addresses that the tenant chose', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const spec = { type: 'LoadBalancer', externalIPs: ['203.0.113.9'], loadBalancerIP: '203.0.113.8' };
      await world.virtual.create('Service', plain(`${ns}/db`, { spec }));
      await world.createVirtual(`${ns}/db`);
      const copy = await whenService(world, `${ns}/db`);
      expect(specOf(copy)).toMatchObject({ type: 'LoadBalancer' });
      expect(specOf(copy)).not.toHaveProperty('externalIPs');
      expect(specOf(copy)).not.toHaveProperty('loadBalancerIP');
    });

    test('get the addresses that the operator allows', async ({ expect }) => {
      await using world = await newWorld();
      const services = { mode: 'sync', allow: ['externalIPs'] };
      await world.startSync({ config: { ...SERVICES, endpointSyncer: { services } } });
      const spec = { externalIPs: ['203.0.113.9'] };
      await world.virtual.create('Service', plain('default/db', { spec }));
      await world.createVirtual('default/db');
      expect(specOf(await whenService(world, 'default/db'))).toMatchObject(spec);
    });

    test('whose copy is deleted lose its address, also where the first write of that fails', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const virtual = await world.proxy('virtual');
      const daemon = await world.startSync({ config: SERVICES, kubeconfigs: { virtual: virtual.path } });
      const key = 'default/balanced';
      await world.virtual.create('Service', plain(key, { spec: { type: 'LoadBalancer' } }));
      await whenService(world, key);
      await world.host.mergeStatus('Service', world.hostKey(key), { loadBalancer: { ingress: INGRESS } });
      await whenIngress(world, key, 1);
      await world.settle(daemon);
      let isRefused = false;
      virtual.behaviour = {
        decide({ method, path }) {
          if (isRefused || method !== 'PATCH' || !path.includes('/services/balanced/status'))
            return { kind: 'pass' };
          isRefused = true;
          return { kind: 'refuse', status: 500, reason: 'InternalError' };
        },
      };
      await world.virtual.merge('Service', pair(key), { spec: { selector: { app: 'x' } } });
      await whenNoService(world, key);
      expect(ingressOf(await whenIngress(world, key, 0))).toEqual([]);
      expect(isRefused).toBe(true);
    });

    test('whose watch event arrives after that of their Endpoints are copied', async ({ expect }) => {
      await using world = await newWorld();
      const virtual = await world.proxy('virtual');
      const key = 'default/late';
      const wasRead = Promise.withResolvers<void>();
      virtual.behaviour = {
        decide({ method, path, isWatch }) {
          if (method === 'GET' && !isWatch && path.endsWith('/services/late')) wasRead.resolve();
          return { kind: 'pass' };
        },
        watchLine: async (line) => {
          if (line.includes('"kind":"Service"') && line.includes('"late"')) {
            await wasRead.promise;
            await world.whenCopied(key);
          }
          return [line];
        },
      };
      await world.startSync({ config: SERVICES, kubeconfigs: { virtual: virtual.path } });
      await world.virtual.create('Service', plain(key));
      await world.createVirtual(key);
      expect((await whenService(world, key)).metadata.name).toBe(world.hostName(key));
    });

    test('of other types are not copied, those with a selector with an Event', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      await world.virtual.create('Service', plain(`${ns}/pods`, { spec: { selector: { app: 'x' } } }));
      await world.virtual.create('Service', plain(`${ns}/empty`));
      expect(await world.whenEvent(`${ns}/pods`, 'NotSynced', { kind: 'Service' })).toContain(
        'has a selector',
      );
      await world.settle(daemon);
      expect(await serviceNames(world, ns)).toEqual([]);
      await world.virtual.merge('Service', [ns, 'empty'], { metadata: { labels: { a: '1' } } });
      await world.createVirtual(`${ns}/empty`);
      await whenService(world, `${ns}/empty`);
    });

    test.for(['Endpoints', 'EndpointSlice'] as const)(
      'keep their copy, its addresses and ports when the last %s behind them goes',
      async (kind) => {
        const { world, daemon, namespace } = shared();
        const ns = await namespace();
        const key = `${ns}/left`;
        await world.virtual.create('Service', plain(key, { spec: { type: 'NodePort' } }));
        if (kind === 'Endpoints') await world.createVirtual(key);
        else await world.virtual.create(kind, slice(key, 'left'));
        const copy = await whenService(world, key);
        await world.virtual.delete(kind, ...pair(key));
        await world.host.whenGone(kind, world.hostKey(key));
        await world.settle(daemon);
        await world.virtual.merge('Service', pair(key), { metadata: { annotations: { note: 'changed' } } });
        const kept = await whenService(world, key, (one) => one.metadata.annotations?.['note'] === 'changed');
        expect(kept.metadata.uid).toBe(copy.metadata.uid);
        expect(specOf(kept)).toEqual(specOf(copy));
        await world.virtual.merge('Service', pair(key), { spec: { selector: { app: 'x' } } });
        await whenNoService(world, key);
      },
    );

    test('of type LoadBalancer are copied before anything is behind them', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/early`;
      await world.virtual.create('Service', plain(key, { spec: { type: 'LoadBalancer' } }));
      expect(specOf(await whenService(world, key))).toMatchObject({ type: 'LoadBalancer' });
    });

    test('have what programs of the host allocate, which stays there, and none of the addresses in annotations', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/allocated`;
      const annotations = {
        'metallb.io/loadBalancerIPs': '203.0.113.8',
        'lbipam.cilium.io/ips': '203.0.113.8',
        'example.com/kept': 'yes',
      };
      await world.virtual.create('Service', plain(key, { spec: { type: 'LoadBalancer' }, annotations }));
      const copy = await whenService(world, key);
      expect(copy.metadata.annotations).toHaveProperty(['example.com/kept'], 'yes');
      for (const one of ['metallb.io/loadBalancerIPs', 'lbipam.cilium.io/ips'])
        expect(copy.metadata.annotations).not.toHaveProperty([one]);
      const given = {
        metadata: {
          annotations: { 'kube-vip.io/loadbalancerIPs': '203.0.113.7' },
          labels: { implementation: 'kube-vip', cloud: 'x' },
        },
        spec: { loadBalancerIP: '203.0.113.7', externalIPs: ['203.0.113.6'] },
      };
      await world.host.merge('Service', world.hostKey(key), given);
      const isLabelled = (one: KubeObject) => one.metadata.labels?.['cloud'] === 'x';
      await world.virtual.when('Service', pair(key), isLabelled);
      await world.settle(daemon);
      expect(await world.host.get('Service', ...world.hostKey(key))).toMatchObject(given);
      const { metadata } = await world.virtual.get('Service', ...pair(key));
      expect(metadata.annotations).toEqual(annotations);
      expect(metadata.labels).not.toHaveProperty('implementation');
    });

    test('of type ExternalName are copied without Endpoints', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/outside`;
      const spec = { type: 'ExternalName', externalName: 'db.example.com', ports: undefined };
      await world.virtual.create('Service', plain(key, { spec }));
      const copy = await whenService(world, key);
      expect(specOf(copy)).toMatchObject({ type: 'ExternalName', externalName: 'db.example.com' });
      expect(specOf(copy)['clusterIP'] ?? '').toBe('');
      await world.virtual.merge('Service', pair(key), { spec: { externalName: 'db2.example.com' } });
      await whenService(world, key, (one) => specOf(one)['externalName'] === 'db2.example.com');
    });

    // Of such a Service, a running watch of a kube-apiserver shows internalTrafficPolicy, and a read does not.
    test('that become ExternalName are written once', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/becoming`;
      await world.virtual.create('Service', plain(key));
      await world.createVirtual(key);
      await whenService(world, key);
      const spec = { type: 'ExternalName', externalName: 'db.example.com', internalTrafficPolicy: 'Cluster' };
      await world.virtual.merge('Service', pair(key), { spec });
      await whenService(world, key, (one) => specOf(one)['externalName'] === spec.externalName);
      await world.settle(daemon);
      expect(await world.eventsOn(key, 'Contested', 'Service')).toEqual([]);
    });

    test('of type ExternalName lead to the copy of the Service that they name', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const key = `${ns}/alias`;
      const spec = {
        type: 'ExternalName',
        externalName: `db.${ns}.svc.cluster.local`,
        ports: undefined,
      };
      await world.virtual.create('Service', plain(key, { spec }));
      const onHost = `${world.hostName(`${ns}/db`)}.${world.hostNamespace}.svc.cluster.local`;
      const leadsTo = (name: string) => (one: KubeObject) => specOf(one)['externalName'] === name;
      await whenService(world, key, leadsTo(onHost));
      await world.host.merge('Service', world.hostKey(key), {
        metadata: { labels: { cloud: 'x' } },
        spec: { externalName: 'other.team-b.svc' },
      });
      const isLabelled = (one: KubeObject) => one.metadata.labels?.['cloud'] === 'x';
      const virtual = await world.virtual.when('Service', pair(key), isLabelled);
      expect(specOf(virtual)['externalName']).toBe(spec.externalName);
      await whenService(world, key, leadsTo(onHost));
      await world.settle(daemon);
      await world.virtual.merge('Service', pair(key), { spec: { externalName: 'example.com' } });
      await whenService(world, key, leadsTo('example.com'));
    });

    test('of type ExternalName that name a Service without a copy are reported, also when that is created later', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      for (const isLater of [false, true]) {
        const [key, target] = [`${ns}/alias-${isLater}`, `${ns}/target-${isLater}`];
        const spec = {
          type: 'ExternalName',
          externalName: `target-${isLater}.${ns}.svc.cluster.local`,
          ports: undefined,
        };
        const selecting = plain(target, { spec: { selector: { app: 'x' } } });
        if (!isLater) await world.virtual.create('Service', selecting);
        await world.virtual.create('Service', plain(key, { spec }));
        await whenService(world, key);
        if (isLater) await world.virtual.create('Service', selecting);
        const note = await world.whenEvent(key, 'NoEffect', { kind: 'Service' });
        expect(note).toContain(`Service "${target}", which is not copied to the host`);
      }
    });

    test('of the host beside those that are mapped are left alone', async ({ expect }) => {
      await using world = await newWorld();
      const there = `${world.hostNamespace}-a`;
      await world.virtualNamespace('team-a');
      await world.hostNamespaceNamed(there);
      const namespaces = { enabled: true, mappings: { byName: { 'team-a': there } } };
      const daemon = await world.startSync({
        config: { sync: { toHost: { namespaces } }, endpointSyncer: { services: 'sync' } },
      });
      await world.host.create('Service', plain(`${there}/other`));
      await world.virtual.create('Service', plain('team-a/web'));
      await world.createVirtual('team-a/web');
      await world.host.when('Service', [there, 'web']);
      await world.host.merge('Service', [there, 'other'], { metadata: { labels: { a: 'b' } } });
      await world.host.delete('Service', there, 'other');
      await world.whenIdle(daemon);
      expect((await world.host.list('Service', there)).map(({ metadata }) => metadata.name)).toEqual(['web']);
    });

    test('of type ExternalName that name a Service without a namespace on the host are refused with an Event', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const there = `${world.hostNamespace}-a`;
      await world.virtualNamespace('team-a');
      await world.hostNamespaceNamed(there);
      const namespaces = { enabled: true, mappingsOnly: true, mappings: { byName: { 'team-a': there } } };
      const daemon = await world.startSync({
        config: { sync: { toHost: { namespaces } }, endpointSyncer: { services: 'sync' } },
      });
      const create = (name: string, externalName: string) =>
        world.virtual.create(
          'Service',
          plain(`team-a/${name}`, { spec: { type: 'ExternalName', externalName, ports: undefined } }),
        );
      await create('known', 'db.team-a.svc');
      await create('unknown', 'db.team-b.svc');
      const leadsTo = (name: string) => (one: KubeObject) => specOf(one)['externalName'] === name;
      await world.host.when('Service', [there, 'known'], leadsTo(`db.${there}.svc`));
      expect(await world.whenEvent('team-a/unknown', 'NamespaceNotMapped', { kind: 'Service' })).toContain(
        'Namespace "team-b", which spec.externalName names, has no entry',
      );
      expect(await world.host.find('Service', there, 'unknown')).toBeUndefined();
      await world.virtual.merge('Service', ['team-a', 'known'], { spec: { externalName: 'db.team-b.svc' } });
      await world.whenEvent('team-a/known', 'NamespaceNotMapped', { kind: 'Service' });
      await world.whenIdle(daemon);
      expect(specOf(await world.host.get('Service', there, 'known'))['externalName']).toBe(`db.${there}.svc`);
      await world.virtual.merge('Service', ['team-a', 'known'], { spec: { externalName: 'db.team-b' } });
      await world.host.when('Service', [there, 'known'], leadsTo('db.team-b'));
    });

    test('replaced while the daemon is down do not keep the class of the earlier load balancer', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const key = 'default/balanced';
      const spec = { type: 'LoadBalancer', loadBalancerClass: 'example.com/lb' };
      const first = await world.startSync({ config: SERVICES });
      await world.virtual.create('Service', plain(key, { spec }));
      await world.virtual.create('EndpointSlice', slice(`${key}-1`, 'balanced'));
      const earlier = await whenService(world, key);
      expect(specOf(earlier)).toMatchObject(spec);
      await world.settle(first);
      await first.stop();
      await world.virtual.delete('Service', ...pair(key));
      await world.virtual.create('Service', plain(key, { spec: { type: 'LoadBalancer' } }));
      await world.startSync({ config: SERVICES });
      const isReplaced = ({ metadata }: KubeObject): boolean => metadata.uid !== earlier.metadata.uid;
      expect(specOf(await whenService(world, key, isReplaced))).not.toHaveProperty('loadBalancerClass');
    });

    test('keep the type, and updates keep the cluster IP and node ports of the host', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/nodes`;
      const ports = [{ name: 'http', port: 80, targetPort: 8080, protocol: 'TCP' }];
      await world.virtual.create('Service', plain(key, { spec: { type: 'NodePort', ports } }));
      await world.createVirtual(key);
      const created = await whenService(world, key);
      expect(specOf(created)['type']).toBe('NodePort');
      if (world.clusters.kind === 'embedded') {
        // Nothing is allocated there.
        await world.host.merge('Service', world.hostKey(key), {
          spec: { clusterIP: '10.0.0.77', ports: [{ ...ports[0], nodePort: 30_777 }] },
        });
      }
      const before = specOf(await world.host.get('Service', ...world.hostKey(key)));
      await world.virtual.merge('Service', pair(key), {
        metadata: { labels: { changed: '1' } },
        spec: { ports: [...ports, { name: 'more', port: 81, targetPort: 81, protocol: 'TCP' }] },
      });
      const after = specOf(await whenService(world, key, (one) => portsOf(one).length === 2));
      await world.settle(daemon);
      expect([after['clusterIP'], portOf(after, 80)?.['nodePort']]).toEqual([
        before['clusterIP'],
        portOf(before, 80)?.['nodePort'],
      ]);
      expect(after['clusterIP']).not.toBe(
        specOf(await world.virtual.get('Service', ...pair(key)))['clusterIP'] ?? '',
      );
      const quiet = await world.host.get('Service', ...world.hostKey(key));
      await world.settle(daemon);
      expect((await world.host.get('Service', ...world.hostKey(key))).metadata.resourceVersion).toBe(
        quiet.metadata.resourceVersion,
      );
    });

    test('are updated after a change of type, and a headless Service is recreated', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/typed`;
      await world.virtual.create('Service', plain(key, { spec: { type: 'LoadBalancer' } }));
      await world.createVirtual(key);
      const first = await whenService(world, key, (one) => specOf(one)['type'] === 'LoadBalancer');
      await world.virtual.merge('Service', pair(key), { spec: { type: 'ClusterIP' } });
      await whenService(world, key, (one) => specOf(one)['type'] === 'ClusterIP');
      await world.virtual.delete('Service', ...pair(key));
      await world.virtual.create('Service', plain(key, { spec: { clusterIP: 'None' } }));
      if ((await world.virtual.find('Endpoints', ...pair(key))) === undefined) await world.createVirtual(key);
      const last = await whenService(world, key, (one) => specOf(one)['clusterIP'] === 'None');
      expect(last.metadata.uid).not.toBe(first.metadata.uid);
      expect(ipsOf(await world.whenCopied(key))).toEqual(['10.1.0.1']);
    });

    test('of two IP families have addresses of both on the host, which allocates them', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const isReal = world.clusters.kind !== 'embedded';
      await world.createVirtual(`${ns}/web`);
      await world.virtual.create('Service', plain(`${ns}/web`, { spec: { ipFamilyPolicy: 'SingleStack' } }));
      await whenService(world, `${ns}/web`);
      await world.virtual.merge('Service', [ns, 'web'], { spec: { ipFamilyPolicy: 'RequireDualStack' } });
      const copy = await whenService(world, `${ns}/web`, (one) => {
        const { ipFamilyPolicy, clusterIPs } = specOf(one);
        return ipFamilyPolicy === 'RequireDualStack' && (!isReal || (clusterIPs as string[]).length === 2);
      });
      const { clusterIPs } = specOf(await world.virtual.get('Service', ns, 'web'));
      expect(isReal && specOf(copy)['clusterIPs']).not.toEqual(clusterIPs);
    });

    test('have the IP family of the virtual Service, whichever the host prefers', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/six`;
      const spec = { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv6'] };
      await world.virtual.create('Service', plain(key, { spec }));
      await world.createVirtual(key);
      const copy = await whenService(world, key);
      expect(specOf(copy)).toMatchObject(spec);
      const { clusterIP } = specOf(copy);
      const isOfFamily = typeof clusterIP === 'string' && clusterIP.includes(':');
      expect(isOfFamily || world.clusters.kind === 'embedded').toBe(true);
    });

    test('without a cluster IP keep their IP families and their order', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/headless`;
      const spec = { clusterIP: 'None', ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] };
      await world.virtual.create('Service', plain(key, { spec }));
      await world.createVirtual(key);
      expect(specOf(await whenService(world, key))).toMatchObject(spec);
    });

    test('get the load-balancer status of the host, which is cleared with the copy', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/balanced`;
      await world.virtual.create('Service', plain(key, { spec: { type: 'LoadBalancer' } }));
      await world.createVirtual(key);
      await whenService(world, key);
      await world.host.mergeStatus('Service', world.hostKey(key), { loadBalancer: { ingress: INGRESS } });
      const arrived = await whenIngress(world, key, 1);
      expect(ingressOf(arrived)[0]).toMatchObject(INGRESS[0] ?? {});
      await world.virtual.mergeStatus('Service', pair(key), { loadBalancer: { ingress: null } });
      await whenIngress(world, key, 1);
      await world.settle(daemon);
      const log = await world.log('virtual', 'Service');
      await world.settle(daemon);
      expect(log.of(pair(key)[1])).toEqual([]);
      await world.host.mergeStatus('Service', world.hostKey(key), {
        loadBalancer: { ingress: [...INGRESS, { ip: '203.0.113.8' }] },
      });
      await whenIngress(world, key, 2);
      await world.virtual.merge('Service', pair(key), { spec: { selector: { app: 'x' } } });
      await whenNoService(world, key);
      await whenIngress(world, key, 0);
    });

    test('have the status of the current copy: none after its recreation, then the new one', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/again`;
      const balance = () =>
        world.host.mergeStatus('Service', world.hostKey(key), { loadBalancer: { ingress: INGRESS } });
      await world.virtual.create('Service', plain(key, { spec: { type: 'LoadBalancer' } }));
      await world.createVirtual(key);
      const first = await whenService(world, key);
      await balance();
      await whenIngress(world, key, 1);
      await world.host.delete('Service', ...world.hostKey(key));
      await whenService(world, key, ({ metadata }) => metadata.uid !== first.metadata.uid);
      await whenIngress(world, key, 0);
      await balance();
      expect(ingressOf(await whenIngress(world, key, 1))[0]).toMatchObject(INGRESS[0] ?? {});
    });

    test('labels and annotations are synced in both directions, drift of the spec is corrected', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/both`;
      await world.virtual.create('Service', plain(key, { annotations: { a: '1', b: '1' } }));
      await world.createVirtual(key);
      await whenService(world, key);
      await world.host.merge('Service', world.hostKey(key), {
        metadata: { annotations: { a: 'host', b: null, c: 'new' }, labels: { cloud: 'x' } },
        spec: { sessionAffinity: 'ClientIP' },
      });
      const virtual = await world.virtual.when(
        'Service',
        pair(key),
        (one) => one.metadata.annotations?.['a'] === 'host',
      );
      expect(virtual.metadata.annotations).toEqual({ a: 'host', c: 'new' });
      expect(virtual.metadata.labels).toEqual({ cloud: 'x' });
      await whenService(world, key, (one) => specOf(one)['sessionAffinity'] === 'None');
      await world.settle(daemon);
    });

    test('deleted on the host are recreated with their Endpoints; a foreign one is never changed', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const [key, blocked] = [`${ns}/deleted`, `${ns}/blocked`];
      await world.virtual.create('Service', plain(key));
      await world.createVirtual(key);
      const before = await whenService(world, key);
      await world.whenCopied(key);
      await world.host.delete('Service', ...world.hostKey(key));
      await whenService(world, key, ({ metadata }) => metadata.uid !== before.metadata.uid);
      expect(ipsOf(await world.whenCopied(key))).toEqual(['10.1.0.1']);
      const foreign = await world.host.create('Service', plain(world.hostKey(blocked).join('/')));
      await world.virtual.create('Service', plain(blocked));
      await world.createVirtual(blocked);
      await world.whenEvent(blocked, 'NotManaged', { kind: 'Service' });
      await world.settle(daemon);
      const still = await world.host.get('Service', ...world.hostKey(blocked));
      expect(still.metadata.resourceVersion).toBe(foreign.metadata.resourceVersion);
    });
  });

  describe('a client of the host that damages the copy of a Service', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, () => ({ config: SERVICES }));

    test.each([
      ['the name of the object', { annotations: { [OBJECT_NAME]: null } }],
      ['all annotations', { annotations: null }],
      ['all annotations and labels', { annotations: null, labels: null }],
    ])('by the removal of %s does not end its traffic', async (_, metadata) => {
      const { world, daemon, namespace } = shared();
      // The host's name is cut, so nothing follows from it.
      const key = `${await namespace()}/${'l'.repeat(60)}`;
      await world.virtual.create('Service', plain(key));
      await world.createVirtual(key);
      await world.virtual.create('EndpointSlice', slice(`${pair(key)[0]}/sliced`, pair(key)[1]));
      await whenService(world, key);
      const before = [await world.whenCopied(key), await whenSlice(world, `${pair(key)[0]}/sliced`)];
      await world.host.merge('Service', world.hostKey(key), { metadata });
      await whenService(
        world,
        key,
        ({ metadata: { annotations } }) => annotations?.[OBJECT_NAME] !== undefined,
      );
      await world.settle(daemon);
      const after = [await world.whenCopied(key), await whenSlice(world, `${pair(key)[0]}/sliced`)];
      expect(after.map(({ metadata: { uid } }) => uid)).toEqual(before.map(({ metadata: { uid } }) => uid));
    });
  });

  describe('patches of Services', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, () => ({ config: PATCHED }));

    test('of all modes are applied, and the host keeps the node ports that it allocates for a patched type', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/db`;
      const annotations = { owner: 'web', secret: 'tls', selector: 'app=db' };
      await world.virtual.create('Service', plain(key, { annotations }));
      await world.createVirtual(key);
      const copy = await whenService(world, key);
      expect(copy.metadata.annotations).toMatchObject({ owner: 'team-web', selector: 'app=db' });
      expect(copy.metadata.annotations?.['secret']).toMatch(/^v[0-9a-z]{13}$/);
      expect(specOf(copy)).toMatchObject({ type: 'NodePort', ports: [{ port: 1080 }] });
      await allocateNodePort(world, key, 1080);
      const nodePort = portOf(specOf(await whenService(world, key)), 1080)?.['nodePort'];
      await world.virtual.merge('Service', pair(key), { metadata: { labels: { changed: '1' } } });
      const after = await whenService(world, key, ({ metadata }) => metadata.labels?.['changed'] === '1');
      expect(portOf(specOf(after), 1080)?.['nodePort']).toBe(nodePort);
      await world.settle(daemon);
      const quiet = await world.host.get('Service', ...world.hostKey(key));
      await world.settle(daemon);
      expect((await world.host.get('Service', ...world.hostKey(key))).metadata.resourceVersion).toBe(
        quiet.metadata.resourceVersion,
      );
      const virtual = await world.virtual.get('Service', ...pair(key));
      expect(specOf(virtual)).toMatchObject({ type: 'ClusterIP', ports: [{ port: 80 }] });
      expect(virtual.metadata.annotations).toEqual(annotations);
    });

    test('with a reverse expression sync a host change back, without further writes', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/both`;
      await world.virtual.create('Service', plain(key, { annotations: { owner: 'web' } }));
      await world.createVirtual(key);
      await whenService(world, key);
      await allocateNodePort(world, key, 1080);
      await world.settle(daemon);
      const [port = {}] = portsOf(await world.host.get('Service', ...world.hostKey(key)));
      await world.host.merge('Service', world.hostKey(key), {
        metadata: { annotations: { owner: 'team-db' } },
        spec: { ports: [{ ...port, port: 1090 }] },
      });
      const isBack = (one: KubeObject): boolean =>
        portsOf(one)[0]?.['port'] === 90 && one.metadata.annotations?.['owner'] === 'db';
      const virtual = await world.virtual.when('Service', pair(key), isBack);
      expect(specOf(virtual)['type']).toBe('ClusterIP');
      await world.settle(daemon);
      expect(portsOf(await whenService(world, key))).toEqual([{ ...port, port: 1090 }]);
      await world.virtual.merge('Service', pair(key), {
        spec: { ports: [{ ...portsOf(virtual)[0], port: 91 }] },
      });
      await whenService(world, key, (one) => portsOf(one)[0]?.['port'] === 1091);
      await world.settle(daemon);
    });

    test('in both directions give an ExternalName Service no name of a host Service', async ({ expect }) => {
      await using world = await newWorld();
      const key = 'default/alias';
      const patch = { path: 'spec.externalName', expression: 'value', reverseExpression: 'value' };
      const daemon = await world.startSync({
        config: {
          sync: { toHost: { services: { patches: [patch] } } },
          endpointSyncer: { services: 'sync' },
        },
      });
      const spec = { type: 'ExternalName', externalName: 'db.shop.svc', ports: undefined };
      await world.virtual.create('Service', plain(key, { spec }));
      const onHost = `${world.hostName('shop/db')}.${world.hostNamespace}.svc`;
      const leadsTo = (name: string) => (one: KubeObject) => specOf(one)['externalName'] === name;
      await whenService(world, key, leadsTo(onHost));
      await world.settle(daemon);
      const edit = (externalName: string) =>
        world.host.merge('Service', world.hostKey(key), { spec: { externalName } });
      await edit('other.team-b.svc');
      await whenService(world, key, leadsTo(onHost));
      await world.settle(daemon);
      expect(specOf(await world.virtual.get('Service', ...pair(key)))).toMatchObject({
        externalName: 'db.shop.svc',
      });
      await edit('www.example.com');
      await world.virtual.when('Service', pair(key), leadsTo('www.example.com'));
      await world.settle(daemon);
      expect(specOf(await whenService(world, key))['externalName']).toBe('www.example.com');
    });

    test('with onError: path hold up nothing else, node ports and the status of the host included', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const key = 'default/db';
      const patches: JsonObject[] = [
        { path: 'spec.type', expression: '"LoadBalancer"' },
        { path: 'metadata.annotations.owner', expression: 'value.missing.member' },
      ];
      const daemon = await world.startSync({
        config: {
          sync: { toHost: { services: { patches } } },
          endpointSyncer: { services: 'sync', patches: { onError: 'path' } },
        },
      });
      await world.virtual.create('Service', plain(key, { annotations: { owner: 'web' } }));
      await world.createVirtual(key);
      await whenService(world, key);
      await allocateNodePort(world, key, 80);
      await world.host.mergeStatus('Service', world.hostKey(key), { loadBalancer: { ingress: INGRESS } });
      const before = portOf(specOf(await whenService(world, key)), 80)?.['nodePort'];
      await world.virtual.merge('Service', pair(key), { spec: { sessionAffinity: 'ClientIP' } });
      const copy = await whenService(world, key, (one) => specOf(one)['sessionAffinity'] === 'ClientIP');
      expect(copy.metadata.annotations).not.toHaveProperty('owner');
      expect(portOf(specOf(copy), 80)?.['nodePort']).toBe(before);
      expect(await world.whenEvent(key, 'PatchFailed', { kind: 'Service' })).toContain('owner');
      await world.settle(daemon);
    });

    test('never give the copy an invalid value, or what it must not have', async ({ expect }) => {
      await using world = await newWorld();
      const ns = 'default';
      const daemon = await world.startSync({
        config: {
          sync: { toHost: { services: { patches: [SPEC_OF_TENANT] } } },
          endpointSyncer: { services: 'sync' },
        },
      });
      for (const [name, spec, problem] of FORBIDDEN) {
        const key = `${ns}/${name}`;
        const annotations = { spec: JSON.stringify(spec) };
        await world.virtual.create('Service', plain(key, { annotations }));
        await world.createVirtual(key);
        expect(await world.whenEvent(key, 'PatchFailed', { kind: 'Service' })).toContain(problem);
      }
      await world.settle(daemon);
      expect(await serviceNames(world, ns)).toEqual([]);
    });
  });

  describe('Services while the daemon is down', () => {
    test('are deleted on the host if they were deleted in the virtual cluster', async ({ expect }) => {
      await using world = await newWorld();
      const first = await world.startSync({ config: SERVICES });
      for (const key of ['default/kept', 'default/gone']) {
        await world.virtual.create('Service', plain(key));
        await world.createVirtual(key);
        await whenService(world, key);
      }
      await world.whenIdle(first);
      await first.stop();
      const kept = await world.host.get('Service', ...world.hostKey('default/kept'));
      await world.virtual.delete('Service', 'default', 'gone');
      await world.deleteVirtual('default/gone');
      const second = await world.startSync({ config: SERVICES });
      await whenNoService(world, 'default/gone');
      await world.settle(second);
      expect((await whenService(world, 'default/kept')).metadata.resourceVersion).toBe(
        kept.metadata.resourceVersion,
      );
    });

    test('recreated while the daemon is down get the status of the copy', async ({ expect }) => {
      await using world = await newWorld();
      const first = await world.startSync({ config: SERVICES });
      const key = 'default/renewed';
      const create = async (): Promise<void> => {
        await world.virtual.create('Service', plain(key, { spec: { type: 'LoadBalancer' } }));
        if ((await world.virtual.find('Endpoints', ...pair(key))) === undefined)
          await world.createVirtual(key);
      };
      await create();
      const before = await whenService(world, key);
      await world.host.mergeStatus('Service', world.hostKey(key), { loadBalancer: { ingress: INGRESS } });
      await whenIngress(world, key, 1);
      await first.stop();
      await world.virtual.delete('Service', ...pair(key));
      await create();
      await world.startSync({ config: SERVICES });
      expect(ingressOf(await whenIngress(world, key, 1))[0]).toMatchObject(INGRESS[0] ?? {});
      expect((await whenService(world, key)).metadata.uid).toBe(before.metadata.uid);
    });

    test('created again while a finalizer holds the copy get its ports there, and nothing of it', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const daemon = await world.startSync({ config: SERVICES });
      const key = 'default/balanced';
      const create = (port: number) =>
        world.virtual.create(
          'Service',
          plain(key, { spec: { type: 'LoadBalancer', ports: [{ name: 'http', port, protocol: 'TCP' }] } }),
        );
      await create(80);
      await world.createVirtual(key);
      await whenService(world, key);
      const hasPort = (one: KubeObject): boolean => portOf(specOf(one), 81) !== undefined;
      const finalizers = ['service.kubernetes.io/load-balancer-cleanup'];
      await world.host.merge('Service', world.hostKey(key), { metadata: { finalizers } });
      await world.host.mergeStatus('Service', world.hostKey(key), { loadBalancer: { ingress: INGRESS } });
      await whenIngress(world, key, 1);
      await world.settle(daemon);
      await world.virtual.delete('Service', ...pair(key));
      const held = await whenService(world, key, isHeld);
      await create(81);
      if ((await world.virtual.find('Endpoints', ...pair(key))) === undefined) await world.createVirtual(key);
      await world.host.merge('Service', world.hostKey(key), { metadata: { annotations: { late: '1' } } });
      await whenService(world, key, hasPort);
      await world.settle(daemon);
      const virtual = await world.virtual.get('Service', ...pair(key));
      expect(ingressOf(virtual)).toEqual([]);
      expect(virtual.metadata.annotations ?? {}).not.toHaveProperty('late');
      expect((await whenService(world, key)).metadata['finalizers']).toEqual(finalizers);
      await world.host.merge('Service', world.hostKey(key), { metadata: { finalizers: null } });
      const copy = await whenService(world, key, ({ metadata }) => metadata.uid !== held.metadata.uid);
      expect(hasPort(copy)).toBe(true);
    });

    test('with onHostDelete: deleteVirtual a recreation deletes no virtual Endpoints', async ({ expect }) => {
      await using world = await newWorld();
      const config = { ...SERVICES, endpointSyncer: { services: 'sync', onHostDelete: 'deleteVirtual' } };
      const daemon = await world.startSync({ config });
      const key = 'default/replaced';
      await world.virtual.create('Service', plain(key));
      await world.createVirtual(key);
      const first = await whenService(world, key);
      await world.whenCopied(key);
      await daemon.stop();
      await world.virtual.delete('Service', ...pair(key));
      await world.virtual.create('Service', plain(key, { spec: { clusterIP: 'None' } }));
      if ((await world.virtual.find('Endpoints', ...pair(key))) === undefined) await world.createVirtual(key);
      const second = await world.startSync({ config });
      await whenService(world, key, ({ metadata }) => metadata.uid !== first.metadata.uid);
      await world.whenCopied(key);
      await world.whenIdle(second);
      expect(ipsOf(await world.getVirtual(key))).toEqual(['10.1.0.1']);
    });
  });
}

function isHeld({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

interface ServiceOptions {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly labels?: StringMap;
  readonly annotations?: StringMap;
}

/** Without a selector, with a cluster IP, where the API server allocates one. */
export function plain(key: string, { spec, labels, annotations }: ServiceOptions = {}): KubeObject {
  const [namespace, name] = pair(key);
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name, ...(labels && { labels }), ...(annotations && { annotations }) },
    spec: {
      ports: [{ name: 'http', port: 80, targetPort: 8080, protocol: 'TCP' }],
      ...spec,
    } as unknown as JsonObject, // undefined members are left out of JSON
  };
}

export function whenService(
  world: World,
  key: string,
  holds: (copy: KubeObject) => boolean = () => true,
): Promise<KubeObject> {
  return world.host.when('Service', world.hostKey(key), holds);
}

/** The embedded cluster allocates nothing by itself. */
async function allocateNodePort(world: World, key: string, port: number): Promise<void> {
  if (world.clusters.kind !== 'embedded') return;
  const [first = {}] = portsOf(await world.host.get('Service', ...world.hostKey(key)));
  await world.host.merge('Service', world.hostKey(key), {
    spec: {
      clusterIP: '10.0.0.77',
      externalTrafficPolicy: 'Cluster',
      ports: [{ ...first, port, nodePort: 30_777 }],
    },
  });
}

async function whenNoService(world: World, key: string): Promise<void> {
  await world.host.whenGone('Service', world.hostKey(key));
}

function whenIngress(world: World, key: string, count: number): Promise<KubeObject> {
  return world.virtual.when('Service', pair(key), (one) => ingressOf(one).length === count);
}

async function serviceNames(world: World, namespace: string): Promise<string[]> {
  const selector = `?labelSelector=vcluster.loft.sh/namespace%3D${namespace}`;
  const found = await world.host.list('Service', world.hostNamespace, selector);
  return found.map(({ metadata }) => metadata.name);
}

function specOf(service: KubeObject): JsonObject {
  const spec = service['spec'];
  return isJsonObject(spec) ? spec : {};
}

function portsOf(service: KubeObject): JsonObject[] {
  const { ports } = specOf(service);
  return Array.isArray(ports) ? ports.filter(isJsonObject) : [];
}

function portOf({ ports }: JsonObject, number: number): JsonObject | undefined {
  return (Array.isArray(ports) ? ports.filter(isJsonObject) : []).find(({ port }) => port === number);
}

function ingressOf(service: KubeObject): JsonObject[] {
  const status = service['status'];
  const balancer = isJsonObject(status) ? status['loadBalancer'] : undefined;
  const ingress = isJsonObject(balancer) ? balancer['ingress'] : undefined;
  return Array.isArray(ingress) ? ingress.filter(isJsonObject) : [];
}
