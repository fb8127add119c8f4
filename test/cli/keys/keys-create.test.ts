/** `keys bootstrap`, `create` and `rotate`: the commands that print a secret, once. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { startComposed, type Composed } from '../../access-keys/composed-api.ts';
import { keys, keysFolder, statusOf, type Place } from './keys-setup.ts';

const KEY = /^pak_\w{12}_\w{49}\n$/u;

const { write, configFile } = keysFolder();

describe('keys bootstrap', () => {
  test('before the API has ever run: prints the key, once, and the API accepts it', async () => {
    const { file, dataDir } = configFile('first');
    const first = await keys('bootstrap', '--config', file);
    expect(first).toEqual({
      code: 0,
      out: expect.stringMatching(KEY) as string,
      err: 'key bootstrap-admin of user admin, never expires; it is not shown again\n',
    });
    const second = await keys('bootstrap', '--config', file);
    expect([second.code, second.out]).toEqual([1, '']);
    expect(second.err).toContain('exists already (bootstrap-admin)');
    expect(second.err).toContain('--rotate');
    await using api = await startComposed({ dataDir, config: { store: { driver: 'sqlite' } } });
    expect(await statusOf(api, first.out)).toBe(200);
  });

  test('while the API runs; --rotate replaces a key that was lost', async () => {
    const { file, dataDir } = configFile('running');
    await using api = await startComposed({ dataDir, config: { store: { driver: 'sqlite' } } });
    const blind = await keys('bootstrap', '--config', file);
    expect([blind.code, blind.err]).toEqual([1, expect.stringContaining(dataDir)]);
    const where = ['--config', file, '--server', api.api.url];
    const first = await keys('bootstrap', ...where);
    expect([first.code, await statusOf(api, first.out)]).toEqual([0, 200]);
    expect((await keys('bootstrap', ...where)).code).toBe(1);
    const next = await keys('bootstrap', '--rotate', ...where);
    expect([await statusOf(api, next.out), await statusOf(api, first.out)]).toEqual([200, 401]);
  });

  test('a store in memory needs the API', async () => {
    const { file } = configFile('memory', 'memory');
    const { code, err } = await keys('bootstrap', '--config', file);
    expect([code, err]).toEqual([1, expect.stringContaining('start it first')]);
  });

  test('the key has the maximum lifetime', async () => {
    const { file } = configFile('max', 'sqlite', '  maxTtl: 1h');
    const { code, out } = await keys('bootstrap', '--config', file, '-o', 'json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ spec: { ttl: 3600, groups: ['platform:admins'] } });
  });

  test('an invalid configuration is exit code 2', async () => {
    const file = write('wrong.yaml', 'managementApi: {store: {driver: etcd}}\n');
    const { code, err } = await keys('bootstrap', '--config', file);
    expect([code, err]).toEqual([2, expect.stringContaining('managementApi.store.driver: must be one of')]);
  });
});

describe('keys create and rotate', () => {
  let api: Composed;
  let place: Place;
  beforeAll(async () => {
    place = configFile('daily', 'memory');
    api = await startComposed({ dataDir: place.dataDir });
  });
  afterAll(() => api[Symbol.asyncDispose]());

  /** Next to the API its files are enough. */
  const here = (): string[] => ['--config', place.file, '--server', api.api.url];

  test('create: the key on standard output, its description on standard error', async () => {
    const created = await keys('create', ...here(), '--name', 'ci', '--user', 'ci-bot', '--ttl', '90d');
    expect([created.code, created.out]).toEqual([0, expect.stringMatching(KEY)]);
    expect(created.err).toMatch(/^key ci of user ci-bot, expires \d{4}-.*Z; it is not shown again\n$/u);
    expect(await statusOf(api, created.out)).toBe(200);
    const again = await keys('create', ...here(), '--name', 'ci', '--user', 'ci-bot');
    expect([again.code, again.err]).toEqual([1, expect.stringContaining('"ci" already exists')]);
  });

  test('create: every flag sets its field', async () => {
    const flags =
      '--team ops --display-name D --description E --group a --group b --ttl 1h30m --ttl-after-last-activity ' +
      '--scope-project p --scope-project q --scope-space p/s --scope-virtual-cluster p/v --scope-cluster * ' +
      '--scope-role platformCLI --generate-name bot- -o json';
    const { out, code } = await keys('create', ...here(), ...flags.split(' '));
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      metadata: { generateName: 'bot-' },
      spec: {
        displayName: 'D',
        description: 'E',
        team: 'ops',
        groups: ['a', 'b'],
        ttl: 5400,
        ttlAfterLastActivity: true,
        scope: {
          projects: [{ project: 'p' }, { project: 'q' }],
          spaces: [{ project: 'p', space: 's' }],
          virtualClusters: [{ project: 'p', virtualCluster: 'v' }],
          clusters: [{ cluster: '*' }],
          roles: [{ role: 'platformCLI' }],
        },
      },
    });
  });

  test('create -o kubeconfig is a complete kubeconfig for kubectl', async () => {
    const { out } = await keys('create', ...here(), '--user', 'u', '--name', 'kc', '-o', 'kubeconfig');
    const config = parse(out) as Record<string, { cluster?: object; user?: { token: string } }[]>; // just printed
    expect(config['clusters']?.[0]?.cluster).toEqual({
      server: api.api.url,
      'certificate-authority-data': Buffer.from(api.ca).toString('base64'),
    });
    expect(await statusOf(api, config['users']?.[0]?.user?.token ?? '')).toBe(200);
  });

  test.each([
    [['--user', 'a', '--team', 'b'], 2, 'exactly one of --user, --team and --subject'],
    [[], 2, 'exactly one of --user, --team and --subject'],
    [['--user', 'a', '--ttl', 'soon'], 2, 'Use a duration such as 90d'],
    [['--user', 'a', '--ttl', '1728000'], 2, 'Add a unit: 1728000s'],
    [['--user', 'a', '--scope-space', 'p'], 2, 'Use PROJECT/NAME'],
    [['--user', 'a', '--name', 'A_b'], 1, 'metadata.name: Invalid value'],
    [['--user', 'a', '-o', 'xml'], 2, 'Allowed choices are key, kubeconfig, json, yaml'],
  ])('create %j is refused', async (flags, code, message) => {
    const refused = await keys('create', ...here(), ...flags);
    expect([refused.code, refused.err, refused.out]).toEqual([code, expect.stringContaining(message), '']);
  });

  test('rotate: the new secret on standard output, the expiry of the old one on standard error', async () => {
    const { text } = await api.key('turning');
    const now = await keys('rotate', 'turning', ...here(), '--overlap', '1h');
    expect([now.code, now.out, now.err]).toEqual([
      0,
      expect.stringMatching(KEY),
      expect.stringMatching(
        /^key turning has a new secret, which is not shown again; the old one works until \d{4}-\S+Z\n$/u,
      ),
    ]);
    expect([await statusOf(api, text), await statusOf(api, now.out)]).toEqual([200, 200]);
    const next = await keys('rotate', 'turning', ...here());
    expect([await statusOf(api, text), await statusOf(api, now.out), await statusOf(api, next.out)]).toEqual([
      401, 401, 200,
    ]);
    expect(next.err).toContain('the old one no longer works');
    expect((await keys('rotate', 'missing', ...here())).code).toBe(1);
    expect((await keys('rotate', 'turning', ...here(), '--overlap', 'soon')).code).toBe(2);
    expect((await keys('rotate', 'turning', ...here(), '--overlap', '8d')).err).toContain(
      'must be from 0 to 604800',
    );
  });
});
