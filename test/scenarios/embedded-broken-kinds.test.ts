/** A kind that a patch references and that cannot be listed: everything else is synced, and so is the kind once it can be. */

import { describe, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { eventually } from '../support/eventually.ts';
import type { ProxiedRequest, Verdict } from './api-proxy.ts';
import { newEmbeddedWorld } from './embedded-world.ts';
import { gadget } from './gadgets.ts';
import { importedTo, named, NOTES, referencePatches, secret, short } from './reference-objects.ts';

const HANG: Verdict = { kind: 'pretend', body: '' };
const META = { resourceVersion: '1' };

function refusal(status: number, reason: string): Verdict {
  return { kind: 'refuse', status, reason };
}

function answer(value: unknown): Verdict {
  return { kind: 'pretend', body: typeof value === 'string' ? value : JSON.stringify(value) };
}

function listOf(...items: unknown[]): Verdict {
  return answer({ kind: 'List', apiVersion: 'v1', metadata: META, items });
}

/** What a conversion webhook, or an API server of the tenant's own, makes of a list. */
const LISTS: Readonly<Record<string, Verdict>> = {
  hang: HANG,
  cut: { kind: 'cut' },
  'not found': refusal(404, 'NotFound'),
  forbidden: refusal(403, 'Forbidden'),
  unauthorized: refusal(401, 'Unauthorized'),
  'no list': refusal(405, 'MethodNotAllowed'),
  'not acceptable': refusal(406, 'NotAcceptable'),
  gone: refusal(410, 'Expired'),
  invalid: refusal(422, 'Invalid'),
  'too many': refusal(429, 'TooManyRequests'),
  failed: refusal(500, 'InternalError'),
  'bad gateway': refusal(502, 'BadGateway'),
  unavailable: refusal(503, 'ServiceUnavailable'),
  timeout: refusal(504, 'Timeout'),
  null: answer('null'),
  'no json': answer('<html>'),
  text: answer('"list"'),
  array: answer('[]'),
  status: answer({ kind: 'Status', apiVersion: 'v1', status: 'Success' }),
  'no version': answer({ metadata: {}, items: [] }),
  'items are text': answer({ metadata: META, items: 'x' }),
};

/** These leave out an item. */
const ITEMS: Readonly<Record<string, unknown>> = {
  'null item': null,
  'text item': 'x',
  'no metadata': { spec: {} },
  'no name': { metadata: { resourceVersion: '1' } },
  'labels are text': { metadata: { name: 'x', namespace: 'default', labels: 'x', ...META } },
  'label is a number': { metadata: { name: 'x', namespace: 'default', labels: { a: 1 }, ...META } },
};

const LISTED = Object.keys(LISTS);
const LEFT_OUT = Object.keys(ITEMS);
const KINDS = [...LISTED, ...LEFT_OUT];

/** Groups whose discovery is broken. */
const DISCOVERIES: Readonly<Record<string, Verdict>> = {
  'hangs.example.org': HANG,
  'null.example.org': answer('null'),
  'unavailable.example.org': refusal(503, 'ServiceUnavailable'),
  'failed.example.org': refusal(500, 'InternalError'),
};

function kindName(at: number): string {
  return `Kind${at}`;
}

const RESOURCES = answer({
  kind: 'APIResourceList',
  groupVersion: 'example.org/v1',
  resources: KINDS.map((_, at) => ({ name: `kind${at}s`, kind: kindName(at), namespaced: true, verbs: [] })),
});

async function decide({ path, isWatch }: ProxiedRequest, isVirtual: boolean): Promise<Verdict> {
  const group = /^\/apis\/([^/]+)\/v1/.exec(path)?.[1] ?? '';
  const verdict = isVirtual ? DISCOVERIES[group] : undefined;
  const at = Number(/\/kind(\d+)s/.exec(path)?.[1] ?? -1);
  const name = KINDS[at];
  if (verdict === HANG || (isVirtual && name === 'hang')) return new Promise(() => undefined);
  if (verdict !== undefined) return verdict;
  if (group !== 'example.org') return { kind: 'pass' };
  if (name === undefined) return RESOURCES;
  if (isWatch) return refusal(503, 'ServiceUnavailable');
  if (!isVirtual) return listOf();
  return LISTS[name] ?? listOf(ITEMS[name]);
}

function noted(name: string): string {
  return `example.com/${name.replaceAll(' ', '-')}`;
}

function patchFor(name: string, apiVersion: string, kind: string): JsonObject {
  return { path: `metadata.annotations["${noted(name)}"]`, reference: { apiVersion, kind } };
}

// Most of the time is waiting for the first lists.
describe.concurrent('kinds that cannot be listed', () => {
  test('keep nothing else from being synced after a restart, and are reported', async ({ expect }) => {
    await using world = await newEmbeddedWorld();
    const groups = Object.keys(DISCOVERIES);
    const patches = [
      { path: `metadata.annotations["${NOTES.secret}"]`, reference: { apiVersion: 'v1', kind: 'Secret' } },
      ...KINDS.map((name, at) => patchFor(name, 'example.org/v1', kindName(at))),
      ...groups.map((group) => patchFor(group, `${group}/v1`, 'Thing')),
    ];
    const [virtual, host] = [await world.proxy('virtual'), await world.proxy('host')];
    virtual.behaviour = { decide: (request) => decide(request, true) };
    host.behaviour = { decide: (request) => decide(request, false) };
    await world.virtual.create('Secret', secret('default/s'));
    await world.virtual.create('Endpoints', named('default/web', { secret: 's' }));
    const names = [...KINDS, ...groups];
    const keys = names.map((_, at) => `default/e${at}`);
    for (const [at, name] of names.entries())
      await world.createVirtual(`default/e${at}`, { annotations: { [noted(name)]: 'x' } });
    const config = {
      sync: { toHost: { endpoints: { enabled: true, patches }, secrets: { enabled: true } } },
    };
    const daemon = await world.startSync({ config, kubeconfigs: { virtual: virtual.path, host: host.path } });

    await world.whenCopy('default/web');
    await importedTo(world, 'Secret', 'default/s');
    const copies = await Promise.all(keys.map((key) => world.whenCopy(key)));
    const [, written] = short(world, 'default/x');
    expect(copies.map(({ metadata }, at) => metadata.annotations?.[noted(names[at] ?? '')])).toEqual(
      names.map(() => written),
    );
    const broken = LISTED.length + groups.length;
    const events = await Promise.all(keys.map((key) => world.whenEvent(key, 'ReferenceNotFound')));
    expect(events.filter((note) => note.includes('its objects cannot be listed'))).toHaveLength(
      LISTED.length,
    );
    expect(events.filter((note) => /its kind (is not served|cannot be looked up)/u.test(note))).toHaveLength(
      groups.length,
    );
    expect(events.filter((note) => note.includes('is not a map of strings'))).toHaveLength(2);
    expect((await daemon.get('/readyz')).status).toBe(200);
    await daemon.whenMetric('endpoint_syncer_referenced_kinds_missing', (kinds) => kinds === broken);
    await world.settle(daemon);
  });

  test('are imported once they can be listed', async ({ expect }) => {
    await using world = await newEmbeddedWorld();
    const virtual = await world.proxy('virtual');
    let isBroken = true;
    virtual.behaviour = {
      decide: ({ path }) =>
        isBroken && path.includes('/gadgets') ? refusal(500, 'InternalError') : { kind: 'pass' },
    };
    await world.virtual.create('Gadget', gadget('default/g', { size: 1 }));
    await world.virtual.create('Endpoints', named('default/web', { gadget: 'g' }));
    const config = referencePatches({}, true);
    const daemon = await world.startSync({ config, kubeconfigs: { virtual: virtual.path } });
    expect(await world.whenEvent('default/web', 'ReferenceNotFound')).toContain('refused by the test');
    isBroken = false;
    await importedTo(world, 'Gadget', 'default/g');
    await daemon.whenMetric('endpoint_syncer_referenced_kinds_missing', (kinds) => kinds === 0);
  });

  test('leave the name of an object of the host in its copy, and imports on the host', async ({ expect }) => {
    await using world = await newEmbeddedWorld();
    const [virtual, host] = [await world.proxy('virtual'), await world.proxy('host')];
    const kubeconfigs = { virtual: virtual.path, host: host.path };
    const config = referencePatches();
    await world.host.create('Secret', secret(`${world.hostNamespace}/ours`));
    await world.virtual.create('Secret', secret('default/s'));
    await world.virtual.create('Endpoints', named('default/web', { secret: 'ours' }));
    await world.virtual.create('Endpoints', named('default/other', { secret: 's' }));
    const first = await world.startSync({ config, kubeconfigs });
    const nameIn = (key: string) => async (): Promise<string | undefined> =>
      (await world.findCopy(key))?.metadata.annotations?.[NOTES.secret];
    await eventually(nameIn('default/web'), (name) => name === 'ours');
    await importedTo(world, 'Secret', 'default/s');
    const ofImport = short(world, 'default/s')[1];
    await eventually(nameIn('default/other'), (name) => name === ofImport);
    await first.stop();

    // As when the server has lost the key with which Secrets are encrypted.
    host.behaviour = {
      decide: ({ path }) => (path.includes('/secrets') ? refusal(500, 'InternalError') : { kind: 'pass' }),
    };
    const second = await world.startSync({ config, kubeconfigs });
    await world.mergeVirtual('default/web', {
      metadata: { annotations: { 'example.com/more': 'x' } },
    });
    const copy = await world.whenCopy(
      'default/web',
      ({ metadata }) => metadata.annotations?.['example.com/more'] === 'x',
    );
    expect(copy.metadata.annotations?.[NOTES.secret]).toBe('ours');
    await world.mergeCopy('default/web', {
      metadata: { annotations: { 'example.com/back': 'x' } },
    });
    const back = await world.whenVirtual(
      'default/web',
      ({ metadata }) => metadata.annotations?.['example.com/back'] === 'x',
    );
    expect(back.metadata.annotations?.[NOTES.secret]).toBe('ours');
    expect(await nameIn('default/other')()).toBe(ofImport);
    await world.settle(second);
    expect(await world.host.find('Secret', ...short(world, 'default/s'))).toBeDefined();
  });
});
