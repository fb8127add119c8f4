/** `diff`, `status` and `cleanup` compared with a daemon: they show the changes that it makes, and delete the objects that it created. */

import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { capturedRun, type CapturedRun } from '../cli/captured-run.ts';
import { endpoints, service, subset } from './objects.ts';
import { eventually } from '../support/eventually.ts';
import { leastRights } from './operation.ts';
import { publishedHash, rewrite } from './reload.ts';
import type { NewWorld, World } from './world.ts';

const CONFIG: JsonObject = {
  sync: {
    toHost: {
      endpoints: {
        patches: [
          {
            path: 'metadata.annotations.owner',
            expression: '"team-" + value',
            reverseExpression: 'value.replace(/^team-/, "")',
          },
          { path: 'metadata.annotations.secret', reference: { apiVersion: 'v1', kind: 'Secret' } },
          { path: 'metadata.labels.broken', expression: 'JSON.parse(value).b' },
        ],
      },
    },
  },
};

interface StatusJson {
  kind: string;
  virtual: { namespace: string; name: string };
  host: { namespace: string; name: string };
  state: string;
  reason: string;
  lastChange: string;
}

/** A command with the configuration of this world. */
async function run(world: World, args: readonly string[], config: JsonObject = CONFIG): Promise<CapturedRun> {
  const path = world.writeConfig(world.configuration({ config }, 0));
  const [name = '', ...rest] = args;
  return capturedRun([name, '--config', path, ...rest]);
}

async function statusOf(world: World, ...args: string[]): Promise<StatusJson[]> {
  const { out } = await run(world, ['status', '-o', 'json', ...args]);
  return JSON.parse(out) as StatusJson[];
}

/** Waits until a diff is empty, imports included, and returns it. */
export function whenNoDiff(world: World, config: JsonObject = CONFIG): Promise<CapturedRun> {
  return eventually(
    () => run(world, ['diff'], config),
    ({ code }) => code === 0,
    { what: 'an empty diff' },
  );
}

function secret(key: string, text: string): KubeObject {
  const [namespace = '', name = ''] = key.split('/');
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace, name },
    data: { key: Buffer.from(text).toString('base64') },
  };
}

/** Host objects by name, without fields that API servers set. */
async function hostState(world: World): Promise<Record<string, unknown>> {
  const found = [
    ...(await world.host.list('Endpoints', world.hostNamespace)),
    ...(await world.host.list('Secret', world.hostNamespace)),
  ];
  return Object.fromEntries(
    found.map(({ metadata, ...content }) => {
      const { name, annotations, labels } = metadata;
      return [name, { ...content, apiVersion: undefined, kind: undefined, annotations, labels }];
    }),
  );
}

