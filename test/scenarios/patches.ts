/** The four patch modes from end to end, both directions, and patches that fail or time out. */

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import type { JsonValue } from '../../src/base/json.ts';
import { safeConcat } from './expected-copy.ts';
import { eventually } from '../support/eventually.ts';
import { endpoints, subset, subsetsOf } from './objects.ts';
import { sharedProcess } from './shared-world.ts';
import { pair, type NewWorld, type StartOptions } from './world.ts';

const at = (name: string): string => `metadata.annotations["example.com/${name}"]`;
const note = (object: KubeObject, name: string): string | undefined =>
  object.metadata.annotations?.[`example.com/${name}`];
const notes = (values: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`example.com/${name}`, value]));

const PATCHES: JsonValue = [
  {
    path: at('url'),
    expression: 'value + "." + context.vcluster.name',
    reverseExpression: 'value.slice(0, -(context.vcluster.name.length + 1))',
  },
  { path: at('upper'), expression: 'value.toUpperCase()' },
  { path: at('back'), reverseExpression: 'value.toLowerCase()' },
  { path: at('secret'), reference: { apiVersion: 'v1', kind: 'Secret' } },
  { path: at('selector'), labels: {} },
  {
    path: 'subsets[*].addresses[*].hostname',
    expression: 'value === "none" ? "" : value + "-h"',
    reverseExpression: 'value === "none-h" ? "" : value.replace(/-h$/, "")',
  },
  { path: 'subsets[*].ports[*].port', expression: 'value + 1000' },
  { path: at('constant'), expression: '"fixed"' },
  { path: at('context'), expression: 'context.virtualObject.metadata.name + "@" + context.path' },
  { path: at('seen'), expression: 'context.hostObject ? "on host" : "not yet"' },
  {
    path: at('endless'),
    expression: 'String(Number(context.hostObject?.metadata.annotations["example.com/endless"] ?? 0) + 1)',
  },
  { path: at('removed'), expression: 'null' },
  { path: at('dns'), expression: 'virtualToHostDNS(value)' },
];

