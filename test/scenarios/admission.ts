/** A host whose admission changes the copies: a mutating webhook or policy. */

import { describe, test } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject, StringMap } from '../../src/kube/object.ts';
import { capturedRun } from '../cli/captured-run.ts';
import { worldText } from '../support/world-file.ts';
import type { ApiProxy } from './api-proxy.ts';
import { subset, subsetsOf, type Subset } from './objects.ts';
import { named, referencePatches, secret } from './reference-objects.ts';
import type { NewWorld } from './world.ts';

const BY_ADMISSION = "was changed by the host's admission: ";

export function admissionScenarios(newWorld: NewWorld): void {
  describe("a host's admission", () => {
    test('that changes what only the virtual side decides: the copy is contested, and right again once that ends', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const host = await world.proxy('host');
      const daemon = await world.startDaemon({ kubeconfigs: { host: host.path } });
      admit(host, (copy) => ({ ...copy, subsets: withPort(copy, 9999) as never }));
      const key = 'default/ported';
      await world.createVirtual(key);
      const note = await world.whenEvent(key, 'Contested');
      expect(note).toContain(`${BY_ADMISSION}subsets[0].ports[0].port.`);
      // A change of the user does not wait.
      await world.mergeVirtual('default/ported', { subsets: [subset('10.1.0.2')] });
      await world.whenCopy(key, (copy) => subsetsOf(copy)[0]?.addresses?.[0]?.ip === '10.1.0.2');
      const config = world.writeConfig(world.configuration({}, 0));
      const { out } = await capturedRun(['status', '--config', config, '-o', 'json']);
      expect(JSON.parse(out)).toMatchObject([{ state: 'contested', reason: 'Contested' }]);
      const explained = await capturedRun(['explain', '--config', config, key]);
      expect(explained.out).toContain(BY_ADMISSION);
      expect(writesOf(host, 'ported')).toBeLessThan(8);
      host.behaviour = {};
      await world.whenCopied(key);
      await world.settle(daemon);
      expect(await world.eventsOn(key, 'Contested')).toHaveLength(1);
    });

    test('that adds an annotation and a label: both reach the virtual side at once', async ({ expect }) => {
      await using world = await newWorld();
      const host = await world.proxy('host');
      const daemon = await world.startDaemon({ kubeconfigs: { host: host.path } });
      admit(host, ({ metadata, ...copy }) => ({
        ...copy,
        metadata: {
          ...metadata,
          annotations: { ...metadata.annotations, 'example.com/zone': 'a' },
          labels: { ...metadata.labels, tier: 'gold' },
        },
      }));
      const key = 'default/added';
      await world.createVirtual(key);
      const virtual = await world.whenVirtual(key, ({ metadata }) => metadata.labels?.['tier'] === 'gold');
      expect(virtual.metadata.annotations).toEqual({ 'example.com/zone': 'a' });
      await world.settle(daemon);
      await world.whenCopied(key, { anyOrigin: true });
      expect(await world.eventsOn(key, 'Contested')).toEqual([]);
      expect(writesOf(host, 'added')).toBeLessThan(4);
    });

    test('that forces annotations and labels, as a policy of a platform does: what flows one way is contested, the rest reaches the virtual side', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const host = await world.proxy('host');
      const { sync } = parse(worldText('live/map.yaml')) as { sync: JsonObject };
      const daemon = await world.startDaemon({ config: { sync }, kubeconfigs: { host: host.path } });
      const [, forced = ''] =
        /Object\.metadata(\{annotations.*\}\})\}/u.exec(worldText('live/policy.yaml')) ?? [];
      const { annotations, labels } = parse(forced) as Record<'annotations' | 'labels', StringMap>;
      admit(host, ({ metadata, ...copy }) => ({
        ...copy,
        metadata: {
          ...metadata,
          annotations: { ...metadata.annotations, ...annotations },
          labels: { ...metadata.labels, ...labels },
        },
      }));
      const object = parse(worldText('live/m.yaml')) as KubeObject;
      const key = 'default/map1';
      await world.virtual.create('Endpoints', {
        ...object,
        metadata: { ...object.metadata, namespace: 'default' },
      });
      const note = await world.whenEvent(key, 'Contested');
      expect(note).toContain(`${BY_ADMISSION}metadata.annotations["example.com/fixed"].`);
      const { metadata } = await world.whenVirtual(
        key,
        (one) => one.metadata.labels?.['team'] === 'platform',
      );
      expect(metadata.annotations).toEqual({ ...annotations, 'example.com/fixed': 'f' });
      await world.settle(daemon);
      expect(writesOf(host, 'map1')).toBeLessThan(8);
    });

    test('that stamps each write: what flows back is written less and less often', async ({ expect }) => {
      await using world = await newWorld();
      const host = await world.proxy('host');
      await world.startDaemon({ kubeconfigs: { host: host.path } });
      let stamps = 0;
      admit(host, ({ metadata, ...copy }) => ({
        ...copy,
        metadata: {
          ...metadata,
          annotations: { ...metadata.annotations, 'example.com/stamp': `${stamps++}` },
        },
      }));
      const key = 'default/stamped';
      await world.createVirtual(key);
      const note = await world.whenEvent(key, 'Contested');
      expect(note).toContain(`${BY_ADMISSION}metadata.annotations["example.com/stamp"].`);
      expect(writesOf(host, 'stamped')).toBeLessThan(10);
    });

    test('that removes the record of the sync: it is named, and the copy stays', async ({ expect }) => {
      await using world = await newWorld();
      const host = await world.proxy('host');
      await world.startDaemon({ kubeconfigs: { host: host.path } });
      admit(host, ({ metadata: { annotations = {}, ...metadata }, ...copy }) => {
        const { 'endpoint-syncer/last-synced': _record, ...rest } = annotations;
        return { ...copy, metadata: { ...metadata, annotations: rest } };
      });
      const key = 'default/unrecorded';
      await world.createVirtual(key);
      const note = await world.whenEvent(key, 'Contested');
      expect(note).toContain(`${BY_ADMISSION}metadata.annotations["endpoint-syncer/last-synced"].`);
      expect(subsetsOf(await world.getCopy(key))).toEqual([subset('10.1.0.1')]);
    });

    test('that changes a referenced object: the object that references it says so', async ({ expect }) => {
      await using world = await newWorld();
      const host = await world.proxy('host');
      const config = { sync: { toHost: { secrets: { enabled: true } } }, ...referencePatches({}, true) };
      const daemon = await world.startDaemon({ config, kubeconfigs: { host: host.path } });
      admit(host, (copy) => ({ ...copy, data: { k: 'YWRtaXR0ZWQ=' } }), '/secrets');
      await world.virtual.create('Secret', secret('default/tls', { data: { k: 'djE=' } }));
      await world.virtual.create('Endpoints', named('default/web', { secret: 'tls' }));
      expect(await world.whenEvent('default/web', 'Contested')).toContain(`${BY_ADMISSION}data.k.`);
      await world.settle(daemon);
      expect(host.writes().filter((line) => line.includes('/secrets'))).toHaveLength(1);
    });
  });
}

/** The host stores what `change` makes of the copies that are written. */
function admit(host: ApiProxy, change: (copy: KubeObject) => KubeObject, plural = '/endpoints'): void {
  host.behaviour = {
    decide: ({ isWrite, method, path, body }) =>
      isWrite && method !== 'DELETE' && path.includes(plural)
        ? {
            kind: 'change',
            body: Buffer.from(JSON.stringify(change(JSON.parse(body.toString()) as KubeObject))),
          }
        : { kind: 'pass' },
  };
}

function withPort(copy: KubeObject, port: number): Subset[] {
  return subsetsOf(copy).map((one) => ({
    ...one,
    ports: (one.ports ?? []).map((known) => ({ ...known, port })),
  }));
}

function writesOf(host: ApiProxy, name: string): number {
  return host.requests.filter(({ isWrite, body }) => isWrite && body.includes(`"object-name":"${name}"`))
    .length;
}
