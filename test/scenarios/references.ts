/** References of Endpoints: the translated names, and the imports of the named objects in both directions. */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import { jsonEquals, parseJson, type JsonObject } from '../../src/base/json.ts';
import { hostNameShort } from '../../src/syncer/translate/names.ts';
import { eventually } from '../support/eventually.ts';
import { bookkeeping, LAST_SYNCED, MANAGED, MARKER } from './expected-copy.ts';
import { gadget, serveGadgets } from './gadgets.ts';
import { endpoints, service } from './objects.ts';
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
import { sharedWorld } from './shared-world.ts';
import { pair, type NewWorld, type World } from './world.ts';

const at = (name: string): string => `metadata.annotations["example.com/${name}"]`;
const IMPORTED = 'vcluster.loft.sh/object-imported';

/** The namespacePath that means the same as none. */
const OWN_NAMESPACE = {
  path: '',
  reference: {
    apiVersion: 'v1',
    kind: 'Secret',
    namePath: 'metadata.annotations.own',
    namespacePath: 'metadata.namespace',
  },
};

export function referenceScenarios(newWorld: NewWorld): void {
  test('a new leader that has not read an object yet keeps the import of the former one', async ({
    expect,
  }) => {
    await using world = await newWorld();
    const virtual = await world.proxy('virtual');
    const config = { ...referencePatches(), endpointSyncer: { leaderElection: { enabled: true } } };
    const leader = await world.startSync({ config });
    await world.createVirtual('default/first');
    await world.whenCopied('default/first');
    const next = await world.startSync({ config, kubeconfigs: { virtual: virtual.path } });
    const ready = (): Promise<{ readonly text: string }> => next.get('/readyz?verbose');
    await eventually(ready, ({ text }) => text.includes('standby'));
    const release = virtual.holdWatches('/secrets');
    await world.virtual.create('Secret', secret('default/tls'));
    await world.virtual.create('Endpoints', named('default/web', { secret: 'tls' }));
    const copy = await importedTo(world, 'Secret', 'default/tls');
    await world.settle(leader);
    await leader.stop();
    await eventually(ready, ({ text }) => text.includes('this replica leads'));
    await world.settle(next);
    release();
    await world.settle(next);
    const [namespace, name] = short(world, 'default/tls');
    expect((await world.host.find('Secret', namespace, name))?.metadata.uid).toBe(copy.metadata.uid);
  });

  describe('a referenced object of the virtual cluster', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, async (world) => {
      await serveGadgets(world);
      return { config: referencePatches({}, true) };
    });

    test('stays if the tenant made it from the YAML of an import, wherever it is', async () => {
      const { world, daemon, namespace } = shared();
      const [ns, other] = [await namespace(), await namespace()];
      await world.host.create('Secret', secret(`${world.hostNamespace}/shared`));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 'shared' }));
      const { metadata, ...imported } = await world.virtual.when('Secret', [ns, 'shared'], () => true);
      const { labels = {}, annotations = {} } = metadata;
      const places = [
        [ns, 'mine'],
        [other, 'shared'],
      ] as const;
      for (const [namespace, name] of places)
        await world.virtual.create('Secret', {
          ...imported,
          metadata: { name, namespace, labels, annotations },
        });
      await world.settle(daemon);
      await world.virtual.delete('Endpoints', ns, 'web');
      await world.virtual.whenGone('Secret', [ns, 'shared']);
      await world.settle(daemon);
      for (const place of places)
        expect(await world.virtual.find('Secret', place[0], place[1])).toBeDefined();
    });

    test('is imported into the host under the name in the copy, with bookkeeping', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const original = await world.virtual.create(
        'Secret',
        secret(`${ns}/tls`, { data: { k: 'djE=' } }, { a: '1' }),
      );
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 'tls' }));
      const copy = await importedTo(world, 'Secret', `${ns}/tls`);
      await world.whenCopy(`${ns}/web`, noteIs(copy.metadata.name));
      expect(copy.metadata.name).toBe(hostNameShort('tls', ns, world.vcluster));
      expect(copy).toMatchObject({ type: 'Opaque', data: { k: 'djE=' } });
      expect(copy.metadata.labels).toEqual({
        a: '1',
        [MARKER]: world.vcluster,
        'vcluster.loft.sh/namespace': ns,
      });
      const host = { namespace: world.hostNamespace, name: copy.metadata.name };
      expect(copy.metadata.annotations).toMatchObject(
        bookkeeping('Secret', { namespace: ns, name: 'tls', uid: original.metadata.uid ?? '' }, host),
      );
      expect(await world.whenEvent(`${ns}/web`, 'ReferenceImported')).toContain('into the host');
    });

    test('is kept in sync by events, and drift on the host is corrected', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      await world.virtual.create('ConfigMap', configMap(`${ns}/cfg`, { k: '1', gone: '1' }));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { config: 'cfg' }));
      await importedTo(world, 'ConfigMap', `${ns}/cfg`);
      await world.virtual.merge('ConfigMap', [ns, 'cfg'], { data: { k: '2', gone: null } });
      // What is in step is not looked at again without an event.
      await importedTo(world, 'ConfigMap', `${ns}/cfg`, (copy) => sameData(copy, { k: '2' }));
      await world.host.merge('ConfigMap', short(world, `${ns}/cfg`), { data: { k: 'drift', added: '1' } });
      await importedTo(world, 'ConfigMap', `${ns}/cfg`, (copy) => sameData(copy, { k: '2' }));
      await world.host.delete('ConfigMap', ...short(world, `${ns}/cfg`));
      const recreated = await importedTo(world, 'ConfigMap', `${ns}/cfg`);
      expect(recreated['data']).toEqual({ k: '2' });
    });

    test.each([
      ['Secret', 'the record', { annotations: { [LAST_SYNCED]: null } }],
      ['Secret', 'all annotations', { annotations: null }],
      ['Secret', 'the marker', { labels: { [MARKER]: null } }],
      ['Secret', 'all annotations and labels', { annotations: null, labels: null }],
      ['ConfigMap', 'all annotations and labels', { annotations: null, labels: null }],
    ] as const)(
      'keeps its %s on the host when a client removes %s there, and removes it with the last reference',
      async (kind, _what, metadata) => {
        const { world, daemon, namespace } = shared();
        const ns = await namespace();
        const isSecret = kind === 'Secret';
        const made = isSecret ? secret(`${ns}/tls`) : configMap(`${ns}/tls`, { k: 'dg==' });
        await world.virtual.create(kind, made);
        await world.virtual.create(
          'Endpoints',
          named(`${ns}/web`, { [isSecret ? 'secret' : 'config']: 'tls' }),
        );
        const before = await importedTo(world, kind, `${ns}/tls`);
        await world.settle(daemon);
        await world.host.merge(kind, short(world, `${ns}/tls`), { metadata });
        const isWhole = ({ metadata: { labels, annotations } }: KubeObject): boolean =>
          labels?.[MARKER] !== undefined && annotations?.[LAST_SYNCED] !== undefined;
        const repaired = await importedTo(world, kind, `${ns}/tls`, isWhole);
        expect(repaired.metadata.uid).toBe(before.metadata.uid);
        await world.virtual.merge(kind, [ns, 'tls'], { data: { k: 'dzI=' } });
        await importedTo(world, kind, `${ns}/tls`, (copy) => sameData(copy, { k: 'dzI=' }));
        await world.deleteVirtual(`${ns}/web`);
        await world.host.whenGone(kind, short(world, `${ns}/tls`));
      },
    );

    test('leaves its copy to another syncer that has taken it over', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      await world.virtual.create('Secret', secret(`${ns}/tls`));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 'tls' }));
      await importedTo(world, 'Secret', `${ns}/tls`);
      await world.settle(daemon);
      // As vCluster lists what it has copied from the virtual object.
      const annotations = { [MANAGED]: LAST_SYNCED };
      const copy = await world.host.merge('Secret', short(world, `${ns}/tls`), { metadata: { annotations } });
      await world.virtual.merge('Secret', [ns, 'tls'], { data: { k: 'dzI=' } });
      await world.settle(daemon);
      await world.deleteVirtual(`${ns}/web`);
      await world.whenNoCopy(`${ns}/web`);
      await world.settle(daemon);
      expect(await world.host.get('Secret', ...short(world, `${ns}/tls`))).toEqual(copy);
    });

    test('is kept while any object references it, and deleted with the last reference', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      await world.virtual.create('Secret', secret(`${ns}/shared`));
      for (const name of ['a', 'b', 'c'])
        await world.virtual.create('Endpoints', named(`${ns}/${name}`, { secret: 'shared' }));
      await importedTo(world, 'Secret', `${ns}/shared`);
      for (const name of ['a', 'b', 'c']) await world.whenCopy(`${ns}/${name}`);
      await world.deleteVirtual(`${ns}/a`);
      await world.mergeVirtual(`${ns}/b`, {
        metadata: { annotations: { [NOTES.secret]: null } },
      });
      await world.whenNoCopy(`${ns}/a`);
      await world.settle(shared().daemon);
      expect(await world.host.find('Secret', ...short(world, `${ns}/shared`))).toBeDefined();
      await world.mergeVirtual(`${ns}/c`, {
        metadata: { annotations: { [NOTES.secret]: '' } },
      });
      await world.host.whenGone('Secret', short(world, `${ns}/shared`));
      expect(await world.virtual.find('Secret', ns, 'shared')).toBeDefined();
    });

    test.each([
      ['older', ['c/older-x-b', 'b-x-c/older']],
      ['younger', ['b-x-c/younger', 'c/younger-x-b']],
    ] as const)('does not get the name of another one, %s or not', async (_how, [first, second]) => {
      const { world, daemon } = shared();
      for (const namespace of ['c', 'b-x-c']) await world.virtualNamespace(namespace);
      await world.virtual.create('Secret', secret(first, { data: { k: 'MQ==' } }));
      await world.virtual.create('Endpoints', named(first, { secret: pair(first)[1] }));
      const copy = await importedTo(world, 'Secret', first);
      await world.virtual.create('Secret', secret(second, { data: { k: 'Mg==' } }));
      const [namespace, name] = pair(second);
      const user = `${namespace}/user-of-${name}`;
      await world.virtual.create('Endpoints', named(user, { secret: name }));
      expect(await world.whenEvent(user, 'PatchFailed')).toContain(
        `is that of the copy of "${first}"; rename one of them`,
      );
      await world.settle(daemon);
      expect(await world.findCopy(user)).toBeUndefined();
      expect(await world.host.get('Secret', world.hostNamespace, copy.metadata.name)).toMatchObject({
        data: { k: 'MQ==' },
      });
    });

    test('is deleted and recreated together with the Endpoints', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      await world.virtual.create('Secret', secret(`${ns}/s`));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 's' }));
      const before = await importedTo(world, 'Secret', `${ns}/s`);
      await world.virtual.delete('Secret', ns, 's');
      await world.host.whenGone('Secret', short(world, `${ns}/s`));
      await world.whenEvent(`${ns}/web`, 'ReferenceNotFound');
      await world.virtual.create('Secret', secret(`${ns}/s`, { data: { n: 'Mg==' } }));
      const after = await importedTo(world, 'Secret', `${ns}/s`);
      expect(after.metadata.uid).not.toBe(before.metadata.uid);
      expect(after['data']).toEqual({ n: 'Mg==' });
    });

    test('may be of any type, and immutable: an immutable copy is recreated', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const tls = { type: 'kubernetes.io/tls', data: { 'tls.crt': 'YQ==', 'tls.key': 'Yg==' } };
      await world.virtual.create('Secret', secret(`${ns}/tls`, tls));
      await world.virtual.create('Secret', secret(`${ns}/fixed`, { immutable: true, data: { k: 'MQ==' } }));
      await world.virtual.create('Endpoints', named(`${ns}/a`, { secret: 'tls' }));
      await world.virtual.create('Endpoints', named(`${ns}/b`, { secret: 'fixed' }));
      expect(await importedTo(world, 'Secret', `${ns}/tls`)).toMatchObject(tls);
      const fixed = await importedTo(world, 'Secret', `${ns}/fixed`);
      expect(fixed).toMatchObject({ immutable: true, data: { k: 'MQ==' } });
      await world.virtual.delete('Secret', ns, 'fixed');
      await world.virtual.create('Secret', secret(`${ns}/fixed`, { immutable: true, data: { k: 'Mg==' } }));
      const next = await importedTo(world, 'Secret', `${ns}/fixed`, (copy) => sameData(copy, { k: 'Mg==' }));
      expect(next['immutable']).toBe(true);
    });

    test('that is immutable and recreated while the daemon is down is recreated on the host', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const first = await world.startSync({ config: referencePatches() });
      await world.virtual.create('ConfigMap', { ...configMap('default/fixed', { k: '1' }), immutable: true });
      await world.virtual.create('Endpoints', named('default/web', { config: 'fixed' }));
      await importedTo(world, 'ConfigMap', 'default/fixed');
      await first.stop();
      await world.virtual.delete('ConfigMap', 'default', 'fixed');
      await world.virtual.create('ConfigMap', { ...configMap('default/fixed', { k: '2' }), immutable: true });
      await world.startSync({ config: referencePatches() });
      const copy = await importedTo(world, 'ConfigMap', 'default/fixed', (found) =>
        sameData(found, { k: '2' }),
      );
      expect(copy['immutable']).toBe(true);
    });

    test('may be large', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const data = { big: 'x'.repeat(900_000) };
      await world.virtual.create('ConfigMap', configMap(`${ns}/large`, data));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { config: 'large' }));
      await importedTo(world, 'ConfigMap', `${ns}/large`, (copy) => sameData(copy, data));
      await world.virtual.merge('ConfigMap', [ns, 'large'], { data: { more: 'y'.repeat(50_000) } });
      const copy = await importedTo(world, 'ConfigMap', `${ns}/large`, (found) =>
        Object.hasOwn(found['data'] as object, 'more'),
      );
      expect(Object.keys(copy['data'] as object)).toEqual(['big', 'more']);
    });

    test('may be a custom resource; status and finalizers are not synced', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const spec = { size: 3, parts: [{ name: 'a' }] };
      await world.virtual.create('Gadget', gadget(`${ns}/g`, spec, ['example.com/hold']));
      const path = `/apis/example.com/v1/namespaces/${ns}/gadgets/g/status`;
      await world.virtual.request(
        'PATCH',
        path,
        { status: { phase: 'virtual' } },
        'application/merge-patch+json',
      );
      await world.virtual.create('Endpoints', named(`${ns}/web`, { gadget: 'g' }));
      const copy = await importedTo(world, 'Gadget', `${ns}/g`);
      expect(copy['spec']).toEqual(spec);
      expect(copy['status']).toBeUndefined();
      expect(copy.metadata['finalizers']).toBeUndefined();
      expect(copy.metadata.annotations?.['vcluster.loft.sh/object-kind']).toBe('example.com/v1, Kind=Gadget');
      const [hostNs, name] = short(world, `${ns}/g`);
      const hostPath = `/apis/example.com/v1/namespaces/${hostNs}/gadgets/${name}`;
      await world.host.request(
        'PATCH',
        `${hostPath}/status`,
        { status: { phase: 'host' } },
        'application/merge-patch+json',
      );
      await world.host.merge('Gadget', [hostNs, name], { metadata: { finalizers: ['example.com/foreign'] } });
      await world.virtual.merge('Gadget', [ns, 'g'], { spec: { size: 4 } });
      const next = await importedTo(
        world,
        'Gadget',
        `${ns}/g`,
        (found) => (found['spec'] as JsonObject)['size'] === 4,
      );
      expect(next['status']).toEqual({ phase: 'host' });
      expect(next.metadata['finalizers']).toEqual(['example.com/foreign']);
      await world.host.merge('Gadget', [hostNs, name], { metadata: { finalizers: null } });
      await world.deleteVirtual(`${ns}/web`);
      await world.host.whenGone('Gadget', [hostNs, name]);
      await world.virtual.merge('Gadget', [ns, 'g'], { metadata: { finalizers: null } });
    });

    test('keeps integers that no JavaScript number holds', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const text = '{"max":9223372036854775807,"min":-9223372036854775808,"list":[9007199254740993]}';
      await world.virtual.create('Gadget', gadget(`${ns}/big`, parseJson(text)));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { gadget: 'big' }));
      const copy = await importedTo(world, 'Gadget', `${ns}/big`);
      expect(JSON.parse(JSON.stringify(copy['spec']))).toEqual(JSON.parse(text));
      expect(copy['spec']).toEqual(parseJson(text));
      await world.settle(daemon);
      const log = await world.log('host', 'Gadget');
      await world.settle(daemon);
      expect(log.of(short(world, `${ns}/big`)[1])).toEqual([]);
    });

    test('with a copy of another syncer is referenced by the name of that copy, which is not changed', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const { metadata } = await world.virtual.create('Secret', secret(`${ns}/shared`));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 'shared' }));
      await importedTo(world, 'Secret', `${ns}/shared`);
      const copy = await world.host.create('Secret', othersCopy(world, `${ns}/shared`, metadata.uid));
      await world.whenCopy(`${ns}/web`, noteIs(copy.metadata.name));
      await world.host.whenGone('Secret', short(world, `${ns}/shared`));
      await world.virtual.merge('Secret', [ns, 'shared'], { data: { n: 'Mg==' } });
      await world.settle(daemon);
      expect(await world.host.get('Secret', world.hostNamespace, copy.metadata.name)).toEqual(copy);
      await world.host.delete('Secret', world.hostNamespace, copy.metadata.name);
      await importedTo(world, 'Secret', `${ns}/shared`);
      await world.whenCopy(`${ns}/web`, noteIs(short(world, `${ns}/shared`)[1]));
    });

    test('is not imported if a foreign object has the host name, and that object is not changed', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const place = short(world, `${ns}/taken`);
      const foreign = await world.host.create('Secret', secret(place.join('/'), { data: { f: 'Zg==' } }));
      await world.virtual.create('Secret', secret(`${ns}/taken`));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 'taken' }));
      expect(await world.whenEvent(`${ns}/web`, 'NotManaged')).toContain(place[1]);
      await world.settle(daemon);
      expect(await world.host.get('Secret', ...place)).toEqual(foreign);
      await world.host.delete('Secret', ...place);
      await importedTo(world, 'Secret', `${ns}/taken`);
    });

    test('that is opted out is not changed, and neither is its copy', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const label = { 'vcluster.loft.sh/controlled-by': 'other' };
      await world.virtual.create('ConfigMap', configMap(`${ns}/cfg`, { k: '1' }));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { config: 'cfg' }));
      await importedTo(world, 'ConfigMap', `${ns}/cfg`);
      await world.virtual.merge('ConfigMap', [ns, 'cfg'], { metadata: { labels: label }, data: { k: '2' } });
      await world.settle(daemon);
      const copy = await world.host.get('ConfigMap', ...short(world, `${ns}/cfg`));
      expect(copy['data']).toEqual({ k: '1' });
    });
  });

  describe('a referenced object that exists only on the host', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, () => ({ config: referencePatches() }));

    test('is imported into the virtual cluster under its own name, with markers and without metadata of the host', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const name = `only-${ns}`;
      await world.host.create(
        'Secret',
        secret(`${world.hostNamespace}/${name}`, { type: 'a/b' }, { team: 'host' }),
      );
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: name }));
      const copy = await virtualImport(world, 'Secret', `${ns}/${name}`);
      expect(copy).toMatchObject({ type: 'a/b', data: { k: 'dg==' } });
      expect(copy.metadata.annotations).toEqual({
        [IMPORTED]: 'true',
        'endpoint-syncer/imported-as': `${ns}/${name}`,
      });
      expect(copy.metadata.labels).toEqual({ [MARKER]: world.vcluster });
      await world.whenCopy(`${ns}/web`, noteIs(name));
      expect(await world.whenEvent(`${ns}/web`, 'ReferenceImported')).toContain('into the virtual cluster');
    });

    test('is kept in sync, edits are reverted, and it is never exported again', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const name = `edit-${ns}`;
      await world.host.create('ConfigMap', configMap(`${world.hostNamespace}/${name}`, { k: '1' }));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { config: name }));
      await virtualImport(world, 'ConfigMap', `${ns}/${name}`);
      await world.host.merge('ConfigMap', [world.hostNamespace, name], { data: { k: '2' } });
      await virtualImport(world, 'ConfigMap', `${ns}/${name}`, (copy) => sameData(copy, { k: '2' }));
      await world.virtual.merge('ConfigMap', [ns, name], {
        data: { k: 'mine', more: '1' },
        metadata: { annotations: { [IMPORTED]: null }, labels: { x: 'y' } },
      });
      await virtualImport(
        world,
        'ConfigMap',
        `${ns}/${name}`,
        (copy) => sameData(copy, { k: '2' }) && copy.metadata.labels?.['x'] === undefined,
      );
      await world.virtual.delete('ConfigMap', ns, name);
      await virtualImport(world, 'ConfigMap', `${ns}/${name}`, (copy) => sameData(copy, { k: '2' }));
      await world.settle(daemon);
      expect(await world.host.find('ConfigMap', ...short(world, `${ns}/${name}`))).toBeUndefined();
    });

    test('is deleted in the virtual cluster with its last reference, or when it is deleted on the host', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      for (const name of [`a-${ns}`, `b-${ns}`]) {
        await world.host.create('Secret', secret(`${world.hostNamespace}/${name}`));
        await world.virtual.create('Endpoints', named(`${ns}/${name}`, { secret: name }));
        await virtualImport(world, 'Secret', `${ns}/${name}`);
      }
      await world.deleteVirtual(`${ns}/a-${ns}`);
      await world.virtual.whenGone('Secret', [ns, `a-${ns}`]);
      expect(await world.host.find('Secret', world.hostNamespace, `a-${ns}`)).toBeDefined();
      await world.host.delete('Secret', world.hostNamespace, `b-${ns}`);
      await world.virtual.whenGone('Secret', [ns, `b-${ns}`]);
      await world.whenEvent(`${ns}/b-${ns}`, 'ReferenceNotFound');
      await world.whenCopy(`${ns}/b-${ns}`, noteIs(short(world, `${ns}/b-${ns}`)[1]));
    });

    test('is replaced by an object that is later created in the virtual cluster, which an Event reports', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const name = `later-${ns}`;
      await world.host.create('Secret', secret(`${world.hostNamespace}/${name}`));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: name }));
      await virtualImport(world, 'Secret', `${ns}/${name}`);
      await world.virtual.delete('Secret', ns, name);
      const mine = await world.virtual.create('Secret', secret(`${ns}/${name}`, { data: { mine: 'MQ==' } }));
      const copy = await importedTo(world, 'Secret', `${ns}/${name}`);
      expect(copy['data']).toEqual({ mine: 'MQ==' });
      await world.whenCopy(`${ns}/web`, noteIs(copy.metadata.name));
      expect(await world.virtual.get('Secret', ns, name)).toEqual(mine);
      await eventually(
        () => world.eventsOn(`${ns}/web`, 'ReferenceImported'),
        (events) => events.some((event) => JSON.stringify(event['note']).includes('replaces the one')),
        { what: 'an Event about the change of sides' },
      );
    });

    test('never replaces an object of the virtual cluster', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const name = `both-${ns}`;
      await world.host.create('Secret', secret(`${world.hostNamespace}/${name}`, { data: { h: 'aA==' } }));
      const mine = await world.virtual.create('Secret', secret(`${ns}/${name}`));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: name }));
      await importedTo(world, 'Secret', `${ns}/${name}`);
      await world.settle(daemon);
      expect(await world.virtual.get('Secret', ns, name)).toEqual(mine);
    });

    test('is imported again completely if it is immutable and was recreated', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const name = `fixed-${ns}`;
      const fixed = (value: string): KubeObject =>
        secret(`${world.hostNamespace}/${name}`, { immutable: true, data: { k: value } });
      await world.host.create('Secret', fixed('MQ=='));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: name }));
      await virtualImport(world, 'Secret', `${ns}/${name}`);
      await world.host.delete('Secret', world.hostNamespace, name);
      await world.host.create('Secret', fixed('Mg=='));
      const copy = await virtualImport(world, 'Secret', `${ns}/${name}`, (found) =>
        sameData(found, { k: 'Mg==' }),
      );
      expect(copy['immutable']).toBe(true);
    });

    test.for(['virtual', 'host'] as const)(
      'or is nowhere yet is imported as soon as it appears in the %s cluster',
      async (side) => {
        const { world, namespace } = shared();
        const ns = await namespace();
        const name = `late-${ns}`;
        await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: name }));
        expect(await world.whenEvent(`${ns}/web`, 'ReferenceNotFound')).toContain(`${ns}/${name}`);
        await world.whenCopy(`${ns}/web`, noteIs(short(world, `${ns}/${name}`)[1]));
        const place = side === 'virtual' ? ns : world.hostNamespace;
        await world[side].create('Secret', secret(`${place}/${name}`));
        if (side === 'virtual') await importedTo(world, 'Secret', `${ns}/${name}`);
        else {
          await virtualImport(world, 'Secret', `${ns}/${name}`);
          await world.whenCopy(`${ns}/web`, noteIs(name));
        }
      },
    );
  });

  describe('with the sync of the kind disabled', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, () => ({
      config: referencePatches({ secrets: { enabled: false }, configMaps: { enabled: false } }),
    }));

    test('names are only rewritten; objects that exist only on the host are still imported', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const name = `off-${ns}`;
      await world.virtual.create('Secret', secret(`${ns}/here`));
      await world.host.create('Secret', secret(`${world.hostNamespace}/${name}`));
      await world.virtual.create('Endpoints', named(`${ns}/a`, { secret: 'here' }));
      await world.virtual.create('Endpoints', named(`${ns}/b`, { secret: name }));
      await world.whenCopy(`${ns}/a`, noteIs(short(world, `${ns}/here`)[1]));
      await virtualImport(world, 'Secret', `${ns}/${name}`);
      await world.virtual.merge('Secret', [ns, name], { data: { k: 'bWluZQ==' } });
      await virtualImport(world, 'Secret', `${ns}/${name}`, (copy) => sameData(copy, { k: 'dg==' }));
      await world.settle(daemon);
      expect(await world.host.find('Secret', ...short(world, `${ns}/here`))).toBeUndefined();
    });
  });

  describe('kindPath', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, () => ({ config: KINDS_BY_DATA }));

    test('may contain any kind that the configuration names or enables, different for each match', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      await world.virtual.create('Secret', secret(`${ns}/one`));
      await world.virtual.create('ConfigMap', configMap(`${ns}/two`, { k: '1' }));
      await world.virtual.create(
        'Endpoints',
        withTargets(`${ns}/web`, ['Secret', 'one'], ['ConfigMap', 'two']),
      );
      await importedTo(world, 'Secret', `${ns}/one`);
      await importedTo(world, 'ConfigMap', `${ns}/two`);
      const copy = await world.whenCopy(`${ns}/web`);
      expect(targetsOf(copy)).toEqual([
        { kind: 'Secret', name: short(world, `${ns}/one`)[1], namespace: world.hostNamespace },
        { kind: 'ConfigMap', name: short(world, `${ns}/two`)[1], namespace: world.hostNamespace },
      ]);
      await world.virtual.merge('ConfigMap', [ns, 'two'], { data: { k: '2' } });
      await importedTo(world, 'ConfigMap', `${ns}/two`, (found) => sameData(found, { k: '2' }));
      await world.deleteVirtual(`${ns}/web`);
      await world.host.whenGone('ConfigMap', short(world, `${ns}/two`));
    });

    test('with another kind leaves the value unchanged, which an Event reports', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      await world.virtual.create('Endpoints', withTargets(`${ns}/web`, ['Role', 'admin']));
      expect(await world.whenEvent(`${ns}/web`, 'ReferenceNotAllowed')).toContain('Role');
      expect(targetsOf(await world.whenCopy(`${ns}/web`))[0]?.['name']).toBe('admin');
    });
  });

  describe('imports after a restart', () => {
    test('without references are deleted, the others are equal to their originals', async ({ expect }) => {
      await using world = await newWorld();
      await using first = await world.startSync({ config: referencePatches() });
      for (const name of ['kept', 'dropped', 'deleted', 'changed']) {
        await world.virtual.create('Secret', secret(`default/${name}`));
        await world.virtual.create('Endpoints', named(`default/${name}`, { secret: name }));
        await importedTo(world, 'Secret', `default/${name}`);
      }
      for (const name of ['h-kept', 'h-dropped']) {
        await world.host.create('Secret', secret(`${world.hostNamespace}/${name}`));
        await world.virtual.create('Endpoints', named(`default/${name}`, { secret: name }));
        await virtualImport(world, 'Secret', `default/${name}`);
      }
      await first.stop();
      for (const name of ['dropped', 'h-dropped'])
        await world.mergeVirtual(`default/${name}`, {
          metadata: { annotations: { [NOTES.secret]: null } },
        });
      await world.deleteVirtual('default/deleted');
      await world.virtual.merge('Secret', ['default', 'changed'], { data: { k: 'bmV3' } });
      await world.host.merge('Secret', short(world, 'default/kept'), { data: { k: 'ZHJpZnQ=' } });
      const second = await world.startSync({ config: referencePatches() });
      for (const name of ['dropped', 'deleted'])
        await world.host.whenGone('Secret', short(world, `default/${name}`));
      await world.virtual.whenGone('Secret', ['default', 'h-dropped']);
      await importedTo(world, 'Secret', 'default/changed', (copy) => sameData(copy, { k: 'bmV3' }));
      await importedTo(world, 'Secret', 'default/kept', (copy) => sameData(copy, { k: 'dg==' }));
      await virtualImport(world, 'Secret', 'default/h-kept');
      await world.settle(second);
      const logs = [await world.log('host', 'Secret'), await world.log('virtual', 'Secret')];
      await second.stop();
      const third = await world.startSync({ config: referencePatches() });
      await world.settle(third);
      expect(logs.flatMap((log) => world.writesIn(log))).toEqual([]);
    });

    test.for(['live', 'while the daemon is away'])(
      'of a patch that was removed %s are gone',
      async (when, { expect }) => {
        await using world = await newWorld();
        const daemon = await world.startSync({ config: referencePatches() });
        await world.virtual.create('Secret', secret('default/s'));
        await world.host.create('ConfigMap', configMap(`${world.hostNamespace}/h`, { k: '1' }));
        await world.virtual.create('Endpoints', named('default/web', { secret: 's', config: 'h' }));
        await importedTo(world, 'Secret', 'default/s');
        await virtualImport(world, 'ConfigMap', 'default/h');
        const without = { sync: { toHost: { endpoints: { enabled: true, patches: [] } } } };
        if (when === 'live') {
          const config = world.configuration({ config: without }, Number(new URL(daemon.httpUrl).port));
          world.writeConfig(config, daemon.configPath.slice(world.directory.length + 1));
        } else {
          await daemon.stop();
          await world.startSync({ config: without });
        }
        await world.host.whenGone('Secret', short(world, 'default/s'));
        await world.virtual.whenGone('ConfigMap', ['default', 'h']);
        const copy = await world.whenCopy('default/web', noteIs('s'));
        expect(copy.metadata.annotations?.[LAST_SYNCED]).not.toContain('Secret');
        expect(await world.host.find('ConfigMap', world.hostNamespace, 'h')).toBeDefined();
      },
    );
  });

  describe('a start', () => {
    test.for([['Widget', 'no kind Widget']])(
      'with a patch that names %s warns which patch it is, and syncs',
      async ([kind = '', message = ''], { expect }) => {
        await using world = await newWorld();
        const reference = { apiVersion: 'v1', kind };
        const patches = [
          { path: 'metadata.annotations["a"]', labels: {} },
          { path: 'metadata.annotations["b"]', reference },
        ];
        const daemon = await world.startDaemon({
          config: { sync: { toHost: { endpoints: { enabled: true, patches } } } },
        });
        await world.createVirtual('default/web');
        await world.whenCopied('default/web');
        await expect
          .poll(() => daemon.log)
          .toContainEqual(
            expect.objectContaining({
              level: 'warn',
              patch: 'sync.toHost.endpoints.patches[1]',
              kind,
              why: expect.stringContaining(message) as string,
            }),
          );
      },
    );

    test('watches only kinds that patches name', async ({ expect }) => {
      await using world = await newWorld();
      const [host, virtual] = [await world.proxy('host'), await world.proxy('virtual')];
      const kubeconfigs = { host: host.path, virtual: virtual.path };
      const plain = await world.startSync({ kubeconfigs });
      await world.settle(plain);
      const asked = (): string[] => [...host.requests, ...virtual.requests].map(({ path }) => path);
      expect(asked().filter((path) => /secrets|configmaps/.test(path))).toEqual([]);
      await plain.stop();
      const one = {
        path: `metadata.annotations["${NOTES.secret}"]`,
        reference: { apiVersion: 'v1', kind: 'Secret' },
      };
      const config = { sync: { toHost: { endpoints: { enabled: true, patches: [one] } } } };
      await world.settle(await world.startSync({ kubeconfigs, config }));
      expect(asked().filter((path) => path.includes('configmaps'))).toEqual([]);
      await expect.poll(() => asked().filter((path) => path.includes('/secrets')).length).toBeGreaterThan(0);
    });
  });

  describe('with namespaces that are mapped', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, async (world) => {
      await world.virtualNamespace('team-a');
      await world.virtualNamespace('plain');
      await world.hostNamespaceNamed(`${world.hostNamespace}-a`);
      const namespaces = { enabled: true, mappings: { byName: { 'team-a': `${world.hostNamespace}-a` } } };
      return { config: referencePatches({ namespaces }, false, [OWN_NAMESPACE]) };
    });

    test('the own namespace may be spelled out', async () => {
      const { world } = shared();
      const place: [string, string] = [`${world.hostNamespace}-a`, 'own'];
      await world.virtual.create('Secret', secret('team-a/own'));
      await world.createVirtual('team-a/uses-own', { annotations: { own: 'own' } });
      await world.host.when('Secret', place);
      const uses = [place[0], 'uses-own'] as const;
      const copy = await world.host.when('Endpoints', uses);
      expect(copy.metadata.annotations?.['own']).toBe('own');
    });

    test('names are kept, the copy is in the mapped namespace', async () => {
      const { world } = shared();
      const place: [string, string] = [`${world.hostNamespace}-a`, 'tls'];
      await world.virtual.create('Secret', secret('team-a/tls'));
      await world.virtual.create('Endpoints', named('team-a/web', { secret: 'tls' }));
      const copy = await world.host.when('Secret', place);
      expect(copy.metadata.annotations).toMatchObject({
        'vcluster.loft.sh/object-host-namespace': place[0],
        'vcluster.loft.sh/object-name': 'tls',
      });
      const endpointsCopy = await world.host.when('Endpoints', [place[0], 'web']);
      expect(endpointsCopy.metadata.annotations?.[NOTES.secret]).toBe('tls');
      await world.deleteVirtual('team-a/web');
      await world.host.whenGone('Secret', place);
    });

    test('an object that only the mapped namespace has is imported into its virtual namespace', async () => {
      const { world } = shared();
      const place: [string, string] = [`${world.hostNamespace}-a`, 'shared'];
      const source = await world.host.create('Secret', secret(place.join('/'), { data: { v: 'MQ==' } }));
      await world.virtual.create('Endpoints', named('team-a/user', { secret: 'shared' }));
      await virtualImport(world, 'Secret', 'team-a/shared', (copy) => sameData(copy, { v: 'MQ==' }));
      const copy = await world.host.when(
        'Endpoints',
        [place[0], 'user'],
        (found) => found.metadata.annotations?.[NOTES.secret] === 'shared',
      );
      expect(copy.metadata.namespace).toBe(place[0]);
      expect(await world.host.get('Secret', ...place)).toEqual(source);
      await world.host.merge('Secret', place, { data: { v: 'Mg==' } });
      await virtualImport(world, 'Secret', 'team-a/shared', (now) => sameData(now, { v: 'Mg==' }));
      await world.deleteVirtual('team-a/user');
      await world.virtual.whenGone('Secret', ['team-a', 'shared']);
      expect(await world.host.find('Secret', ...place)).toBeDefined();
    });

    test('a foreign object with the name of a copy is not changed', async () => {
      const { world, daemon } = shared();
      const place: [string, string] = [`${world.hostNamespace}-a`, 'taken'];
      const foreign = await world.host.create('Secret', secret(place.join('/')));
      await world.virtual.create('Secret', secret('team-a/taken', { data: { v: 'dg==' } }));
      await world.virtual.create('Endpoints', named('team-a/nosy', { secret: 'taken' }));
      await world.whenEvent('team-a/nosy', 'NotManaged');
      await world.settle(daemon, 'plain');
      expect(await world.host.get('Secret', ...place)).toEqual(foreign);
    });
  });

  describe('with host namespaces that are created', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, async (world) => {
      for (const name of ['team-a', 'team-b']) await world.virtualNamespace(name);
      await world.hostNamespaceNamed(`${world.hostNamespace}-team-a`);
      const byName = { 'team-*': `${world.hostNamespace}-team-*` };
      const config = referencePatches({
        namespaces: { enabled: true, mappings: { byName } },
        endpoints: {
          patches: [
            {
              path: 'metadata.annotations',
              reference: { apiVersion: 'v1', kind: 'Secret', namePath: 'name', namespacePath: 'in' },
            },
          ],
        },
      });
      return { config: { ...config, endpointSyncer: { createNamespaces: true } } };
    });

    test('a reference creates the namespace of the object that it names', async () => {
      const { world } = shared();
      const target = `${world.hostNamespace}-team-b`;
      world.claimHostNamespace(target);
      await world.virtual.create('Secret', secret('team-b/tls'));
      await world.createVirtual('team-a/web', { annotations: { name: 'tls', in: 'team-b' } });
      const copy = await world.host.when('Secret', [target, 'tls']);
      expect(copy.metadata.labels).toMatchObject({ [MARKER]: world.vcluster });
    });

    test('an object that only the host has is imported from the namespace of a pattern', async () => {
      const { world } = shared();
      const name = 'only-host';
      await world.host.create(
        'Secret',
        secret(`${world.hostNamespace}-team-a/${name}`, { data: { v: 'MQ==' } }),
      );
      await world.createVirtual('team-a/reader', { annotations: { name, in: 'team-a' } });
      const copy = await virtualImport(world, 'Secret', `team-a/${name}`);
      expect(copy['data']).toEqual({ v: 'MQ==' });
    });

    test('a namespace that the virtual cluster does not have is created nowhere, and the Event says so', async () => {
      const { world } = shared();
      const name = 'lost-secret';
      await world.host.create('Secret', secret(`${world.hostNamespace}/${name}`));
      await world.createVirtual('team-a/lost', { annotations: { name, in: 'nowhere' } });
      const note = await world.whenEvent('team-a/lost', 'NamespaceNotFound');
      expect(note).toContain('the virtual cluster has no namespace "nowhere". Create it there');
      expect(await world.virtual.find('Namespace', '', 'nowhere')).toBeUndefined();
      await world.virtualNamespace('nowhere');
      await virtualImport(world, 'Secret', `nowhere/${name}`);
    });
  });

  describe('to kinds that are copied without a reference', { concurrent: false }, () => {
    const patches = [
      { path: at('service'), reference: { apiVersion: 'v1', kind: 'Service' } },
      { path: at('pod'), reference: { apiVersion: 'v1', kind: 'Pod' } },
    ];
    const shared = sharedWorld(newWorld, () => ({
      config: { sync: { toHost: { endpoints: { patches } } } },
    }));

    test('the long name is written, whether the object and its copy exist or not', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const log = await world.log('host');
      await world.createVirtual(`${ns}/web`, {
        annotations: { 'example.com/service': 'db', 'example.com/pod': 'db-0' },
      });
      const copy = await world.whenCopy(`${ns}/web`);
      const written = (name: string): string | undefined =>
        copy.metadata.annotations?.[`example.com/${name}`];
      expect([written('service'), written('pod')]).toEqual([
        world.hostName(`${ns}/db`),
        world.hostName(`${ns}/db-0`),
      ]);
      expect(await world.whenEvent(`${ns}/web`, 'ReferenceNotFound')).toContain('are not imported');
      await world.virtual.create('Service', service(`${ns}/db`));
      await world.settle(daemon);
      const place = [world.hostNamespace, world.hostName(`${ns}/db`)] as const;
      await world.host.create('Service', service(place.join('/')));
      await world.settle(daemon);
      await world.host.delete('Service', ...place);
      await world.virtual.delete('Service', ns, 'db');
      await world.settle(daemon);
      expect(log.of(world.hostName(`${ns}/web`))).toEqual(['ADDED']);
    });

    test('the Service of the API server is that of the vCluster', async () => {
      const { world } = shared();
      const key = 'default/uses-api';
      const annotations = { 'example.com/service': 'kubernetes' };
      await world.createVirtual(key, { annotations });
      await world.whenCopy(
        key,
        ({ metadata }) => metadata.annotations?.['example.com/service'] === world.vcluster,
      );
      await world.mergeCopy(key, { metadata: { annotations: { other: '1' } } });
      const back = await world.whenVirtual(key, ({ metadata }) => metadata.annotations?.['other'] === '1');
      expect(back.metadata.annotations?.['example.com/service']).toBe('kubernetes');
    });
  });

  describe('that is changed on the host', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, () => ({
      config: referencePatches({ secrets: { enabled: false } }),
    }));

    test('names the virtual object with this name on the host, imported or not', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      for (const name of ['one', 'two']) await world.virtual.create('Secret', secret(`${ns}/${name}`));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 'one' }));
      const nameOf = (name: string): string => short(world, `${ns}/${name}`)[1];
      await world.whenCopy(`${ns}/web`, noteIs(nameOf('one')));
      const annotations = { [NOTES.secret]: nameOf('two') };
      await world.mergeCopy(`${ns}/web`, { metadata: { annotations } });
      const virtual = await world.whenVirtual(`${ns}/web`, noteIs('two'));
      expect(virtual.metadata.annotations?.[NOTES.secret]).toBe('two');
    });

    test('to a name that no object has fails its patch, and the virtual object keeps its own', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      await world.virtual.create('Secret', secret(`${ns}/one`));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 'one' }));
      await world.whenCopy(`${ns}/web`, noteIs(short(world, `${ns}/one`)[1]));
      const unknown = short(world, `${ns}/unknown`)[1];
      const annotations = { [NOTES.secret]: unknown };
      await world.mergeCopy(`${ns}/web`, { metadata: { annotations } });
      const note = await world.whenEvent(`${ns}/web`, 'PatchFailed');
      expect(note).toContain(`no Secret of the virtual cluster has the name "${unknown}" on the host`);
      await world.settle(daemon);
      const virtual = await world.getVirtual(`${ns}/web`);
      expect(virtual.metadata.annotations?.[NOTES.secret]).toBe('one');
      // A change of the virtual object takes precedence.
      await world.mergeVirtual(`${ns}/web`, {
        metadata: { annotations: { [NOTES.secret]: 'two' } },
      });
      await world.whenCopy(`${ns}/web`, noteIs(short(world, `${ns}/two`)[1]));
    });
  });

  describe('several references in one value', { concurrent: false }, () => {
    const patches = [
      { path: 'metadata.annotations', reference: { apiVersion: 'v1', kind: 'Secret', namePath: 'secret' } },
      {
        path: 'metadata.annotations',
        reference: { apiVersion: 'v1', kind: 'ConfigMap', namePath: 'config' },
      },
      OWN_NAMESPACE,
    ];
    const shared = sharedWorld(newWorld, () => ({
      config: { sync: { toHost: { endpoints: { patches } } } },
    }));

    test('are all written and imported, and each is translated back when the host changes it', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const nameOf = (name: string): string => short(world, `${ns}/${name}`)[1];
      for (const name of ['one', 'two']) await world.virtual.create('Secret', secret(`${ns}/${name}`));
      await world.virtual.create('ConfigMap', configMap(`${ns}/cfg`, { k: '1' }));
      const annotations = { secret: 'one', config: 'cfg', note: 'a' };
      await world.createVirtual(`${ns}/web`, { annotations });
      await importedTo(world, 'Secret', `${ns}/one`);
      await importedTo(world, 'ConfigMap', `${ns}/cfg`);
      const copy = await world.whenCopy(`${ns}/web`);
      expect(copy.metadata.annotations).toMatchObject({
        secret: nameOf('one'),
        config: nameOf('cfg'),
        note: 'a',
      });
      await world.mergeCopy(`${ns}/web`, {
        metadata: { annotations: { secret: nameOf('two'), note: 'b' } },
      });
      const virtual = await world.whenVirtual(
        `${ns}/web`,
        ({ metadata }) => metadata.annotations?.['note'] === 'b',
      );
      expect(virtual.metadata.annotations).toMatchObject({ secret: 'two', config: 'cfg' });
      await importedTo(world, 'Secret', `${ns}/two`);
      await world.host.whenGone('Secret', short(world, `${ns}/one`));
    });

    test('the own namespace may be spelled out', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      await world.virtual.create('Secret', secret(`${ns}/own`));
      await world.createVirtual(`${ns}/web`, { annotations: { own: 'own' } });
      await importedTo(world, 'Secret', `${ns}/own`);
      const copy = await world.whenCopy(`${ns}/web`);
      expect(copy.metadata.annotations?.['own']).toBe(short(world, `${ns}/own`)[1]);
      await world.mergeCopy(`${ns}/web`, {
        metadata: { annotations: { note: '1' } },
      });
      const back = await world.whenVirtual(
        `${ns}/web`,
        ({ metadata }) => metadata.annotations?.['note'] === '1',
      );
      expect(back.metadata.annotations?.['own']).toBe('own');
    });

    test('an error names its entry, and the virtual object keeps its own names', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      await world.createVirtual(`${ns}/web`, { annotations: { secret: 's', config: 'c' } });
      await world.whenCopy(`${ns}/web`);
      const place = world.hostKey(`${ns}/web`);
      await world.host.merge('Endpoints', place, { metadata: { annotations: { config: 'unknown' } } });
      expect(await world.whenEvent(`${ns}/web`, 'PatchFailed')).toMatch(
        /patches\[1\].*no ConfigMap of the virtual cluster has the name "unknown" on the host/su,
      );
      expect((await world.getVirtual(`${ns}/web`)).metadata.annotations).toEqual({
        secret: 's',
        config: 'c',
      });
    });
  });

  describe('in a JSON text', { concurrent: false }, () => {
    const networks = 'k8s.v1.cni.cncf.io/networks';
    const patches = [
      {
        path: `metadata.annotations["${networks}"]`,
        reference: {
          apiVersion: 'example.com/v1',
          kind: 'Gadget',
          namePath: '[*].name',
          namespacePath: '[*].namespace',
        },
      },
    ];
    const shared = sharedWorld(newWorld, async (world) => {
      await serveGadgets(world);
      const customResources = { 'gadgets.example.com': { enabled: true } };
      return { config: { sync: { toHost: { endpoints: { patches }, customResources } } } };
    });

    test('every name is written, imported and translated back, and the rest of the text is kept', async () => {
      const { world, namespace } = shared();
      const [ns, other] = [await namespace(), await namespace()];
      const nameOf = (key: string): string => short(world, key)[1];
      for (const key of [`${ns}/net-a`, `${other}/net-b`, `${ns}/net-c`])
        await world.virtual.create('Gadget', gadget(key, {}));
      const text = (a: string, b: string, namespaceOfB: string): string =>
        `[ {"name":"${a}"},\n  {"namespace" : "${namespaceOfB}", "name":"${b}", "ips":["10.0.0.1"]} ]`;
      const written = text('net-a', 'net-b', other);
      await world.createVirtual(`${ns}/web`, { annotations: { [networks]: written } });
      await importedTo(world, 'Gadget', `${ns}/net-a`);
      await importedTo(world, 'Gadget', `${other}/net-b`);
      const [a, b] = [nameOf(`${ns}/net-a`), nameOf(`${other}/net-b`)];
      const copy = await world.whenCopy(`${ns}/web`);
      expect(copy.metadata.annotations?.[networks]).toBe(text(a, b, world.hostNamespace));
      const place = world.hostKey(`${ns}/web`);
      await world.host.merge('Endpoints', place, { metadata: { annotations: { note: '1' } } });
      const noted = await world.whenVirtual(
        `${ns}/web`,
        ({ metadata }) => metadata.annotations?.['note'] === '1',
      );
      expect(noted.metadata.annotations?.[networks]).toBe(written);
      const changed = text(nameOf(`${ns}/net-c`), b, world.hostNamespace);
      await world.host.merge('Endpoints', place, { metadata: { annotations: { [networks]: changed } } });
      const expected = text('net-c', 'net-b', other);
      await world.whenVirtual(`${ns}/web`, ({ metadata }) => metadata.annotations?.[networks] === expected);
      await importedTo(world, 'Gadget', `${ns}/net-c`);
      await world.host.whenGone('Gadget', short(world, `${ns}/net-a`));
    });

    test.for([
      ['no JSON', '[{"name":"net-a"}', 'a reference with namePath is an object'],
      ['a key twice', '[{"name":"net-a","name":"net-b"}]', 'which the JSON text has twice'],
    ] as const)('with %s is an error until it is corrected', async ([, text, message], { expect }) => {
      const { world, namespace } = shared();
      const ns = await namespace();
      await world.createVirtual(`${ns}/web`, { annotations: { [networks]: text } });
      expect(await world.whenEvent(`${ns}/web`, 'PatchFailed')).toContain(message);
      const annotations = { [networks]: '[ ]' };
      await world.mergeVirtual(`${ns}/web`, { metadata: { annotations } });
      await world.whenCopy(`${ns}/web`, ({ metadata }) => metadata.annotations?.[networks] === '[ ]');
    });
  });

  describe('with the multi-namespace mode of vCluster 0.25', () => {
    test('the copy is in the hashed namespace under its own name', async ({ expect }) => {
      await using world = await newWorld();
      const { createHash } = await import('node:crypto');
      const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8);
      const target = `vcluster-${hash('default')}-${hash(`${world.hostNamespace}x${world.vcluster}`)}`;
      await world.hostNamespaceNamed(target);
      const config = { ...referencePatches(), experimental: { multiNamespaceMode: { enabled: true } } };
      await world.startSync({ config });
      await world.virtual.create('Secret', secret('default/tls'));
      await world.virtual.create('Endpoints', named('default/web', { secret: 'tls' }));
      const copy = await world.host.when('Secret', [target, 'tls']);
      expect(copy.metadata.annotations).toHaveProperty([LAST_SYNCED]);
      await world.deleteVirtual('default/web');
      await world.host.whenGone('Secret', [target, 'tls']);
    });
  });
}

