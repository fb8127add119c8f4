/** References under faults: in the end no import is missing, and no unreferenced import remains. */

import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { MARKER } from './expected-copy.ts';
import { dieAfterWrites } from './faults.ts';
import { leastRights } from './operation.ts';
import {
  configMap,
  importedTo,
  KINDS_BY_DATA,
  named,
  NOTES,
  referencePatches,
  secret,
  short,
} from './reference-objects.ts';
import { pair, type NewWorld, type Rule, type World } from './world.ts';
import { seededRandom } from '../support/random.ts';

const PATCHES = referencePatches();

export function referenceFaultScenarios(newWorld: NewWorld): void {
  describe('references under faults', () => {
    test('the daemon that dies after each of its writes leaves no import behind and none out', async ({
      expect,
    }) => {
      await using world = await newWorld();
      await prepareUnfinishedWork(world);
      const [host, virtual] = [await world.proxy('host'), await world.proxy('virtual')];
      const writes = await dieAfterWrites(world, host, virtual, PATCHES);
      expect(writes).toBeGreaterThan(8);
      expect(writes).toBeLessThan(40);
      const daemon = await world.startDaemon({ config: PATCHES });
      await world.settle(daemon);
      await expect
        .poll(() => importNames(world, 'host'))
        .toEqual(
          ['new', 'kept', 'changed', 'recreated']
            .map((name) => short(world, `default/${name}`)[1])
            .toSorted(),
        );
      await expect.poll(() => importNames(world, 'virtual')).toEqual(['h-kept', 'h-new']);
      const changed = await world.host.get('Secret', ...short(world, 'default/changed'));
      expect(changed['data']).toEqual({ k: 'bmV3' });
      const recreated = await world.host.get('Secret', ...short(world, 'default/recreated'));
      expect(recreated).toMatchObject({ immutable: true, data: { k: 'bmV3' } });
    });

    test('Endpoints that cannot be translated keep the imports of their copy', async ({ expect }) => {
      await using world = await newWorld();
      const first = await world.startDaemon({ config: PATCHES });
      await world.virtual.create('Secret', secret('default/s'));
      await world.virtual.create('Endpoints', named('default/web', { secret: 's' }));
      await importedTo(world, 'Secret', 'default/s');
      await world.whenCopy('default/web');
      await first.terminate();
      const failing = {
        path: 'subsets[*].ports[*].port',
        expression: 'value.nothing.here',
      };
      const patches = [...patchesOf(PATCHES), failing];
      const config = { sync: { toHost: { endpoints: { enabled: true, patches } } } };
      const second = await world.startDaemon({ config });
      await world.whenEvent('default/web', 'PatchFailed');
      await world.whenIdle(second);
      expect(await world.host.find('Secret', ...short(world, 'default/s'))).toBeDefined();
      await world.deleteVirtual('default/web');
      await world.host.whenGone('Secret', short(world, 'default/s'));
    });

    test('a kind that only data names and that may not be watched does not block other objects', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const least = leastRights(world);
      const secrets = { apiGroups: [''], resources: ['secrets'] };
      const verbs = ['get', 'list', 'watch', 'create', 'update', 'delete'];
      const host: Rule[] = [...least.host, { ...secrets, verbs, namespace: world.hostNamespace }];
      const virtual: Rule[] = [...least.virtual, { ...secrets, verbs, namespace: '' }];
      await world.startDaemon({
        config: KINDS_BY_DATA,
        kubeconfigs: {
          host: world.file('lazy-host.kubeconfig', await world.clusters.userKubeconfig('host', host)),
          virtual: world.file(
            'lazy-virtual.kubeconfig',
            await world.clusters.userKubeconfig('virtual', virtual),
          ),
        },
      });
      await world.virtual.create('ConfigMap', configMap('default/cfg', { k: '1' }));
      const targetRef = { kind: 'ConfigMap', name: 'cfg', namespace: 'default' };
      const subsets = [{ addresses: [{ ip: '10.1.0.1', targetRef }], ports: [{ port: 80 }] }];
      await world.createVirtual('default/web', { subsets });
      await world.createVirtual('default/other');
      await world.whenCopied('default/other');
      await world.whenCopy('default/web');
      expect(await world.whenEvent('default/web', 'ReferenceNotFound')).toMatch(/configmaps|forbidden/);
    });

    test('a copy that another client keeps overwriting is no longer corrected, and an Event reports it', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const daemon = await world.startDaemon({ config: PATCHES });
      await world.virtual.create('Secret', secret('default/s'));
      await world.virtual.create('Endpoints', named('default/web', { secret: 's' }));
      await importedTo(world, 'Secret', 'default/s');
      for (let round = 0; round < 12; round++) {
        if ((await world.eventsOn('default/web', 'Contested')).length > 0) break;
        const data = { k: Buffer.from(String(round)).toString('base64') };
        const overwritten = await world.host.merge('Secret', short(world, 'default/s'), { data });
        // Each is corrected before the next one, unless that is over.
        await eventually(
          async () =>
            [
              await world.host.get('Secret', ...short(world, 'default/s')),
              await world.eventsOn('default/web', 'Contested'),
            ] as const,
          ([copy, events]) =>
            copy.metadata.resourceVersion !== overwritten.metadata.resourceVersion || events.length > 0,
          { what: 'the correction of the copy' },
        );
        await world.settle(daemon);
      }
      expect(await world.whenEvent('default/web', 'Contested')).toContain('default/s');
      const [logged] = daemon.log.filter(({ outcome }) => outcome === 'contested');
      expect(logged?.['note']).toContain('default/s');
    });

    test('a write whose response is lost happens exactly once', async ({ expect }) => {
      await using world = await newWorld();
      const host = await world.proxy('host');
      await world.startDaemon({ config: PATCHES, kubeconfigs: { host: host.path } });
      const log = await world.log('host', 'Secret');
      let lost = 0;
      host.behaviour = {
        decide: ({ isWrite, path }) =>
          isWrite && path.includes('/secrets') && lost++ === 0 ? { kind: 'lose-answer' } : { kind: 'pass' },
      };
      await world.virtual.create('Secret', secret('default/s'));
      await world.virtual.create('Endpoints', named('default/web', { secret: 's' }));
      await importedTo(world, 'Secret', 'default/s');
      await world.deleteVirtual('default/web');
      await world.host.whenGone('Secret', short(world, 'default/s'));
      await log.until(({ type }) => type === 'DELETED');
      expect(log.of(short(world, 'default/s')[1])).toEqual(['ADDED', 'DELETED']);
    });

    test('imports of a kind that only data names are found after a crash', async ({ expect }) => {
      await using world = await newWorld();
      const first = await world.startDaemon({ config: KINDS_BY_DATA });
      await world.virtual.create('ConfigMap', configMap('default/cfg', { k: '1' }));
      const targetRef = { kind: 'ConfigMap', name: 'cfg', namespace: 'default' };
      const subsets = [{ addresses: [{ ip: '10.1.0.1', targetRef }], ports: [{ port: 80 }] }];
      await world.createVirtual('default/web', { subsets });
      await importedTo(world, 'ConfigMap', 'default/cfg');
      await first.kill();
      await world.deleteVirtual('default/web');
      await world.deleteCopy('default/web');
      await world.startDaemon({ config: KINDS_BY_DATA });
      await world.host.whenGone('ConfigMap', short(world, 'default/cfg'));
      expect(await world.virtual.find('ConfigMap', 'default', 'cfg')).toBeDefined();
    });

    test('needs exactly the rights that are documented, and names those that are missing', async ({
      expect,
    }) => {
      await using world = await newWorld();
      world.expectErrors(/right is missing|cannot start/u);
      const least = leastRights(world);
      const write = ['create', 'update', 'delete'];
      const kinds = { apiGroups: [''], resources: ['secrets', 'configmaps'] };
      const rules = { ...kinds, verbs: ['get', 'list', 'watch', ...write] };
      const host: Rule[] = [...least.host, { ...rules, namespace: world.hostNamespace }];
      const virtual: Rule[] = [...least.virtual, { ...rules, namespace: '' }];
      const daemon = await world.startDaemon({
        config: PATCHES,
        kubeconfigs: {
          host: world.file('refs-host.kubeconfig', await world.clusters.userKubeconfig('host', host)),
          virtual: world.file(
            'refs-virtual.kubeconfig',
            await world.clusters.userKubeconfig('virtual', virtual),
          ),
        },
      });
      await world.virtual.create('Secret', secret('default/s'));
      await world.virtual.create('Endpoints', named('default/web', { secret: 's', config: 'cfg' }));
      await importedTo(world, 'Secret', 'default/s');
      await world.host.create('ConfigMap', configMap(`${world.hostNamespace}/cfg`, { k: '1' }));
      await world.virtual.when('ConfigMap', ['default', 'cfg']);
      await world.deleteVirtual('default/web');
      await world.virtual.whenGone('ConfigMap', ['default', 'cfg']);
      expect(daemon.stderr).not.toMatch(/forbidden/i);
      await daemon.terminate();
      const few = least.virtual;
      const kubeconfig = world.file('few.kubeconfig', await world.clusters.userKubeconfig('virtual', few));
      const refused = await world.spawnDaemon({ config: PATCHES, kubeconfigs: { virtual: kubeconfig } });
      expect((await refused.exited).code).toBe(1);
      expect(refused.stderr).toMatch(/list secrets in every namespace of the virtual cluster/);
    });

    test('at random on both sides, with a daemon that is killed now and then', async () => {
      const seed = Number(process.env['SCENARIO_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
      try {
        await randomRun(newWorld, seed);
      } catch (error) {
        throw new Error(`failed with SCENARIO_SEED=${seed}`, { cause: error });
      }
      expect(seed).toBeGreaterThanOrEqual(0);
    });
  });
}

