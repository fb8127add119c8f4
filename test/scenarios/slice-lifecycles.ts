/** EndpointSlices over time: references in them, operators that keep writing them, Services that come late, and settings that change. */

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import type { KubeObject } from '../../src/kube/object.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { slice, whenNoSlice, whenSlice, whenVirtualSlice } from './endpoint-slices.ts';
import { service } from './objects.ts';
import { secret, short } from './reference-objects.ts';
import { plain, whenService } from './services.ts';
import { sharedWorld } from './shared-world.ts';
import { replaceFile } from '../support/replace-file.ts';
import { worldText } from '../support/world-file.ts';
import { pair, type NewWorld } from './world.ts';

const SERVICE_NAME = 'kubernetes.io/service-name';
const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const OPERATOR = 'mariadb-operator.mariadb.com';
const MIRRORING = 'endpointslicemirroring-controller.k8s.io';

const BOTH: JsonObject = { sync: { toHost: { endpointSlices: { enabled: true } } } };
const REFERENCES: JsonObject = {
  sync: {
    toHost: {
      endpointSlices: {
        enabled: true,
        patches: [
          {
            path: 'endpoints[*].targetRef',
            reference: {
              apiVersion: 'v1',
              kind: 'Secret',
              namePath: 'name',
              namespacePath: 'namespace',
              kindPath: 'kind',
            },
          },
        ],
      },
    },
  },
};

