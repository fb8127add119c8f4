/** `keys token`: tokens as text, for an exec plugin, and as a kubeconfig that runs one. */

import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject } from '../../../src/base/json.ts';
import { KEYS_PATH, startComposed, type Composed } from '../../access-keys/composed-api.ts';
import { claimsOf } from '../../access-keys/tokens/token-harness.ts';
import { capturedRun, type CapturedRun } from '../captured-run.ts';
import { keys } from './keys-setup.ts';
import { kubeconfigText } from './kubeconfig-text.ts';
import { testFolder } from '../../support/test-folder.ts';

const { folder, write } = testFolder();
let api: Composed;
let key: string;
beforeAll(async () => {
  mkdirSync(join(folder, 'bin'));
  write('bin/endpoint-syncer', '');
  api = await startComposed();
  key = (await api.key('ci', { user: 'ci-bot' })).text;
});
afterAll(() => api[Symbol.asyncDispose]());

let cache: string;
beforeEach(() => {
  cache = mkdtempSync(join(folder, 'cache-'));
  vi.stubEnv('XDG_CACHE_HOME', cache);
  vi.stubEnv('PATH', join(folder, 'bin'));
  return () => vi.unstubAllEnvs();
});

const connection = (): string[] => [
  '--server',
  api.api.url,
  '--certificate-authority',
  join(api.dataDir, 'ca.crt'),
];
const token = (...args: string[]): Promise<CapturedRun> =>
  keys('token', ...connection(), '--token', key, ...args);

interface Credential {
  readonly status: { readonly token: string; readonly expirationTimestamp: string };
}

async function credential(...args: string[]): Promise<Credential> {
  const { code, out } = await token('-o', 'exec-credential', ...args);
  expect(code).toBe(0);
  return JSON.parse(out) as Credential;
}

test('prints a token of the key with the requested lifetime and scope', async () => {
  const { code, out, err } = await token('--ttl', '10m', '--scope-cluster', 'a', '--scope-space', 'p/s');
  expect([code, err]).toEqual([0, '']);
  const { exp, iat, sub, 'platform.sh': platform } = claimsOf(out.trim());
  expect([exp - iat, sub, platform.name, platform.scope]).toEqual([
    600,
    'ci-bot',
    'ci',
    { spaces: [{ project: 'p', space: 's' }], clusters: [{ cluster: 'a' }] },
  ]);
});