/** One object for each kind of decision, waiting for a daemon. */
async function prepareUnfinishedWork(world: World): Promise<void> {
  const first = await world.startDaemon({ config: PATCHES });
  const fixed = (value: string) => secret('default/recreated', { immutable: true, data: { k: value } });
  await world.virtual.create('Secret', fixed('b2xk'));
  for (const name of ['kept', 'dropped', 'deleted', 'gone', 'changed'])
    await world.virtual.create('Secret', secret(`default/${name}`));
  for (const name of ['h-kept', 'h-dropped'])
    await world.host.create('Secret', secret(`${world.hostNamespace}/${name}`));
  const all = ['kept', 'dropped', 'deleted', 'gone', 'changed', 'recreated', 'h-kept', 'h-dropped'];
  for (const name of all) await world.virtual.create('Endpoints', named(`default/${name}`, { secret: name }));
  await eventually(
    async () => [...(await importNames(world, 'host')), ...(await importNames(world, 'virtual'))],
    (names) => names.length === all.length,
  );
  await first.terminate();
  await world.virtual.create('Secret', secret('default/new'));
  await world.host.create('Secret', secret(`${world.hostNamespace}/h-new`));
  for (const name of ['new', 'h-new'])
    await world.virtual.create('Endpoints', named(`default/${name}`, { secret: name }));
  for (const name of ['dropped', 'h-dropped'])
    await world.mergeVirtual(`default/${name}`, {
      metadata: { annotations: { [NOTES.secret]: null } },
    });
  await world.deleteVirtual('default/deleted');
  await world.virtual.delete('Secret', 'default', 'gone');
  await world.virtual.merge('Secret', ['default', 'changed'], { data: { k: 'bmV3' } });
  await world.virtual.delete('Secret', 'default', 'recreated');
  await world.virtual.create('Secret', fixed('bmV3'));
}