export function sliceLifecycleScenarios(newWorld: NewWorld): void {
  describe('EndpointSlices whose targetRef names an imported object', () => {
    const shared = sharedWorld(newWorld, () => ({ config: REFERENCES }));

    test('reference the copy on the host, also after a change, and the import is deleted with them', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const key = `${ns}/referring`;
      const targetRef = (name: string): JsonObject => ({ kind: 'Secret', namespace: ns, name });
      const ofSlice = (name: string) => [{ addresses: ['10.1.0.1'], targetRef: targetRef(name) }];
      for (const name of ['tls', 'next']) await world.virtual.create('Secret', secret(`${ns}/${name}`));
      await world.virtual.create('EndpointSlice', slice(key, 'svc', { endpoints: ofSlice('tls') }));
      const [hostNamespace, hostName] = short(world, `${ns}/tls`);
      const copy = await whenSlice(world, key, (one) => JSON.stringify(one).includes(hostName));
      expect(copy['endpoints']).toMatchObject([
        { targetRef: { kind: 'Secret', namespace: hostNamespace, name: hostName } },
      ]);
      await world.host.when('Secret', [hostNamespace, hostName]);
      await world.virtual.merge('EndpointSlice', pair(key), { endpoints: ofSlice('next') });
      await whenSlice(world, key, (one) => JSON.stringify(one).includes(short(world, `${ns}/next`)[1]));
      await world.host.whenGone('Secret', [hostNamespace, hostName]);
      await world.virtual.delete('EndpointSlice', ...pair(key));
      await world.host.whenGone('Secret', short(world, `${ns}/next`));
    });
  });

  describe('EndpointSlices of an operator', () => {
    const shared = sharedWorld(newWorld, () => ({ config: BOTH }));

    test('keep a Service name that another syncer has translated already', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const translated = world.hostName(`${ns}/db`);
      await world.virtual.create('EndpointSlice', slice(`${ns}/db-0`, translated));
      const copy = await whenSlice(world, `${ns}/db-0`);
      expect(copy.metadata.labels?.[SERVICE_NAME]).toBe(translated);
    });

    test('keep the translated Service name after every update of either side', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const key = `${ns}/db-1`;
      const byOperator = (ip: string): KubeObject =>
        slice(key, 'db', { labels: { [MANAGED_BY]: OPERATOR }, endpoints: [{ addresses: [ip] }] });
      await world.virtual.create('EndpointSlice', byOperator('10.1.0.1'));
      const { metadata } = await whenSlice(world, key);
      for (let round = 2; round <= 5; round++) {
        // An operator writes the whole object and drops all other fields.
        await world.virtual.update('EndpointSlice', byOperator(`10.1.0.${round}`));
        await whenSlice(world, key, (copy) => JSON.stringify(copy['endpoints']).includes(`10.1.0.${round}`));
        await world.host.merge('EndpointSlice', world.hostKey(key), {
          // Another label in each round: one that both sides keep rewriting is contested.
          metadata: { labels: { [SERVICE_NAME]: 'db', [`round-${round}`]: 'x' } },
        });
        await whenVirtualSlice(world, key, (one) => one.metadata.labels?.[`round-${round}`] === 'x');
        await whenSlice(world, key, (one) => one.metadata.labels?.[SERVICE_NAME] !== 'db');
      }
      await world.settle(daemon);
      const last = await whenSlice(world, key);
      expect([last.metadata.labels?.[SERVICE_NAME], last.metadata.labels?.[MANAGED_BY]]).toEqual([
        world.hostName(`${ns}/db`),
        OPERATOR,
      ]);
      // kube-proxy would keep its addresses in the Service that the label named meanwhile.
      expect(last.metadata.uid).not.toBe(metadata.uid);
      const virtual = await whenVirtualSlice(world, key);
      expect([virtual.metadata.labels?.[SERVICE_NAME], virtual.metadata.labels?.[MANAGED_BY]]).toEqual([
        'db',
        OPERATOR,
      ]);
    });
  });

  describe('an EndpointSlice that moves to another Service', () => {
    const shared = sharedWorld(newWorld, () => ({ config: BOTH }));

    test('is created again, as kube-proxy would keep its addresses in the first one', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const moving = parse(worldText('newground/12-moves.yaml')) as KubeObject;
      const { name } = moving.metadata;
      await world.virtual.create('EndpointSlice', {
        ...moving,
        metadata: { ...moving.metadata, namespace: ns },
      });
      const before = await whenSlice(world, `${ns}/${name}`);
      await world.virtual.merge('EndpointSlice', [ns, name], {
        metadata: { labels: { [SERVICE_NAME]: 'b' } },
      });
      const target = world.hostName(`${ns}/b`);
      const after = await whenSlice(
        world,
        `${ns}/${name}`,
        (one) => one.metadata.labels?.[SERVICE_NAME] === target,
      );
      expect(after.metadata.uid).not.toBe(before.metadata.uid);
      await world.settle(daemon);
      expect((await whenSlice(world, `${ns}/${name}`)).metadata.uid).toBe(after.metadata.uid);
    });
  });

  describe('EndpointSlices and Endpoints before their Service', () => {
    const shared = sharedWorld(newWorld, () => ({
      config: { ...BOTH, endpointSyncer: { services: 'sync' } },
    }));

    test('are copied immediately and not recreated when the Service is created, which is then copied too', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const key = `${ns}/early`;
      await world.virtual.create('EndpointSlice', slice(`${key}-1`, 'early'));
      await world.createVirtual(key);
      const before = [await whenSlice(world, `${key}-1`), await world.whenCopied(key)];
      expect(await world.host.find('Service', ...world.hostKey(key))).toBeUndefined();
      await world.virtual.create('Service', plain(key));
      await whenService(world, key);
      await world.settle(daemon);
      const after = [await whenSlice(world, `${key}-1`), await world.whenCopied(key)];
      expect(after.map(({ metadata }) => metadata.uid)).toEqual(before.map(({ metadata }) => metadata.uid));
    });

    test('are deleted when that Service has a selector', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const key = `${ns}/late`;
      await world.virtual.create('EndpointSlice', slice(`${key}-1`, 'late'));
      await world.createVirtual(key);
      await whenSlice(world, `${key}-1`);
      await world.whenCopied(key);
      await world.virtual.create('Service', service(key, { app: 'x' }));
      await whenNoSlice(world, `${key}-1`);
      await world.whenNoCopy(key);
      expect(await world.virtual.find('EndpointSlice', ns, 'late-1')).toBeDefined();
    });
  });

  describe('mirrored and custom slices of one Service, with and without the sync of Endpoints', () => {
    test('the mirrored slice is synced only if Endpoints are not synced, the custom one always', async () => {
      await using world = await newWorld();
      const daemon = await world.startSync({ config: BOTH });
      const [custom, mirrored] = ['default/db-custom', 'default/db-mirrored'];
      await world.createVirtual('default/db');
      await world.virtual.create(
        'EndpointSlice',
        slice(mirrored, 'db', { labels: { [MANAGED_BY]: MIRRORING } }),
      );
      const six = { addressType: 'IPv6', endpoints: [{ addresses: ['fd00::1'] }] };
      await world.virtual.create('EndpointSlice', slice(custom, 'db', six));
      const copy = await whenSlice(world, custom);
      await world.whenCopied('default/db');
      expect(await world.host.find('EndpointSlice', ...world.hostKey(mirrored))).toBeUndefined();

      switchEndpoints(daemon.configPath, false);
      const taken = await whenSlice(world, mirrored);
      expect(taken.metadata.labels).toMatchObject({
        [MANAGED_BY]: 'endpoint-syncer',
        [SERVICE_NAME]: world.hostName('default/db'),
      });
      // Copies of a kind that is switched off stay until `cleanup`.
      expect(await world.findCopy('default/db')).toBeDefined();

      switchEndpoints(daemon.configPath, true);
      await whenNoSlice(world, mirrored);
      await world.whenCopied('default/db');
      await world.settle(daemon);
      const still = await whenSlice(world, custom);
      expect([still.metadata.uid, still.metadata.resourceVersion]).toEqual([
        copy.metadata.uid,
        copy.metadata.resourceVersion,
      ]);
    });
  });
}

/** The daemon reloads its file when that changes. */
function switchEndpoints(configPath: string, enabled: boolean): void {
  const config = parse(readFileSync(configPath, 'utf8')) as { sync: { toHost: JsonObject } }; // written by this test
  config.sync.toHost['endpoints'] = { enabled };
  replaceFile(configPath, stringify(config));
}
