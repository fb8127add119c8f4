/** A tenant deletes the CustomResourceDefinition of a kind that a patch references: everything else is synced, also after a restart. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { gadget, serveGadgets } from '../scenarios/gadgets.ts';
import { importedTo, named, NOTES, referencePatches } from '../scenarios/reference-objects.ts';
import { eventually } from '../support/eventually.ts';
import { World } from '../scenarios/world.ts';
import { startRealClusters, type RealClusters } from './clusters.ts';
import { ownClusters } from './real-world.ts';

const TIMEOUT_MS = 180_000;
const CRD = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com';

let clusters: RealClusters;
let world: World;

beforeAll(async () => {
  clusters = await startRealClusters({ controllers: false });
  world = await World.open(ownClusters(clusters));
}, TIMEOUT_MS);

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await clusters[Symbol.asyncDispose]();
});

test(
  'a daemon that starts without the kind syncs the rest, and imports as soon as the kind is served again',
  async () => {
    const config = referencePatches({}, true);
    await serveGadgets(world);
    const first = await world.startDaemon({ config });
    await world.virtual.create('Gadget', gadget('default/g', { size: 1 }));
    await world.virtual.create('Endpoints', named('default/web', { gadget: 'g' }));
    await importedTo(world, 'Gadget', 'default/g');
    await first.stop();
    for (const cluster of [world.virtual, world.host]) await cluster.request('DELETE', CRD);
    for (const cluster of [world.virtual, world.host])
      await eventually(
        () => cluster.request('GET', '/apis/example.com/v1/gadgets'),
        ({ status }) => status === 404,
      );

    const daemon = await world.startDaemon({ config });
    const warning = daemon.log.find(({ kind }) => kind === 'Gadget');
    expect(warning).toMatchObject({
      level: 'warn',
      patch: 'sync.toHost.endpoints.patches[2]',
      apiVersion: 'example.com/v1',
    });
    await world.virtual.create('Endpoints', named('default/other', { gadget: 'h' }));
    await world.whenCopy('default/other', () => true);
    expect(await world.whenEvent('default/other', 'ReferenceNotFound')).toContain('its kind is not served');
    expect((await daemon.get('/readyz')).status).toBe(200);
    expect(await daemon.metric('endpoint_syncer_referenced_kinds_missing')).toBe(1);

    await serveGadgets(world);
    await world.virtual.create('Gadget', gadget('default/h', { size: 2 }));
    const imported = await eventually(
      () => importedTo(world, 'Gadget', 'default/h').catch(() => undefined),
      (found) => found !== undefined,
      { timeoutMs: TIMEOUT_MS, what: 'the import' },
    );
    expect((await world.getCopy('default/other')).metadata.annotations?.[NOTES.gadget]).toBe(
      imported?.metadata.name,
    );
    expect(await daemon.metric('endpoint_syncer_referenced_kinds_missing')).toBe(0);
    await world.settle(daemon);
  },
  TIMEOUT_MS,
);