export function patchScenarios(newWorld: NewWorld): void {
  describe('patches', { concurrent: false }, () => {
    const shared = sharedProcess(newWorld, () => ({
      config: { sync: { toHost: { endpoints: { enabled: true, patches: PATCHES } } } },
    }));

    test('that read the host object are run again after its creation, a limited number of times', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      await world.createVirtual(`${ns}/reads`, { annotations: notes({ seen: 'x' }) });
      await world.whenCopy(`${ns}/reads`, (copy) => note(copy, 'seen') === 'on host');
      await world.createVirtual(`${ns}/counts`, { annotations: notes({ endless: 'x' }) });
      await world.settle(daemon);
      expect(Number(note(await world.getCopy(`${ns}/counts`), 'endless'))).toBeLessThan(10);
    });

    test('create a missing key with missingPaths: create, and only on the host', async () => {
      await using world = await newWorld();
      const patches = [
        { path: at('made'), expression: 'valueExists ? value + "-h" : "made"', reverseExpression: 'value' },
        { path: 'subsets[*].addresses[*].hostname', expression: 'valueExists ? value : "made"' },
      ];
      const daemon = await world.startSync({
        config: {
          sync: { toHost: { endpoints: { enabled: true, patches } } },
          endpointSyncer: { patches: { missingPaths: 'create' } },
        },
      });
      const key = 'default/made';
      const given = endpoints(key, { annotations: notes({ other: 'x' }), subsets: [subset('10.1.0.1')] });
      await world.virtual.create('Endpoints', given);
      await world.whenCopy(key, (copy) => note(copy, 'made') === 'made' && hostnameOf(copy) === 'made');
      await world.settle(daemon);
      const virtual = await world.virtual.get('Endpoints', ...pair(key));
      expect([note(virtual, 'made'), hostnameOf(virtual)]).toEqual([undefined, undefined]);
      await world.mergeVirtual(key, {
        metadata: { annotations: notes({ made: 'mine' }) },
      });
      await world.whenCopy(key, (copy) => note(copy, 'made') === 'mine-h');
    });

    test('that fail stop only their path with onError: path, in both directions', async () => {
      await using world = await newWorld();
      const patches = [
        {
          path: at('strict'),
          expression: 'if (value.includes("!")) throw new Error("loud"); value + "-h"',
          reverseExpression: 'if (value.includes("?")) throw new Error("unknown"); value.replace(/-h$/, "")',
        },
        {
          path: 'subsets[*].addresses[*].hostname',
          expression: 'if (value === "bad") throw new Error("bad"); value + "-h"',
          reverseExpression: 'value.replace(/-h$/, "")',
        },
      ];
      const daemon = await world.startSync({
        config: {
          sync: { toHost: { endpoints: { enabled: true, patches } } },
          endpointSyncer: { patches: { onError: 'path' } },
        },
      });
      const key = 'default/partly';
      const addressed = (ip: string, hostname: string) => ({ addresses: [{ ip, hostname }] });
      await world.createVirtual(key, {
        annotations: notes({ strict: 'no!', plain: 'a' }),
        subsets: [addressed('10.1.0.1', 'a')],
      });
      const created = await world.whenCopy(key);
      expect([note(created, 'strict'), note(created, 'plain')]).toEqual([undefined, 'a']);
      expect(subsetsOf(created)).toEqual([addressed('10.1.0.1', 'a-h')]);
      expect(await world.whenEvent(key, 'PatchFailed')).toContain('loud');
      await world.mergeVirtual(key, {
        metadata: { annotations: notes({ strict: 'yes' }) },
      });
      await world.whenCopy(key, (copy) => note(copy, 'strict') === 'yes-h');
      await world.settle(daemon);
      // The value that fails stays as it was on the host; the new address arrives, and the failing hostname stays that of its address.
      await world.mergeVirtual(key, {
        metadata: { annotations: notes({ strict: 'again!', plain: 'b' }) },
        subsets: [{ addresses: [{ ip: '10.1.0.0' }, { ip: '10.1.0.1', hostname: 'bad' }] }],
      });
      const copy = await world.whenCopy(key, (object) => note(object, 'plain') === 'b');
      expect(note(copy, 'strict')).toBe('yes-h');
      expect(subsetsOf(copy)).toEqual([
        { addresses: [{ ip: '10.1.0.0' }, { ip: '10.1.0.1', hostname: 'a-h' }] },
      ]);
      // On the way back, too: what cannot be translated stays on the host, and is taken as soon as it can.
      await world.mergeVirtual(key, {
        metadata: { annotations: notes({ strict: 'fine' }) },
        subsets: [addressed('10.1.0.1', 'b')],
      });
      await world.whenCopy(key, (object) => note(object, 'strict') === 'fine-h');
      await world.settle(daemon);
      await world.mergeCopy(key, {
        metadata: { annotations: notes({ strict: 'what?', plain: 'c' }) },
      });
      const virtual = await world.whenVirtual(key, (object) => note(object, 'plain') === 'c');
      expect(note(virtual, 'strict')).toBe('fine');
      expect(note(await world.getCopy(key), 'strict')).toBe('what?');
      await world.mergeCopy(key, {
        metadata: { annotations: notes({ strict: 'known-h' }) },
      });
      await world.whenVirtual(key, (object) => note(object, 'strict') === 'known');
    });

    test('with filters change only what these select, in both directions', async () => {
      await using world = await newWorld();
      const patches = [
        {
          path: 'subsets[*].ports[?(@.name === "https")].port',
          expression: 'value + 1000',
          reverseExpression: 'value - 1000',
        },
        { path: 'metadata.annotations[?(@.includes("{{"))]', expression: 'value.replaceAll(/[{}]/g, "")' },
      ];
      const daemon = await world.startSync({
        config: { sync: { toHost: { endpoints: { enabled: true, patches } } } },
      });
      const key = 'default/filtered';
      const ports = (http: number, https: number) => [
        { name: 'http', port: http, protocol: 'TCP' },
        { name: 'https', port: https, protocol: 'TCP' },
      ];
      const subsets = [{ addresses: [{ ip: '10.1.0.1' }], ports: ports(80, 443) }];
      const annotations = notes({ template: '{{x}}', plain: 'y' });
      await world.createVirtual(key, { annotations, subsets });
      const copy = await world.whenCopy(key);
      expect(subsetsOf(copy)).toEqual([{ addresses: [{ ip: '10.1.0.1' }], ports: ports(80, 1443) }]);
      expect([note(copy, 'template'), note(copy, 'plain')]).toEqual(['x', 'y']);
      await world.settle(daemon);
      // The selected port comes back, and so does what no filter selects; the translated annotation does not.
      await world.mergeCopy(key, {
        metadata: { annotations: notes({ template: 'changed', plain: 'z' }) },
        subsets: [{ addresses: [{ ip: '10.1.0.1' }], ports: ports(80, 1444) }],
      });
      const virtual = await world.whenVirtual(key, (object) => note(object, 'plain') === 'z');
      expect(note(virtual, 'template')).toBe('{{x}}');
      expect(subsetsOf(virtual)).toEqual([{ addresses: [{ ip: '10.1.0.1' }], ports: ports(80, 444) }]);
      await world.whenCopy(key, (object) => note(object, 'template') === 'x');
      await world.settle(daemon);
      expect(subsetsOf(await world.getCopy(key))).toMatchObject([{ ports: ports(80, 1444) }]);
    });

    test('of all modes are applied towards the host, and the virtual object is not changed', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const key = `${ns}/web`;
      const annotations = notes({
        url: 'svc',
        upper: 'loud',
        secret: 'tls',
        selector: 'app=web, release in (a,b)',
        constant: 'x',
        context: 'x',
        removed: 'x',
        dns: `db.${ns}.svc.cluster.local`,
      });
      await world.createVirtual(key, { annotations, subsets: [named('a', 80)] });
      const copy = await world.whenCopy(key);
      const release = createHash('sha256').update('release').digest('hex').slice(0, 10);
      expect({
        url: note(copy, 'url'),
        upper: note(copy, 'upper'),
        selector: note(copy, 'selector'),
        constant: note(copy, 'constant'),
        context: note(copy, 'context'),
        removed: note(copy, 'removed'),
        dns: note(copy, 'dns'),
      }).toEqual({
        url: `svc.${world.vcluster}`,
        upper: 'LOUD',
        selector: `app=web,${safeConcat('vcluster.loft.sh/label', world.vcluster, 'x', release)} in (a,b)`,
        constant: 'fixed',
        context: 'web@metadata.annotations."example.com/context"',
        removed: undefined,
        dns: `db-x-${ns}-x-${world.vcluster}.${world.hostNamespace}.svc.cluster.local`,
      });
      expect(note(copy, 'secret')).toMatch(/^v[0-9a-z]{13}$/);
      expect(subsetsOf(copy)).toEqual([named('a-h', 1080)]);
      await world.settle(daemon);
      const virtual = await world.getVirtual(key);
      expect(virtual.metadata.annotations).toEqual(annotations);
      expect(subsetsOf(virtual)).toEqual([named('a', 80)]);
    });

    test('with a reverse expression sync a host change back, without further writes', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/both`;
      await world.createVirtual(key, { annotations: notes({ url: 'svc' }) });
      await world.whenCopy(key, (copy) => note(copy, 'url') === `svc.${world.vcluster}`);
      await world.whenIdle(daemon);
      const log = [await world.log('host'), await world.log('virtual')] as const;
      await onHost(key, { metadata: { annotations: notes({ url: `other.${world.vcluster}` }) } });
      await world.whenVirtual(key, (virtual) => note(virtual, 'url') === 'other');
      await world.settle(daemon);
      expect(note(await world.getCopy(key), 'url')).toBe(`other.${world.vcluster}`);
      const writes = log.flatMap((one) => world.writesIn(one));
      expect(writes.length - 1).toBeLessThanOrEqual(2);
      await world.mergeVirtual(key, {
        metadata: { annotations: notes({ url: 'third' }) },
      });
      await world.whenCopy(key, (copy) => note(copy, 'url') === `third.${world.vcluster}`);
    });

    test('with only an expression revert a change on the host', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/forward`;
      const annotations = notes({ upper: 'loud', removed: 'x' });
      await world.createVirtual(key, { annotations });
      await world.whenCopy(key, (copy) => note(copy, 'upper') === 'LOUD');
      await onHost(key, { metadata: { annotations: notes({ upper: 'edited', removed: 'edited' }) } });
      await world.whenCopy(key, (copy) => note(copy, 'upper') === 'LOUD');
      await world.settle(daemon);
      expect((await world.getVirtual(key)).metadata.annotations).toEqual(annotations);
      expect(note(await world.getCopy(key), 'removed')).toBeUndefined();
    });

    test('with only a reverse expression keep the value of the host', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/reverse`;
      await world.createVirtual(key, { annotations: notes({ back: 'mine' }) });
      const copy = await world.whenCopy(key);
      expect(note(copy, 'back')).toBeUndefined();
      await onHost(key, { metadata: { annotations: notes({ back: 'FROM-HOST' }) } });
      await world.whenVirtual(key, (virtual) => note(virtual, 'back') === 'from-host');
      await world.mergeVirtual(key, {
        metadata: { annotations: notes({ back: 'changed' }) },
      });
      await world.settle(daemon);
      expect(note(await world.getCopy(key), 'back')).toBe('FROM-HOST');
    });

    test('make a path below subsets two-way: values are synced back, any other change is drift', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/two-way`;
      await world.createVirtual(key, { subsets: [named('a', 80)] });
      await world.whenCopy(key, (copy) => hostnameOf(copy) === 'a-h');
      await onHost(key, { subsets: [named('b-h', 1080)] });
      await world.whenVirtual(key, (virtual) => hostnameOf(virtual) === 'b');
      await onHost(key, { subsets: [named('c-h', 1081)] });
      await world.whenCopy(key, (copy) => hostnameOf(copy) === 'b-h' && portOf(copy) === 1080);
      await world.settle(daemon);
      expect(subsetsOf(await world.getVirtual(key))).toEqual([named('b', 80)]);

      daemon.signal('SIGSTOP');
      await onHost(key, { subsets: [named('host-h', 1080)] });
      await world.mergeVirtual(key, { subsets: [named('virtual', 80)] });
      daemon.signal('SIGCONT');
      await world.whenCopy(key, (copy) => hostnameOf(copy) === 'virtual-h');
      await world.settle(daemon);
      expect(hostnameOf(await world.getVirtual(key))).toBe('virtual');
    });

    test('with an empty result, which API servers do not store, are not mistaken for a change on the host', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/emptied`;
      const of = (...names: string[]): JsonValue => [
        {
          addresses: names.map((hostname, i) => ({ ip: `10.1.0.${i + 1}`, ...(hostname && { hostname }) })),
          ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
        },
      ];
      await world.virtual.create('Endpoints', { ...endpoints(key), subsets: of('none', 'a') });
      await world.whenCopy(key, (copy) => secondHostnameOf(copy) === 'a-h');
      await world.mergeVirtual(key, { metadata: { labels: { touched: '1' } } });
      await world.whenCopy(key, (copy) => copy.metadata.labels?.['touched'] === '1');
      await world.settle(daemon);
      expect(subsetsOf(await world.getVirtual(key))).toEqual(of('none', 'a'));

      const subsets = subsetsOf(await world.getCopy(key)).map((one) => ({
        ...one,
        addresses: one.addresses?.with(1, { ip: '10.1.0.2', hostname: 'b-h' }),
      }));
      await onHost(key, { subsets });
      await world.whenVirtual(key, (virtual) => secondHostnameOf(virtual) === 'b');
      await world.settle(daemon);
      expect(subsetsOf(await world.getVirtual(key))).toEqual(of('none', 'b'));
    });

    test('do not change objects without the path', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/plain`;
      await world.createVirtual(key, { subsets: [{ addresses: [{ ip: '10.1.0.1' }] }] });
      expect(await world.whenCopied(key)).toBeDefined();
    });

    function onHost(key: string, patch: unknown): Promise<KubeObject> {
      const { world } = shared();
      return world.mergeCopy(key, patch);
    }
  });

  restartedPatchScenarios(newWorld);
  failingPatchScenarios(newWorld);
}

