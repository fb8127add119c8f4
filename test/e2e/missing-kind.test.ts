/** A tenant deletes or breaks the CustomResourceDefinition of a kind that a patch references: everything else is synced, also after a restart. */

import { createServer, type AddressInfo } from 'node:net';

import { afterAll, beforeAll, expect, test } from 'vitest';
import { gadget, serveGadgets } from '../scenarios/gadgets.ts';
import { importedTo, named, NOTES, referencePatches } from '../scenarios/reference-objects.ts';
import { eventually } from '../support/eventually.ts';
import { World } from '../scenarios/world.ts';
import { valueAt, type JsonObject } from '../../src/base/json.ts';
import { startRealClusters, type RealClusters } from './clusters.ts';
import { ownClusters } from './real-world.ts';

const TIMEOUT_MS = 300_000;
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
    const [warning] = await eventually(
      () => daemon.log.filter(({ kind }) => kind === 'Gadget'),
      ({ length }) => length > 0,
    );
    expect(warning).toMatchObject({
      level: 'warn',
      patch: 'sync.toHost.endpoints.patches[2]',
      apiVersion: 'example.com/v1',
    });
    await world.virtual.create('Endpoints', named('default/other', { gadget: 'h' }));
    await world.whenCopy('default/other');
    expect(await world.whenEvent('default/other', 'ReferenceNotFound')).toContain('its kind is not served');
    expect((await daemon.get('/readyz')).status).toBe(200);
    await daemon.whenMetric('endpoint_syncer_referenced_kinds_missing', (kinds) => kinds === 1);

    await serveGadgets(world);
    await world.virtual.create('Gadget', gadget('default/h', { size: 2 }));
    const imported = await eventually(
      () => importedTo(world, 'Gadget', 'default/h').catch(() => undefined),
      (found) => found !== undefined,
      { timeoutMs: TIMEOUT_MS, what: 'the import' },
    );
    await world.whenCopy(
      'default/other',
      ({ metadata }) => metadata.annotations?.[NOTES.gadget] === imported?.metadata.name,
    );
    await daemon.whenMetric('endpoint_syncer_referenced_kinds_missing', (kinds) => kinds === 0);
    await world.settle(daemon);
    await daemon.stop();
  },
  TIMEOUT_MS,
);

test(
  'a daemon that starts while the conversion webhook of the kind hangs syncs the rest, and imports once it is gone',
  async () => {
    await serveGadgets(world);
    await changeDefinition({ conversion: { strategy: 'None', webhook: null }, storage: 'v2' });
    // Until the API server takes the change over, it stores v1, which is read without a conversion.
    await eventually(
      () => world.virtual.request('GET', '/apis/example.com/v2/gadgets'),
      ({ status }) => status === 200,
      { what: 'the new version' },
    );
    await world.virtual.create('Gadget', gadget('default/stored', { size: 1 }));
    // Accepts connections, and never says a word.
    let calls = 0;
    const hanging = createServer((socket) => {
      calls += 1;
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${(hanging.address() as AddressInfo).port}/convert`;
    const webhook = { clientConfig: { url }, conversionReviewVersions: ['v1'] };
    await changeDefinition({ conversion: { strategy: 'Webhook', webhook }, storage: 'v2' });
    const callsOfList = async (): Promise<number> => {
      const listed = world.virtual.request('GET', '/apis/example.com/v1/gadgets').catch(() => undefined);
      // A list that is not converted responds; one that is converted does not.
      await Promise.race([listed, new Promise((resolve) => setTimeout(resolve, 1000))]);
      return calls;
    };
    await eventually(callsOfList, (count) => count > 0, { what: 'a conversion that hangs' });

    const daemon = await world.startDaemon({ config: referencePatches({}, true) });
    await world.virtual.create('Endpoints', named('default/third', { gadget: 'stored' }));
    await world.whenCopy('default/third');
    expect(await world.whenEvent('default/third', 'ReferenceNotFound')).toContain('cannot be listed');
    expect((await daemon.get('/readyz')).status).toBe(200);
    await world.settle(daemon);

    await changeDefinition({ conversion: { strategy: 'None', webhook: null }, storage: 'v2' });
    hanging.close();
    await eventually(
      () => importedTo(world, 'Gadget', 'default/stored').catch(() => undefined),
      (found) => found !== undefined,
      { timeoutMs: TIMEOUT_MS, what: 'the import' },
    );
  },
  TIMEOUT_MS,
);

/** The virtual cluster serves v1 and v2 of the kind, and stores one of them. */
async function changeDefinition(change: {
  readonly conversion: JsonObject;
  readonly storage: 'v1' | 'v2';
}): Promise<void> {
  const { body } = await world.virtual.request('GET', CRD);
  const [first] = valueAt(body, ['spec', 'versions']) as JsonObject[]; // of a CustomResourceDefinition
  const versions = ['v1', 'v2'].map((name) => ({ ...first, name, storage: name === change.storage }));
  const { status, body: answer } = await world.virtual.request(
    'PATCH',
    CRD,
    { spec: { versions, conversion: change.conversion } },
    'application/merge-patch+json',
  );
  expect({ status, answer }).toMatchObject({ status: 200 });
}