function sameData(object: KubeObject, data: Record<string, string>): boolean {
  return jsonEquals(object['data'] as JsonObject, data);
}

function virtualImport(
  world: World,
  kind: 'Secret' | 'ConfigMap',
  key: string,
  holds: (copy: KubeObject) => boolean = () => true,
): Promise<KubeObject> {
  return world.virtual.when(
    kind,
    pair(key),
    (found) => found.metadata.annotations?.[IMPORTED] === 'true' && holds(found),
  );
}

function noteIs(name: string): (copy: KubeObject) => boolean {
  return ({ metadata }) =>
    [metadata.annotations?.[NOTES.secret], metadata.annotations?.[NOTES.config]].includes(name);
}

/** As vCluster's own syncer creates it: the long name, without our sync record. */
function othersCopy(world: World, key: string, uid?: string): KubeObject {
  const [namespace, name] = world.hostKey(key);
  const metadata = { namespace, name, ...world.bookkeeping('Secret', key, uid) };
  return { apiVersion: 'v1', kind: 'Secret', metadata, data: { k: 'dg==' } };
}

function withTargets(key: string, ...targets: readonly (readonly [string, string])[]): KubeObject {
  const addresses = targets.map(([kind, name], i) => ({
    ip: `10.1.0.${i + 1}`,
    targetRef: { kind, name, namespace: pair(key)[0] },
  }));
  return endpoints(key, { subsets: [{ addresses, ports: [{ port: 80 }] }] });
}

function targetsOf(object: KubeObject): JsonObject[] {
  const subsets = (object['subsets'] ?? []) as unknown as { addresses: { targetRef: JsonObject }[] }[]; // Endpoints
  return subsets.flatMap(({ addresses }) => addresses.map(({ targetRef }) => targetRef));
}