function restartedPatchScenarios(newWorld: NewWorld): void {
  const config = (patches: JsonValue): StartOptions => ({
    config: { sync: { toHost: { endpoints: { enabled: true, patches } } } },
  });
  const annotations = notes({
    url: 'svc',
    upper: 'loud',
    secret: 'tls',
    selector: 'app=web',
    constant: 'x',
    removed: 'x',
  });

  describe('patches, after a restart,', () => {
    test('write nothing, and no patched value is synced back', async ({ expect }) => {
      await using world = await newWorld();
      const first = await world.startSync(config(PATCHES));
      const key = 'default/quiet';
      await world.createVirtual(key, { annotations, subsets: [named('a', 80)] });
      await world.whenCopy(key, (copy) => note(copy, 'upper') === 'LOUD');
      await world.mergeCopy(key, {
        metadata: { annotations: notes({ back: 'FROM-HOST' }) },
      });
      await world.whenVirtual(key, (virtual) => note(virtual, 'back') === 'from-host');
      await world.settle(first);
      await first.stop();
      const log = [await world.log('host'), await world.log('virtual')] as const;
      await world.settle(await world.startSync(config(PATCHES)));
      expect(log.flatMap((one) => world.writesIn(one))).toEqual([]);
    });

    test('apply changes made in the meantime: values on either side, and the patches themselves', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const first = await world.startSync(config(PATCHES));
      const [values, rules] = ['default/values', 'default/rules'];
      for (const key of [values, rules])
        await world.createVirtual(key, { annotations, subsets: [named('a', 80)] });
      await world.settle(first);
      await first.stop();
      await world.mergeCopy(values, {
        metadata: { annotations: notes({ url: `host.${world.vcluster}`, upper: 'edited' }) },
        subsets: [named('host-h', 1080)],
      });
      const second = await world.startSync(config(PATCHES));
      await world.whenVirtual(
        values,
        (virtual) => note(virtual, 'url') === 'host' && hostnameOf(virtual) === 'host',
      );
      await world.whenCopy(values, (copy) => note(copy, 'upper') === 'LOUD');
      await world.settle(second);
      await second.stop();

      const third = await world.startSync(config([{ path: at('url'), expression: 'value + "!"' }]));
      await world.settle(third);
      const copy = await world.getCopy(rules);
      expect(copy.metadata.annotations).toMatchObject({ ...annotations, ...notes({ url: 'svc!' }) });
      expect(subsetsOf(copy)).toEqual([named('a', 80)]);
      const virtual = await world.getVirtual(rules);
      expect(virtual.metadata.annotations).toEqual(annotations);
      expect(subsetsOf(virtual)).toEqual([named('a', 80)]);
    });
  });
}