describe('exec-credential', () => {
  test('has the format of client-go, and expires shortly before the token', async () => {
    const { status, ...rest } = await credential('--ttl', '10m');
    expect(rest).toEqual({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential' });
    const leftMs = claimsOf(status.token).exp * 1000 - Date.parse(status.expirationTimestamp);
    expect(leftMs).toBeGreaterThanOrEqual(58_000);
    expect(leftMs).toBeLessThanOrEqual(62_000);
  });

  test('is cached with mode 0600 until then', async () => {
    const first = await credential('--ttl', '10m');
    const tokens = join(cache, 'endpoint-syncer', 'tokens');
    const [file = '', ...more] = readdirSync(tokens);
    expect([more, statSync(join(tokens, file)).mode & 0o777, statSync(tokens).mode & 0o777]).toEqual([
      [],
      0o600,
      0o700,
    ]);
    expect(await credential('--ttl', '10m')).toEqual(first);
    vi.useFakeTimers({ now: Date.parse(first.status.expirationTimestamp) + 1_000, toFake: ['Date'] });
    try {
      expect((await credential('--ttl', '10m')).status.token).not.toBe(first.status.token);
    } finally {
      vi.useRealTimers();
    }
  });

  test('is not reused for another request, another key or with --no-cache', async () => {
    const first = await credential('--ttl', '10m');
    expect(await credential('--ttl', '11m')).not.toEqual(first);
    expect(await credential('--ttl', '10m', '--scope-cluster', 'a')).not.toEqual(first);
    const fresh = await credential('--ttl', '10m', '--no-cache');
    expect(fresh).not.toEqual(first);
    expect(await credential('--ttl', '10m')).toEqual(fresh);
  });

  test('is replaced when the key has changed, and not used when the key is not accepted any more', async () => {
    const own = await api.key('changing', { user: 'ci-bot' });
    const path = `${KEYS_PATH}/changing`;
    const asPlugin = (): Promise<CapturedRun> =>
      keys('token', ...connection(), '--token', own.text, '-o', 'exec-credential');
    const tokenIn = ({ out }: CapturedRun): string => (JSON.parse(out) as Credential).status.token;
    const first = tokenIn(await asPlugin());
    expect(tokenIn(await asPlugin())).toBe(first);
    const headers = { 'content-type': 'application/merge-patch+json' };
    await api.administrator.send({ method: 'PATCH', path, headers, body: { spec: { groups: ['g'] } } });
    const second = tokenIn(await asPlugin());
    expect([claimsOf(first)['platform.sh'].gen, claimsOf(second)['platform.sh'].gen]).toEqual([1, 2]);
    expect(tokenIn(await asPlugin())).toBe(second);
    await api.administrator.send({ method: 'POST', path: `${path}/rotate`, body: {} });
    const { code, out, err } = await asPlugin();
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain('platform access key was rotated');
  });

  test('is used while the API cannot be reached', async () => {
    const stopped = await startComposed({ dataDir: mkdtempSync(join(folder, 'stopped-')) });
    const { text } = await stopped.key('k');
    const authority = join(stopped.dataDir, 'ca.crt');
    const asPlugin = (): Promise<CapturedRun> => {
      const args = ['--server', stopped.api.url, '--certificate-authority', authority, '--token', text];
      return keys('token', ...args, '-o', 'exec-credential');
    };
    const first = await asPlugin();
    await stopped[Symbol.asyncDispose]();
    expect(await asPlugin()).toEqual({ ...first, code: 0 });
  });

  test('is not read from a file that other users can write or read, nor from a damaged one', async () => {
    const first = await credential('--ttl', '10m');
    const tokens = join(cache, 'endpoint-syncer', 'tokens');
    const file = join(tokens, readdirSync(tokens)[0] ?? '');
    chmodSync(file, 0o644);
    const second = await credential('--ttl', '10m');
    expect([second === first, statSync(file).mode & 0o777]).toEqual([false, 0o600]);
    expect(second.status.token).not.toBe(first.status.token);
    writeFileSync(file, '{"token":');
    expect((await credential('--ttl', '10m')).status.token).not.toBe(second.status.token);
  });

  const askFor = (apiVersion: string): void => {
    vi.stubEnv('KUBERNETES_EXEC_INFO', JSON.stringify({ apiVersion, kind: 'ExecCredential', spec: {} }));
  };

  test.each(['v1', 'v1beta1'])('answers in %s if it is asked in it', async (version) => {
    askFor(`client.authentication.k8s.io/${version}`);
    expect(await credential()).toMatchObject({ apiVersion: `client.authentication.k8s.io/${version}` });
  });

  test.each(['client.authentication.k8s.io/v1alpha1', 'v1', ''])(
    'is refused in version "%s"',
    async (asked) => {
      askFor(asked);
      const { code, out, err } = await token('-o', 'exec-credential');
      expect([code, out]).toEqual([1, '']);
      expect(err).toContain(`KUBERNETES_EXEC_INFO asks for apiVersion "${asked}": use client.authentication`);
    },
  );

  test('works with a warning where its file cannot be replaced', async () => {
    await credential();
    const tokens = join(cache, 'endpoint-syncer', 'tokens');
    const file = join(tokens, readdirSync(tokens)[0] ?? '');
    rmSync(file);
    mkdirSync(join(file, 'in-the-way'), { recursive: true });
    const { code, out, err } = await token('-o', 'exec-credential');
    expect([code, out.includes('"token":')]).toEqual([0, true]);
    expect(err).toMatch(/^warning: the token is not cached, so each run requests one: .*\n$/);
    expect(readdirSync(tokens), 'without what was to replace it').toEqual([basename(file)]);
  });

  test('works without a writable cache folder', async () => {
    vi.stubEnv('XDG_CACHE_HOME', join(api.dataDir, 'ca.crt'));
    expect((await credential()).status.token).not.toBe('');
    vi.stubEnv('XDG_CACHE_HOME', '');
    vi.stubEnv('HOME', '');
    expect((await credential()).status.token).not.toBe('');
  });
});

describe('kubeconfig', () => {
  const output = ['-o', 'kubeconfig'];
  const cluster = ['--cluster-server', 'https://cluster-a:6443', '--cluster-name', 'cluster-a'];

  async function kubeconfig(...args: string[]): Promise<JsonObject> {
    const { code, out } = await token(...output, ...args);
    expect(code).toBe(0);
    return parse(out) as JsonObject; // just printed
  }

  test('has the cluster, and this command as the plugin of its user', async () => {
    const authority = join(api.dataDir, 'ca.crt');
    const config = await kubeconfig(...cluster, '--cluster-certificate-authority', authority, '--ttl', '10m');
    const data = readFileSync(authority).toString('base64');
    expect(config).toEqual({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'cluster-a',
          cluster: { server: 'https://cluster-a:6443', 'certificate-authority-data': data },
        },
      ],
      users: [
        {
          name: 'ci',
          user: {
            exec: {
              apiVersion: 'client.authentication.k8s.io/v1',
              command: 'endpoint-syncer',
              args: [
                'keys',
                'token',
                '-o',
                'exec-credential',
                '--server',
                api.api.url,
                '--certificate-authority-data',
                data,
                '--ttl',
                '600s',
              ],
              env: [
                { name: 'ENDPOINT_SYNCER_CONFIG', value: '' },
                { name: 'ENDPOINT_SYNCER_TOKEN', value: key },
              ],
              installHint: expect.stringMatching(
                /: npm install --global --ignore-scripts https:\/\/\S+\/releases\/download\/v[\d.]+\/endpoint-syncer-[\d.]+\.tgz$/u,
              ) as string,
              interactiveMode: 'Never',
              provideClusterInfo: false,
            },
          },
        },
      ],
      contexts: [{ name: 'cluster-a', context: { cluster: 'cluster-a', user: 'ci' } }],
      'current-context': 'cluster-a',
    });
  });

  test('without an installed command the plugin is this program by its path', async () => {
    vi.stubEnv('PATH', folder);
    const { users } = (await kubeconfig(...cluster)) as {
      users?: { user: { exec: { command: string; args: string[] } } }[];
    };
    const { command, args } = users?.[0]?.user.exec ?? { command: '', args: [] };
    expect([command, args.slice(0, 3)]).toEqual([
      process.execPath,
      [resolve(process.argv[1] ?? ''), 'keys', 'token'],
    ]);
  });

  test('the plugin runs with the arguments of the kubeconfig, whatever the environment sets', async () => {
    const config = await kubeconfig(...cluster, '--scope-project', '*', '--scope-virtual-cluster', 'p/v');
    const [user] = config['users'] as {
      user: { exec: { args: string[]; env: { name: string; value: string }[] } };
    }[];
    vi.stubEnv('ENDPOINT_SYNCER_CONFIG', '/nonexistent');
    for (const { name, value } of user?.user.exec.env ?? []) vi.stubEnv(name, value);
    const { code, out } = await capturedRun(user?.user.exec.args ?? []);
    expect(code).toBe(0);
    const issued = (JSON.parse(out) as Credential).status.token;
    expect(claimsOf(issued)['platform.sh'].scope).toEqual({
      projects: [{ project: '*' }],
      virtualClusters: [{ project: 'p', virtualCluster: 'v' }],
    });
  });

  test('contains the file name instead of the key if the key was read from a file', async () => {
    const keyFile = write('ci.key', `${key}\n`, 0o600);
    const byFile = await keys('token', ...output, ...connection(), '--token-file', keyFile);
    expect([byFile.code, byFile.out.includes(key), byFile.out.includes(keyFile)]).toEqual([0, false, true]);
    expect(byFile.err).toContain('this kubeconfig has no cluster');
    const own = write('platform.kubeconfig', kubeconfigText(api, { current: key }), 0o600);
    const byConfig = await keys('token', ...output, ...cluster, '--kubeconfig', own);
    expect([byConfig.code, byConfig.out.includes(key), byConfig.out.includes(own)]).toEqual([0, false, true]);
  });

  test('a flag overrides the kubeconfig, also for the plugin', async () => {
    const own = write('other.kubeconfig', kubeconfigText(api, { current: 'pak_wrong', named: key }), 0o600);
    const command = ['token', ...output, ...cluster, '--kubeconfig', own];
    const byKey = await keys(...command, '--token', key);
    expect([byKey.code, byKey.out.includes(own), byKey.out.includes(key)]).toEqual([0, false, true]);
    const byContext = await keys(...command, '--context', 'named');
    expect([byContext.code, byContext.out.includes(own), byContext.out.includes(key)]).toEqual([
      0,
      true,
      false,
    ]);
    const { users } = parse(byContext.out) as { users: { user: { exec: { args: string[] } } }[] }; // just printed
    expect(users[0]?.user.exec.args.slice(-2)).toEqual(['--context', 'named']);
  });

  test('the tls-server-name of the kubeconfig stays when a flag overrides another part, and a flag replaces it', async () => {
    const own = join(folder, 'named.kubeconfig');
    const text = kubeconfigText(api, { current: key });
    const named = (name: string): void =>
      void write(
        'named.kubeconfig',
        text.replace('"server":', `"tls-server-name":"${name}","server":`),
        0o600,
      );
    const command = ['token', ...output, ...cluster, '--kubeconfig', own, '--token', key];
    const nameIn = (out: string): unknown => {
      const { users } = parse(out) as { users: { user: { exec: { args: string[] } } }[] }; // just printed
      const args = users[0]?.user.exec.args ?? [];
      return args.includes('--tls-server-name') && args[args.indexOf('--tls-server-name') + 1];
    };
    named('localhost');
    expect(nameIn((await keys(...command)).out)).toBe('localhost');
    // As in kubectl, it does not belong to another server.
    expect(nameIn((await keys(...command, '--server', api.api.url)).out)).toBe(false);
    named('other.example');
    const refused = await keys(...command);
    expect([refused.code, refused.out, refused.err]).toEqual([
      1,
      '',
      expect.stringContaining('other.example'),
    ]);
    expect(nameIn((await keys(...command, '--tls-server-name', 'localhost')).out)).toBe('localhost');
  });

  test('is not written if the API rejects the key', async () => {
    const refused = await token(...output, ...cluster, '--token', 'pak_wrong');
    expect([refused.code, refused.out]).toEqual([1, '']);
    expect((await token(...output, '--cluster-server', 'http://a')).code).toBe(2);
    const missing = await token(...output, ...cluster, '--cluster-certificate-authority', '/nonexistent');
    expect([missing.code, missing.out]).toEqual([1, '']);
  });
});

test('needs an access key: the local administrator has none', async () => {
  const file = write('api.yaml', `managementApi: {dataDir: ${api.dataDir}}\n`);
  const { code, err } = await keys('token', '--config', file, '--server', api.api.url);
  expect([code, err]).toEqual([1, expect.stringContaining('a token belongs to an access key')]);
});
