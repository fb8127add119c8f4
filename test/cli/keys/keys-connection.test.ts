/** The address and the credential that a `keys` command uses. */

import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { startComposed, type Composed } from '../../access-keys/composed-api.ts';
import { startConnectProxy } from '../../support/connect-proxy.ts';
import { keys } from './keys-setup.ts';
import { kubeconfigText } from './kubeconfig-text.ts';
import { testFolder } from '../../support/test-folder.ts';

const START = process.cwd();

const { folder, write } = testFolder();
let api: Composed;
let kubeconfig: string;
let carl: string;
beforeAll(async () => {
  api = await startComposed();
  const [ann, bob] = await Promise.all(['ann', 'bob'].map((user) => api.key(`of-${user}`, { user })));
  carl = (await api.key('of-carl', { user: 'carl' })).text;
  const text = kubeconfigText(api, { current: ann?.text ?? '', named: bob?.text ?? '' });
  kubeconfig = write('kubeconfig', text, 0o600);
});
afterAll(() => api[Symbol.asyncDispose]());

// No data directory of an API in the working directory.
beforeEach(() => process.chdir(mkdtempSync(join(folder, 'elsewhere-'))));
afterEach(() => {
  process.chdir(START);
  vi.unstubAllEnvs();
});

/** The keys that the command lists, which are those of its user. */
async function listed(...args: string[]): Promise<string> {
  const { out, err } = await keys('list', '-o', 'name', ...args);
  return out.trim() || err;
}

describe('kubeconfig', () => {
  test('--kubeconfig, then --context; a flag overrides the key, the environment does not', async () => {
    expect(await listed('--kubeconfig', kubeconfig)).toBe('of-ann');
    expect(await listed('--kubeconfig', kubeconfig, '--context', 'named')).toBe('of-bob');
    expect(await listed('--kubeconfig', kubeconfig, '--token', carl)).toBe('of-carl');
    vi.stubEnv('ENDPOINT_SYNCER_TOKEN', carl);
    expect(await listed('--kubeconfig', kubeconfig)).toBe('of-ann');
  });

  test('KUBECONFIG, with several files merged as in kubectl', async () => {
    vi.stubEnv('KUBECONFIG', `${join(folder, 'missing')}:${kubeconfig}`);
    expect(await listed()).toBe('of-ann');
    expect(await listed('--context', 'named')).toBe('of-bob');
    expect(await listed('--context', 'other')).toContain('other');
    vi.stubEnv('ENDPOINT_SYNCER_TOKEN', carl);
    expect(await listed()).toBe('of-carl');
  });

  test('an API on this machine and --server come before KUBECONFIG', async () => {
    vi.stubEnv('KUBECONFIG', kubeconfig);
    expect(await listed('--server', api.api.url)).toContain('no access key: give --token-file');
    mkdirSync('data');
    writeFileSync('data/ca.crt', api.ca);
    expect(await listed()).toContain('no access key, and no master key in');
  });
});

test('without an API on this machine the error asks for --server instead of naming a file', async () => {
  const { code, err } = await keys('list');
  expect(code).toBe(1);
  expect(err).toContain('no address of the API: give --server URL');
  expect(err).not.toContain('ca.crt');
  const keyless = await keys('list', '--server', api.api.url);
  expect(keyless.err).toContain('no access key: give --token-file');
});

test.each([
  ['127.0.0.1', 'of-carl'],
  ['10.96.0.1', '10.96.0.1'],
])('the name to verify may be the address %s', async (address, expected) => {
  const ca = write('by-address.crt', api.ca);
  const trust = ['--certificate-authority', ca, '--tls-server-name', address];
  expect(await listed('--server', api.api.url, ...trust, '--token', carl)).toContain(expected);
});