/** Names of all imports of this syncer in one cluster. */
async function importNames(world: World, side: 'host' | 'virtual'): Promise<string[]> {
  const namespace = side === 'host' ? world.hostNamespace : '';
  const found = await world[side].list('Secret', namespace, `?labelSelector=${MARKER}%3D${world.vcluster}`);
  return found.map(({ metadata }) => metadata.name).toSorted();
}

function patchesOf(config: typeof PATCHES): Record<string, never>[] {
  const { sync } = config as unknown as {
    sync: { toHost: { endpoints: { patches: Record<string, never>[] } } };
  }; // as created
  return sync.toHost.endpoints.patches;
}

// The random run.

const STEPS = 50;
const SECRETS = ['a', 'b', 'c'];
const ENDPOINTS = ['default/e-0', 'default/e-1', 'default/e-2', 'default/e-3'];

async function randomRun(newWorld: NewWorld, seed: number): Promise<void> {
  const random = seededRandom(seed);
  await using world = await newWorld();
  let daemon = await world.startDaemon({ config: PATCHES });
  for (let step = 0; step < STEPS; step++) {
    await randomStep(world, random);
    if (step % 17 !== 11) continue;
    await daemon.kill();
    daemon = await world.startDaemon({ config: PATCHES });
  }
  await world.settle(daemon);
  await eventually(
    () => stateOf(world),
    (wrong) => wrong.length === 0,
    { what: 'every name and every import as they should be' },
  );
}