function failingPatchScenarios(newWorld: NewWorld): void {
  describe('a patch that fails', () => {
    const hang = '(() => { while (true) {} })()';
    const builtin = '[].indexOf.call({ length: 2 ** 53 - 1 }, 1)';
    const shared = sharedProcess(newWorld, () => ({
      config: {
        endpointSyncer: { patches: { onError: 'object' } },
        sync: {
          toHost: {
            endpoints: {
              patches: [
                { path: at('fails'), expression: 'value === "boom" ? value.no.such : value' },
                { path: at('hangs'), expression: `value === "loop" ? ${hang} : value + "!"` },
                { path: at('builtin'), expression: `value === "loop" ? ${builtin} : value + "!"` },
                { path: 'subsets', expression: 'value.length === 2 ? [{ ports: "none" }] : value' },
              ],
            },
          },
        },
      },
    }));

    test('is reported in an Event on its object, other objects are synced; a corrected object is synced', async ({
      expect,
    }) => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const [bad, good] = [`${ns}/bad`, `${ns}/good`];
      await world.createVirtual(bad, { annotations: notes({ fails: 'boom' }) });
      await world.createVirtual(good, { annotations: notes({ fails: 'fine' }) });
      await world.whenCopied(good);
      const message = await world.whenEvent(bad, 'PatchFailed');
      expect(message).toContain('patches[0]');
      expect(message).toContain('example.com/fails');
      expect(message).toContain('at column 29 of: value === "boom"');
      await daemon.whenMetric('endpoint_syncer_patch_errors_total', (errors) => errors > 0, {
        reason: 'runtime',
      });
      await world.settle(daemon);
      expect(await world.findCopy(bad)).toBeUndefined();
      await world.mergeVirtual(bad, {
        metadata: { annotations: notes({ fails: 'ok' }) },
      });
      await world.whenCopied(bad);
    });

    test('on an update leaves the copy unchanged', async ({ expect }) => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/was-good`;
      await world.createVirtual(key, { annotations: notes({ fails: 'fine' }) });
      const copy = await world.whenCopied(key);
      await world.mergeVirtual(key, {
        metadata: { annotations: notes({ fails: 'boom' }), labels: { more: '1' } },
        subsets: [subset('10.1.0.2')],
      });
      await world.whenEvent(key, 'PatchFailed');
      await world.settle(daemon);
      expect(await world.getCopy(key)).toEqual(copy);
    });

    test('because its result is not a valid Endpoints object is reported as a failed patch', async ({
      expect,
    }) => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/invalid`;
      await world.createVirtual(key, { subsets: [subset('10.1.0.1'), subset('10.1.0.2')] });
      expect(await world.whenEvent(key, 'PatchFailed')).toContain('patches[3]');
      expect(await world.findCopy(key)).toBeUndefined();
    });

    test('by never ending fails its object while all others flow', async ({ expect }) => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const count = world.clusters.kind === 'real' ? 1000 : 200;
      // Objects of the same namespace that have not succeeded yet are evaluated in the throttled process for some time.
      const hostile = await namespace();
      const [loop, builtinLoop] = [`${hostile}/loop`, `${hostile}/builtin`];
      const startedMs = performance.now();
      const bystanders = createMany(count, async (i) => {
        await world.createVirtual(`${ns}/by-${i}`, { annotations: notes({ hangs: `v${i}`, builtin: 'x' }) });
      }).then(() => performance.now() - startedMs);
      await world.createVirtual(loop, { annotations: notes({ hangs: 'loop' }) });
      await world.createVirtual(builtinLoop, { annotations: notes({ builtin: 'loop' }) });
      const createdAt = Date.now();
      const failed = [loop, builtinLoop].map(async (key) => {
        const note = await world.whenEvent(key, 'PatchFailed');
        const [event] = await world.eventsOn(key, 'PatchFailed');
        return { note, afterMs: Date.parse(textOf(event?.['eventTime'])) - createdAt };
      });
      const failures = await Promise.all(failed);
      const createdMs = await bystanders;
      expect(Math.max(...failures.map(({ afterMs }) => afterMs))).toBeLessThan(30_000);
      expect(failures[0]?.note).toContain('patches[1]');
      expect(failures[1]?.note).toContain('patches[2]');
      await world.whenCopy(`${ns}/by-${count - 1}`, (copy) => note(copy, 'hangs') === `v${count - 1}!`);
      const copies = await eventually(
        async () => (await world.copies()).filter(({ metadata }) => metadata.name.startsWith('by-')),
        (found) => found.length === count,
        { what: 'all bystanders' },
      );
      expect(copies).toHaveLength(count);
      // On a busy machine, the servers take longer for both: copying takes them about twice as long as creating.
      expect(performance.now() - startedMs).toBeLessThan(Math.max(50_000, 6 * createdMs));
    });
  });
}

async function createMany(count: number, create: (i: number) => Promise<void>): Promise<void> {
  const width = 8;
  await Promise.all(
    Array.from({ length: width }, async (_, start) => {
      for (let i = start; i < count; i += width) await create(i);
    }),
  );
}

function named(hostname: string, port: number): ReturnType<typeof subset> {
  return { addresses: [{ ip: '10.1.0.1', hostname }], ports: [{ name: 'http', port, protocol: 'TCP' }] };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const hostnameOf = (object: KubeObject): string | undefined => subsetsOf(object)[0]?.addresses?.[0]?.hostname;
const secondHostnameOf = (object: KubeObject): string | undefined =>
  subsetsOf(object)[0]?.addresses?.[1]?.hostname;
const portOf = (object: KubeObject): number | undefined => subsetsOf(object)[0]?.ports?.[0]?.port;