export function liveCommandScenarios(newWorld: NewWorld): void {
  describe('diff', () => {
    test('shows the changes that the daemon makes, and none afterwards', async () => {
      await using world = await newWorld();
      await world.virtual.create('Secret', secret('default/tls', 'hidden'));
      await world.createVirtual('default/web', { annotations: { owner: 'shop', secret: 'tls' } });
      const before = await run(world, ['diff']);
      expect(before.code).toBe(1);
      expect(before.out).toContain(
        `+++ MERGED/host/v1.Endpoints.${world.hostNamespace}.${world.hostName('default/web')}\n`,
      );
      expect(before.out).toContain('+    owner: team-shop\n');
      expect(before.out).not.toContain('vcluster.loft.sh/object-name');
      expect(before.out).toContain('+  key: "***"\n');
      expect(before.out).not.toContain(Buffer.from('hidden').toString('base64'));
      expect((await run(world, ['diff', '--show-bookkeeping'])).out).toContain(
        '+    vcluster.loft.sh/object-name: web\n',
      );
      const ofSecret = await run(world, ['diff', '--kind', 'Secret', 'default/tls']);
      expect(ofSecret).toMatchObject({ code: 1, err: '' });
      expect(ofSecret.out).toContain('+  key: "***"\n');
      expect(ofSecret.out).not.toContain('Endpoints');
      await world.virtual.create('Secret', secret('default/unused', 'a'));
      const unused = await run(world, ['diff', '--kind', 'Secret', 'default/unused', 'default/none']);
      expect(unused).toMatchObject({
        code: 2,
        out: '',
        err: 'error: Secret "default/none" exists in neither cluster\n',
      });

      const daemon = await world.startSync({ config: CONFIG });
      await world.whenCopy('default/web');
      await world.whenIdle(daemon);
      expect((await whenNoDiff(world)).out).toBe('');

      await daemon.stop();
      await world.mergeCopy('default/web', {
        metadata: { annotations: { owner: 'team-billing' } },
      });
      const back = await run(world, ['diff', 'default/web']);
      expect(back.code).toBe(1);
      expect(back.out).toContain('--- LIVE/virtual/v1.Endpoints.default.web\n');
      expect(back.out).toMatch(/-\s+owner: shop\n\+\s+owner: billing\n/);
    });

    test('distinguishes errors from differences: exit 2', async () => {
      await using world = await newWorld();
      await world.createVirtual('default/bad', { labels: { broken: 'x' } });
      const failing = await run(world, ['diff'], {
        ...CONFIG,
        endpointSyncer: { patches: { onError: 'object' } },
      });
      expect(failing).toMatchObject({ code: 2, out: '' });
      expect(failing.err).toMatch(
        /^failed Endpoints default\/bad: patches\[2\] at metadata\.labels\.broken: /,
      );
      const unknown = await run(world, ['diff', 'default/none']);
      expect(unknown).toMatchObject({
        code: 2,
        err: 'error: object "default/none" exists in neither cluster\n',
      });
      const unreachable = await run(world, ['diff'], {
        endpointSyncer: { virtual: { kubeconfig: '/nowhere/kubeconfig' } },
      });
      expect(unreachable.code).toBe(2);
    });

    test('agrees with the daemon on whole states', async () => {
      await using world = await newWorld();
      const daemon = await world.startSync({ config: CONFIG });
      await world.virtual.create('Secret', secret('default/tls', 'a'));
      for (const [at, annotations] of [
        { owner: 'a' },
        { secret: 'tls' },
        { plain: '1' },
        { secret: 'none' },
      ].entries())
        await world.createVirtual(`default/e${at}`, { annotations });
      await world.settle(daemon);
      await whenNoDiff(world);
      await daemon.stop();

      await world.mergeVirtual('default/e0', {
        metadata: { annotations: { owner: 'b' } },
        subsets: [subset('10.1.0.7')],
      });
      await world.deleteVirtual('default/e1');
      await world.virtual.create('Service', service('default/e2', { app: 'a' }));
      await world.mergeCopy('default/e3', {
        metadata: { labels: { host: 'x' } },
        subsets: [],
      });
      const shown = await run(world, ['diff']);
      const changed = [...shown.out.matchAll(/^\+\+\+ MERGED\/(\S+)$/gmu)].map(([, file = '']) => file);
      const host = (key: string): string => `host/v1.Endpoints.${world.hostNamespace}.${world.hostName(key)}`;
      const names = changed.filter((file) => !file.includes('.Secret.') && !file.includes('fence-'));
      expect(new Set(names)).toEqual(
        new Set([
          host('default/e0'),
          host('default/e1'),
          host('default/e2'),
          host('default/e3'),
          'virtual/v1.Endpoints.default.e3',
        ]),
      );
      const again = await world.startSync({ config: CONFIG });
      await world.settle(again);
      expect((await whenNoDiff(world)).out).toBe('');
      const before = await hostState(world);
      await world.whenIdle(again);
      expect(await hostState(world)).toEqual(before);
    });
  });

  describe('status', () => {
    test('lists every object with its host name, state and reason', async () => {
      await using world = await newWorld();
      await world.virtual.create('Secret', secret('default/tls', 'a'));
      await world.createVirtual('default/web', { annotations: { secret: 'tls' }, labels: { app: 'web' } });
      await world.createVirtual('default/bad', { labels: { broken: 'x' } });
      await world.createVirtual('default/taken');
      await world.virtual.create('Service', service('default/pods', { app: 'pods' }));
      await world.createVirtual('default/pods');
      await world.host.create('Endpoints', endpoints(world.hostKey('default/taken').join('/')));
      const states = (rows: readonly StatusJson[]): Record<string, string> =>
        Object.fromEntries(
          rows
            .filter(({ virtual }) => virtual.name !== 'kubernetes')
            .map((row) => [`${row.kind} ${row.virtual.name}`, `${row.state} ${row.reason}`.trim()]),
        );
      expect(states(await statusOf(world))).toMatchObject({ 'Endpoints web': 'pending no host copy' });

      const daemon = await world.startSync({ config: CONFIG });
      await world.whenCopy('default/web');
      await world.whenIdle(daemon);
      await expect
        .poll(async () => states(await statusOf(world)))
        .toEqual({
          'Endpoints web': 'synced',
          'Endpoints bad': 'failed PatchFailed',
          'Endpoints taken': 'refused NotManaged',
          'Endpoints pods': 'skipped service has a selector',
          'Secret tls': 'synced',
        });
      const rows = await statusOf(world);
      const web = rows.find(({ kind, virtual }) => kind === 'Endpoints' && virtual.name === 'web');
      expect(web).toEqual({
        kind: 'Endpoints',
        virtual: { namespace: 'default', name: 'web' },
        host: { namespace: world.hostNamespace, name: world.hostName('default/web') },
        state: 'synced',
        reason: '',
        lastChange: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
      });

      expect((await statusOf(world, '-l', 'app=web')).map(({ virtual }) => virtual.name)).toEqual(['web']);
      expect(await statusOf(world, '-n', 'elsewhere')).toEqual([]);
      const table = await run(world, ['status', '-A', '-o', 'wide']);
      expect(table.out).toMatch(/^KIND +NAMESPACE +NAME +HOST +STATE +REASON +AGE +WHY\n/);
      expect(table.out).not.toContain('skipped');
      const note = 'note: endpoints: patches[0], path metadata.annotations.owner: no object has a match\n';
      expect(table.err).toBe(`1 skipped object is not listed: see --all\n${note}`);
      const all = await run(world, ['status', '--all', '-o', 'wide']);
      expect(all.out).toContain('Service "default/pods" has a selector');
      expect(all.err).toBe(note);
      expect((await run(world, ['status', '-l', 'app=web', '-o', 'name'])).out).toBe('endpoints/web\n');
      const template = '{[*].host.name}{"\\n"}';
      expect((await run(world, ['status', '-l', 'app=web', '-o', `jsonpath=${template}`])).out).toBe(
        `${world.hostName('default/web')}\n`,
      );
      expect(await run(world, ['status', '-l', 'app=('])).toMatchObject({ code: 2 });
    });

    test('names the paths of patches that match in no object', async () => {
      await using world = await newWorld();
      await world.createVirtual('default/web', { labels: { app: 'web' } });
      const paths = ['metadata.labels.app', 'metadata.labels.ap'];
      const patches = paths.map((path) => ({ path, expression: 'value' }));
      const found = await run(world, ['status', '-o', 'name'], {
        sync: { toHost: { endpoints: { patches } } },
      });
      expect(found).toMatchObject({
        out: expect.stringContaining('endpoints/web\n') as string,
        err: 'note: endpoints: patches[1], path metadata.labels.ap: no object has a match\n',
        code: 0,
      });
    });
  });

  describe('explain', () => {
    test('prints the reason in one sentence, then the stages', async () => {
      await using world = await newWorld();
      await world.virtual.create('Secret', secret('default/tls', 'a'));
      await world.createVirtual('default/web', { annotations: { owner: 'shop', secret: 'tls' } });
      const daemon = await world.startSync({ config: CONFIG });
      await world.whenCopy('default/web');
      await world.whenIdle(daemon);
      await whenNoDiff(world);
      await daemon.stop();
      const host = world.hostKey('default/web').join('/');
      const text = await run(world, ['explain', 'default/web']);
      expect(text).toMatchObject({ code: 0, err: '' });
      expect(text.out).toMatch(/^Endpoints "default\/web" is synced to ".+"\.\n\n/);
      expect(text.out).toContain(`name         default/web -> ${host}, which is the copy of this object\n`);
      expect(text.out).toContain('patches[0]   metadata.annotations.owner: "shop" -> "team-shop"\n');
      expect(text.out).toContain('write        nothing to write\n');
      const byHost = await run(world, ['explain', '--host', world.hostName('default/web')]);
      // Its Events are older by now.
      const [first, second] = [text, byHost].map(({ out }) => out.replaceAll(/\S+ ago/gu, 'AGO'));
      expect(second).toBe(first);
      expect((await run(world, ['explain', 'default/tls'])).out).toMatch(
        /^Secret "default\/tls" is imported into the host/,
      );
      const none = await run(world, ['explain', 'default/none']);
      expect(none).toMatchObject({ code: 1, out: '' });
      expect(none.err).toContain('exists neither in the virtual cluster nor on the host');

      await world.mergeCopy('default/web', {
        metadata: { annotations: { owner: 'team-billing' } },
      });
      const json = await run(world, ['explain', 'default/web', '-o', 'json']);
      expect(JSON.parse(json.out)).toMatchObject({
        kind: 'Endpoints',
        virtual: { namespace: 'default', name: 'web' },
        host: { namespace: world.hostNamespace, name: world.hostName('default/web') },
        state: 'pending',
        stages: {
          gate: { isPassed: true },
          merge: [{ path: 'metadata.annotations.owner', winner: 'host', before: 'shop', after: 'billing' }],
          write: [
            { cluster: 'virtual', verb: 'update' },
            { cluster: 'host', verb: 'update' },
          ],
        },
      });
    });

    test('says once why a patch fails, and shows where', async () => {
      await using world = await newWorld();
      const patches = [{ path: 'metadata.annotations.owner', expression: 'value.nope()' }];
      const config: JsonObject = { sync: { toHost: { endpoints: { patches } } } };
      await world.createVirtual('default/web', { annotations: { owner: 'shop' } });
      await world.startSync({ config });
      await world.whenEvent('default/web', 'PatchFailed');
      await world.whenEvent('default/web', 'Synced');
      const { out } = await run(world, ['explain', 'default/web'], config);
      expect(out.split('value.nope is not a function')).toHaveLength(2);
      expect(out).toMatch(/^patches\[0\] +metadata\.annotations\.owner: fails\n +value\.nope\(\)\n +\^\n/mu);
      expect(out).toMatch(/^events +Synced \d+[sm] ago: /mu);
    });

    test('names the rights that are missing', async () => {
      await using world = await newWorld();
      await world.createVirtual('default/web');
      const read = ['get', 'list', 'watch'];
      const kubeconfig = await world.clusters.userKubeconfig('host', [
        {
          apiGroups: ['', 'discovery.k8s.io'],
          resources: ['endpoints', 'endpointslices', 'services'],
          verbs: read,
          namespace: world.hostNamespace,
        },
      ]);
      const path = world.file('user.kubeconfig', kubeconfig);
      const limited: JsonObject = { endpointSyncer: { host: { kubeconfig: path } } };
      const { code, out } = await run(world, ['explain', 'default/web'], limited);
      expect(code).toBe(0);
      expect(out).toContain('is not synced: a right is missing: create endpoints in namespace');
      const other = { apiGroups: [''], resources: ['pods'], verbs: read, namespace: world.hostNamespace };
      const blind = world.file('blind.kubeconfig', await world.clusters.userKubeconfig('host', [other]));
      const nothing = await run(world, ['explain', 'default/web'], {
        endpointSyncer: { host: { kubeconfig: blind } },
      });
      expect(nothing).toMatchObject({ code: 1, err: '' });
      expect(nothing.out).toMatch(/^nothing is synced: rights are missing: .*list endpoints in namespace/);
    });
  });

  describe('a configuration that the daemon does not run', () => {
    test.each([false, true])(
      'is named instead of writes that it would not make (leader election: %s)',
      async (enabled) => {
        await using world = await newWorld();
        const syncer = { endpointSyncer: { leaderElection: { enabled } } };
        const inUse: JsonObject = { ...CONFIG, ...syncer };
        const other: JsonObject = { ...syncer, sync: {} };
        await world.createVirtual('default/web', { annotations: { owner: 'shop' } });
        const daemon = await world.startSync({ config: inUse });
        await world.whenCopy('default/web');
        await world.whenIdle(daemon);
        const whenPublished = (config: JsonObject, isSame: boolean): Promise<CapturedRun> =>
          eventually(
            () => run(world, ['diff'], config),
            ({ err }) => (err === '') === isSame,
          );
        expect(await whenPublished(inUse, true)).toEqual({ code: 0, out: '', err: '' });
        const diff = await whenPublished(other, false);
        expect(diff).toMatchObject({
          code: 1,
          err: 'note: the daemon runs another configuration, so it does not make these changes\n',
        });
        expect(diff.out).toMatch(/-\s+owner: team-shop\n\+\s+owner: shop\n/);
        expect((await run(world, ['explain', 'default/web'], other)).out).toMatch(
          /^Endpoints "default\/web" is not in sync with this configuration: the daemon runs another configuration\.\n/,
        );
        const { out } = await run(world, ['status', '-o', 'json'], other);
        expect((JSON.parse(out) as StatusJson[]).find(({ virtual }) => virtual.name === 'web')).toMatchObject(
          {
            state: 'pending',
            reason: 'another configuration',
          },
        );
        expect(await run(world, ['cleanup', '--unused', '--yes'], other)).toEqual({
          code: 1,
          out: '',
          err: 'error: the daemon runs another configuration, which may keep what this one does not; use its configuration\n',
        });

        await rewrite(daemon, (config) => ({ ...config, sync: {} }));
        await whenPublished(other, true);
        await daemon.stop();
        expect((await run(world, ['diff'], inUse)).err).toBe('');
      },
    );

    test('needs no right of the daemon: without it, nothing is compared', async () => {
      await using world = await newWorld();
      const host = world.file(
        'host.kubeconfig',
        await world.clusters.userKubeconfig('host', leastRights(world).host),
      );
      const daemon = await world.startSync({ kubeconfigs: { host } });
      await world.createVirtual('default/web');
      await world.whenCopy('default/web');
      expect(await daemon.whenLogged(/^configuration in use is not published/u)).toMatchObject({
        level: 'info',
      });
      expect((await run(world, ['diff'])).err).toBe('');
    });
  });

  describe('cleanup', () => {
    test('names what a finalizer keeps, which status calls terminating, and exits with 1', async () => {
      await using world = await newWorld();
      const config = { endpointSyncer: { services: 'vcluster' } };
      const daemon = await world.startSync({ config });
      await world.createVirtual('default/web');
      await world.createVirtual('default/gone');
      for (const key of ['default/web', 'default/gone']) await world.whenCopied(key);
      await world.mergeCopy('default/web', { metadata: { finalizers: ['example.com/hold'] } });
      await world.settle(daemon);
      await daemon.stop();
      const name = world.hostKey('default/web').join('/');
      const first = await run(world, ['cleanup', '--yes'], config);
      expect(first.code).toBe(1);
      expect(first.err).toMatch(
        new RegExp(
          `left Endpoints "${name}" in the host cluster: it is being deleted since .*Z, and waits for the finalizer example.com/hold`,
        ),
      );
      expect(first.out).not.toContain(`deleted Endpoints "${name}"`);
      expect(first.out).toContain(`deleted Endpoints "${world.hostKey('default/gone').join('/')}"`);
      const status = await run(world, ['status'], config);
      expect(status.out).toMatch(/web .* terminating +Terminating/);
      await world.mergeCopy('default/web', { metadata: { finalizers: null } });
      expect((await run(world, ['cleanup', '--yes'], config)).code).toBe(0);
    });

    test('deletes what this syncer created on both sides, and nothing else', async () => {
      await using world = await newWorld();
      await world.virtual.create('Secret', secret('default/tls', 'a'));
      await world.host.create('Secret', secret(`${world.hostNamespace}/from-host`, 'b'));
      await world.createVirtual('default/web', { annotations: { secret: 'tls' } });
      await world.createVirtual('default/back', { annotations: { secret: 'from-host' } });
      await world.createVirtual('default/kept');
      await world.host.create('Endpoints', endpoints(`${world.hostNamespace}/foreign`));
      const untouched = await hostState(world);
      const daemon = await world.startSync({ config: CONFIG });
      await world.settle(daemon);
      await eventually(
        () => world.virtual.find('Secret', 'default', 'from-host'),
        (found) => found !== undefined,
      );
      await whenNoDiff(world);
      await publishedHash(world);
      await world.mergeCopy('default/kept', {
        metadata: { labels: { 'vcluster.loft.sh/controlled-by': 'another' } },
      });
      await daemon.stop();
      const full = await hostState(world);

      const listed = await run(world, ['cleanup', '--dry-run', '-o', 'json']);
      expect(listed.code).toBe(0);
      expect(listed.err).toContain('warning: leader election is off');
      const rows = JSON.parse(listed.out) as { cluster: string; kind: string; name: string }[];
      expect(rows.map(({ cluster, kind }) => `${cluster} ${kind}`).toSorted()).toEqual(
        [
          'host Endpoints',
          'host Endpoints',
          'host Endpoints',
          'host Lease',
          'host Secret',
          'virtual Secret',
        ].toSorted(),
      );
      expect(await hostState(world)).toEqual(full);

      const asked = await run(world, ['cleanup']);
      expect(asked).toMatchObject({ code: 2, out: '' });
      expect(asked.err).toContain('use --yes');
      const done = await run(world, ['cleanup', '--yes']);
      expect(done.code).toBe(0);
      expect(done.err).toContain(`left Endpoints "${world.hostKey('default/kept').join('/')}"`);
      const { [world.hostName('default/kept')]: kept, ...rest } = await hostState(world);
      expect(kept).toBeDefined();
      expect(Object.keys(rest).toSorted()).toEqual(Object.keys(untouched).toSorted());
      expect(await world.virtual.find('Secret', 'default', 'from-host')).toBeUndefined();
      expect(await world.virtual.find('Secret', 'default', 'tls')).toBeDefined();
      expect(await run(world, ['cleanup', '--yes'])).toMatchObject({ code: 0, out: '' });
    });

    test('deletes no copy while vCluster syncs the kind, and would delete the object with it', async () => {
      await using world = await newWorld();
      await world.createVirtual('default/web');
      const daemon = await world.startSync();
      await world.settle(daemon);
      await daemon.stop();
      const values = (isEnabled: boolean): KubeObject => ({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: `vc-config-${world.vcluster}`, namespace: world.hostNamespace },
        data: { 'config.yaml': btoa(`sync: {toHost: {endpoints: {enabled: ${isEnabled}}}}`) },
      });
      await world.host.create('Secret', values(true));
      const full = await hostState(world);
      const refused = await run(world, ['cleanup', '--yes']);
      const why = `Secret "${world.hostNamespace}/vc-config-${world.vcluster}" enables sync.toHost.endpoints, so vCluster would delete`;
      expect([refused.code, refused.out, refused.err]).toEqual([
        1,
        '',
        expect.stringContaining(`error: ${why}`),
      ]);
      const listed = await run(world, ['cleanup', '--dry-run']);
      expect([listed.code, listed.err]).toEqual([0, expect.stringContaining(`warning: ${why}`)]);
      expect(await hostState(world)).toEqual(full);
      await world.host.merge('Secret', [world.hostNamespace, `vc-config-${world.vcluster}`], values(false));
      expect((await run(world, ['cleanup', '--yes'])).code).toBe(0);
      expect(await world.host.find('Endpoints', ...world.hostKey('default/web'))).toBeUndefined();
    });

    test('deletes copies that a tenant keeps from the sync', async () => {
      await using world = await newWorld();
      const labels = { 'vcluster.loft.sh/skip-backsync': 'true' };
      await world.createVirtual('default/web', { labels });
      await world.createVirtual('default/out');
      const daemon = await world.startSync();
      await world.settle(daemon);
      await daemon.stop();
      await world.deleteVirtual('default/web');
      const annotations = { 'vcluster.loft.sh/controlled-by': 'another' };
      await world.mergeVirtual('default/out', { metadata: { annotations } });
      const copies = [world.hostName('default/web'), world.hostName('default/out')];
      expect(Object.keys(await hostState(world))).toEqual(expect.arrayContaining(copies));

      const done = await run(world, ['cleanup', '--yes']);

      expect(done.code).toBe(0);
      for (const key of ['default/web', 'default/out'])
        expect(done.out).toContain(`deleted Endpoints "${world.hostKey(key).join('/')}"`);
      expect(Object.keys(await hostState(world)).filter((name) => copies.includes(name))).toEqual([]);
    });

    test('refuses while a replica holds the Lease', async () => {
      await using world = await newWorld();
      const config: JsonObject = { endpointSyncer: { leaderElection: { enabled: true } } };
      await world.createVirtual('default/web');
      const daemon = await world.startSync({ config });
      await world.whenCopy('default/web');
      await publishedHash(world);
      const refused = await run(world, ['cleanup', '--yes'], config);
      expect(refused).toMatchObject({ code: 1, out: '' });
      expect(refused.err).toMatch(
        /^error: replica ".+" holds Lease ".+\/endpoint-syncer-.+" and would create the copies again; stop all replicas first\n$/,
      );
      expect(await world.findCopy('default/web')).toBeDefined();
      await daemon.stop();
      const done = await run(world, ['cleanup', '--yes'], config);
      expect(done).toMatchObject({ code: 0, err: '' });
      expect(done.out).toMatch(/^deleted Endpoints .+\ndeleted Lease .+\n$/);
      expect(await world.copies()).toEqual([]);
    });
  });

  describe('migrate', () => {
    test('lists the objects of both clusters, and exits with 1 for a copy that nobody would update', async () => {
      await using world = await newWorld();
      const copy = async (key: string, annotations: Record<string, string> = {}): Promise<void> => {
        const { metadata } = await world.createVirtual(key, { annotations });
        const marks = world.bookkeeping('Endpoints', key, metadata.uid);
        const copied = endpoints(world.hostKey(key).join('/'), {
          labels: marks.labels,
          annotations: { ...annotations, ...marks.annotations },
        });
        await world.host.create('Endpoints', copied);
      };
      await copy('default/web');
      await world.createVirtual('default/new');
      const patches = [{ path: 'metadata.annotations.broken', expression: 'JSON.parse(value).b' }];
      const values = world.writeConfig({ sync: { toHost: { endpoints: { patches } } } });
      const migrate = (): Promise<CapturedRun> =>
        capturedRun([
          'migrate',
          '--vcluster-config',
          values,
          '--name',
          world.vcluster,
          '--host-namespace',
          world.hostNamespace,
          '--virtual-kubeconfig',
          world.virtual.kubeconfigPath,
          '--host-kubeconfig',
          world.host.kubeconfigPath,
        ]);
      const before = [await world.copies(), await world.virtual.list('Endpoints', 'default')];
      const fine = await migrate();
      expect(fine).toMatchObject({ code: 0, err: '' });
      const copyOf = (key: string): string => world.hostKey(key).join('/');
      const rowOf = (out: string, key: string): string | undefined =>
        out.split('\n').find((line) => line.startsWith('Endpoints ') && line.includes(` ${key} `));
      expect(rowOf(fine.out, 'default/web')).toMatch(
        new RegExp(`${copyOf('default/web')} +endpoint-syncer, (update|rewrite)$`),
      );
      expect(rowOf(fine.out, 'default/new')).toMatch(
        new RegExp(`${copyOf('default/new')} +endpoint-syncer, create$`),
      );
      expect([await world.copies(), await world.virtual.list('Endpoints', 'default')]).toEqual(before);
      await copy('default/broken', { broken: 'x' });
      const lost = await migrate();
      expect(lost.code).toBe(1);
      expect(rowOf(lost.out, 'default/broken')).toContain('fails: patches[0] at metadata.annotations.broken');
    });
  });
}