async function randomStep(world: World, random: () => number): Promise<void> {
  const name = SECRETS[Math.floor(random() * SECRETS.length)] ?? '';
  const key = ENDPOINTS[Math.floor(random() * ENDPOINTS.length)] ?? '';
  const value = Buffer.from(String(random())).toString('base64');
  const side = random() < 0.5 ? 'virtual' : 'host';
  const namespace = side === 'virtual' ? 'default' : world.hostNamespace;
  const roll = random();
  try {
    if (roll < 0.35) await flipEndpoints(world, key, random() < 0.7 ? name : undefined);
    else if (roll < 0.6)
      await world[side].create('Secret', secret(`${namespace}/${name}`, { data: { k: value } }));
    else if (roll < 0.75) await world[side].merge('Secret', [namespace, name], { data: { k: value } });
    else await world[side].delete('Secret', namespace, name);
  } catch (error) {
    // Another step or the daemon has changed the object: the scenario expects such conflicts.
    if (!(error instanceof Error) || !/: (404|409) /.test(error.message)) throw error;
  }
}

async function flipEndpoints(world: World, key: string, name: string | undefined): Promise<void> {
  const there = await world.virtual.find('Endpoints', ...pair(key));
  if (there === undefined)
    await world.virtual.create('Endpoints', named(key, name === undefined ? {} : { secret: name }));
  else if (name === undefined) await world.deleteVirtual(key);
  else
    await world.mergeVirtual(key, {
      metadata: { annotations: { [NOTES.secret]: name } },
    });
}

/** The differences from the expected state, computed from the rules: references of the copies, and imports. */
async function stateOf(world: World): Promise<string[]> {
  const wrong: string[] = [];
  const expected = { host: new Set<string>(), virtual: new Set<string>() };
  for (const key of ENDPOINTS) {
    const virtual = await world.virtual.find('Endpoints', ...pair(key));
    const name = virtual?.metadata.annotations?.[NOTES.secret];
    if (virtual === undefined || name === undefined) continue;
    const own = await world.virtual.find('Secret', 'default', name);
    const isImport = own?.metadata.labels?.[MARKER] === world.vcluster;
    const source = await world.host.find('Secret', world.hostNamespace, name);
    const [, hostName] = short(world, `default/${name}`);
    const isVirtual = own !== undefined && !isImport;
    const wanted = isVirtual || source === undefined ? hostName : name;
    if (isVirtual) expected.host.add(hostName);
    else if (source !== undefined) expected.virtual.add(name);
    const copy = await world.findCopy(key);
    if (copy?.metadata.annotations?.[NOTES.secret] !== wanted) wrong.push(`${key} names ${wanted}`);
    const [from, to] = isVirtual
      ? [own, await world.host.find('Secret', world.hostNamespace, hostName)]
      : [source, own];
    if (from !== undefined && JSON.stringify(from['data']) !== JSON.stringify(to?.['data']))
      wrong.push(`data of ${name}`);
  }
  for (const side of ['host', 'virtual'] as const) {
    const actual = await importNames(world, side);
    if (JSON.stringify(actual) !== JSON.stringify([...expected[side]].toSorted()))
      wrong.push(`${side}: ${actual.join()}`);
  }
  return wrong;
}