describe('a proxy', () => {
  const name = new URL('https://api.example:9443');
  const ca = (): string => write('proxied.crt', api.ca);
  const direct = (server: string): string[] =>
    ['--server', server, '--certificate-authority', ca(), '--tls-server-name', 'localhost'].concat(
      '--token',
      carl,
    );

  test.each(['HTTPS_PROXY', 'https_proxy'])(
    'of %s is used, but not for what NO_PROXY names',
    async (variable) => {
      await using proxy = await startConnectProxy(Number(new URL(api.api.url).port));
      vi.stubEnv(variable, `http://127.0.0.1:${proxy.port}`);
      expect(await listed(...direct(name.href))).toBe('of-carl');
      expect(await listed(...direct(api.api.url))).toBe('of-carl');
      expect(proxy.requests).toEqual([name.host]);
      vi.stubEnv('NO_PROXY', name.hostname);
      expect(await listed(...direct(name.href))).toContain('cannot connect to https://api.example:9443');
    },
  );

  test('of a kubeconfig is used, and that of the environment for --server', async () => {
    await using proxy = await startConnectProxy(Number(new URL(api.api.url).port));
    const text = readFileSync(kubeconfig, 'utf8');
    const proxied = `"proxy-url":"http://127.0.0.1:${proxy.port}","server":`;
    const own = write('proxied.kubeconfig', text.replace('"server":', proxied), 0o600);
    expect(await listed('--kubeconfig', own)).toBe('of-ann');
    expect(proxy.requests).toEqual([new URL(api.api.url).host]);
    vi.stubEnv('HTTPS_PROXY', `127.0.0.1:${proxy.port}`);
    const elsewhere = ['--server', name.href, '--tls-server-name', 'localhost'];
    expect(await listed('--kubeconfig', kubeconfig, ...elsewhere)).toBe('of-ann');
    expect(proxy.requests.at(-1)).toBe(name.host);
  });

  test('that is dead, or of another kind, is named', async () => {
    vi.stubEnv('HTTPS_PROXY', 'http://127.0.0.1:1');
    expect(await listed(...direct(name.href))).toContain(
      'the proxy 127.0.0.1:1 cannot be reached (ECONNREFUSED): correct proxy-url in the kubeconfig or HTTPS_PROXY',
    );
    vi.stubEnv('HTTPS_PROXY', 'socks5://127.0.0.1:1');
    expect(await listed(...direct(name.href))).toContain('use an http or https proxy');
  });
});

test('an unknown key is reported with its source', async () => {
  const unknown = `pak_${'a'.repeat(61)}`;
  const file = write('unknown.key', unknown, 0o600);
  const strange = write('unknown.kubeconfig', kubeconfigText(api, { current: unknown }), 0o600);
  const ca = write('ca.crt', api.ca);
  const why = 'it belongs to another API, or was deleted';
  const refused = async (...args: string[]): Promise<string> => {
    const { code, err } = await keys('list', ...args);
    expect([code, err]).toEqual([1, expect.stringContaining('does not know')]);
    return /does not know (.*)\n/u.exec(err)?.[1] ?? '';
  };
  const server = ['--server', api.api.url, '--certificate-authority', ca];
  expect(await refused(...server, '--token', unknown)).toBe(`the access key of --token: ${why}`);
  expect(await refused(...server, '--token-file', file)).toBe(`the access key in ${file}: ${why}`);
  expect(await refused('--kubeconfig', strange)).toBe(`the access key in ${strange}: ${why}`);
  vi.stubEnv('ENDPOINT_SYNCER_TOKEN', unknown);
  expect(await refused(...server)).toBe(`the access key in ENDPOINT_SYNCER_TOKEN: ${why}`);
});

test('the error for a file without a key says what to do', async () => {
  const file = join(folder, 'no.key');
  const missing = await keys('list', '--server', api.api.url, '--token-file', file);
  expect([missing.code, missing.err]).toEqual([
    1,
    expect.stringContaining('write the access key to this file'),
  ]);
});

test('--certificate-authority replaces insecure-skip-tls-verify of the kubeconfig, as in kubectl', async () => {
  const text = readFileSync(kubeconfig, 'utf8');
  const without = text.replace(/"certificate-authority-data":"[^"]*"/u, '"insecure-skip-tls-verify":true');
  const insecure = write('insecure.kubeconfig', without, 0o600);
  const ca = write('insecure-ca.crt', api.ca);
  const refused = await keys('list', '--kubeconfig', insecure);
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('give --certificate-authority')]);
  expect(await listed('--kubeconfig', insecure, '--certificate-authority', ca)).toBe('of-ann');
});
