/** `keys`: which keys are listed and revoked, and what errors say. */

import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { KEYS_PATH, startComposed, type Composed } from '../../access-keys/composed-api.ts';
import { revokeKeys } from '../../../src/cli/keys/keys.ts';
import { keys, keysFolder, statusOf, type Place } from './keys-setup.ts';

const MERGE = { headers: { 'content-type': 'application/merge-patch+json' } };

const { configFile } = keysFolder();

describe('keys list and revoke', () => {
  let api: Composed;
  let place: Place;
  beforeAll(async () => {
    place = configFile('daily', 'memory');
    api = await startComposed({ dataDir: place.dataDir });
  });
  afterAll(() => api[Symbol.asyncDispose]());

  /** Next to the API its files are enough. */
  const here = (): string[] => ['--config', place.file, '--server', api.api.url];
  const remote = (token: string): string[] =>
    ['--server', api.api.url, '--token', token].concat(
      '--certificate-authority',
      join(place.dataDir, 'ca.crt'),
    );

  test('list: the keys that the caller may see, in the columns of the server, without secrets', async () => {
    await api.key('ci');
    const mine = (await keys('create', ...here(), '--user', 'lister', '--name', 'mine')).out.trim();
    const { out, code } = await keys('list', ...remote(mine));
    expect([code, out.split('\n').map((line) => line.split(/ {2,}/u).slice(0, 3))]).toEqual([
      0,
      [['NAME', 'DISPLAY NAME', 'SUBJECT'], ['mine', 'mine', 'user/lister'], ['']],
    ]);
    expect((await keys('list', ...here(), '-o', 'name')).out).toMatch(/^ci\n(.+\n)*mine\n$/mu);
    expect((await keys('list', ...here(), '-o', 'yaml')).out).not.toContain('pak_');
    expect((await keys('list', ...here(), '-l', 'no=such')).err).toBe('no keys\n');
    expect((await keys('ls', ...here(), '-o', 'wide')).out).toContain('LAST ACTIVITY');
  });

  test('revoke: one key or several, immediately; an unknown key is an error', async () => {
    const [one, two] = await Promise.all(['r1', 'r2'].map((name) => api.key(name)));
    const { code, err } = await keys('revoke', ...here(), 'r1', 'nope', 'r2');
    expect([code, err.split('\n')]).toEqual([
      1,
      ['key r1 is revoked', expect.stringContaining('"nope" not found'), 'key r2 is revoked', ''],
    ]);
    expect([await statusOf(api, one?.text ?? ''), await statusOf(api, two?.text ?? '')]).toEqual([401, 401]);
  });

  test('revoke: ends the grace period of an earlier deletion, and names the finalizers that hold the object', async () => {
    const { text } = await api.key('stolen');
    const path = `${KEYS_PATH}/stolen`;
    const metadata = { finalizers: ['example.com/hold'] };
    await api.administrator.send({ method: 'PATCH', path, ...MERGE, body: JSON.stringify({ metadata }) });
    const own = await api
      .as(text.trim())
      .send({ method: 'DELETE', path: `${path}?gracePeriodSeconds=2147483647` });
    expect([own.status, await statusOf(api, text)]).toEqual([200, 200]);
    const { code, err } = await keys('revoke', ...here(), 'stolen');
    expect([code, err]).toEqual([
      0,
      'key stolen is revoked; the object stays until its finalizers are removed: example.com/hold\n',
    ]);
    expect(await statusOf(api, text)).toBe(401);
  });

  test('revoke: a key that works after its deletion is an error', async () => {
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const deletion = { deletionTimestamp: '2094-01-19T03:14:07Z', deletionGracePeriodSeconds: 2_147_483_647 };
    const code = await revokeKeys({ send: async () => ({ metadata: deletion }) }, ['k'], {});
    const lines = written.mock.calls.map(([line]) => String(line)).join('');
    written.mockRestore();
    expect([code, lines]).toEqual([
      1,
      expect.stringContaining('key k still exists after its deletion and works until 2094-01-19T03:14:07Z'),
    ]);
  });

  test('revoke --disable and --enable', async () => {
    const { text } = await api.key('switched');
    expect((await keys('revoke', '--disable', 'switched', ...here())).err).toBe('key switched is disabled\n');
    expect(await statusOf(api, text)).toBe(401);
    expect((await keys('revoke', '--enable', 'switched', ...here())).err).toBe('key switched is enabled\n');
    expect(await statusOf(api, text)).toBe(200);
    expect((await keys('revoke', '--enable', '--disable', 'switched', ...here())).code).toBe(2);
  });

  test('the key of the environment comes before the local administrator, whose API is that of the configuration', async () => {
    const { text } = await api.key('by-env', { user: 'env' });
    vi.stubEnv('ENDPOINT_SYNCER_TOKEN', text);
    expect((await keys('list', ...here(), '-o', 'name')).out).toBe('by-env\n');
    vi.unstubAllEnvs();
    const elsewhere = configFile('elsewhere', 'memory');
    const stranger = await keys('list', '--config', elsewhere.file, '--server', api.api.url);
    expect([stranger.code, stranger.err]).toEqual([1, expect.stringContaining('ca.crt')]);
  });

  test('a server that does not run, or that no https:// URL names', async () => {
    const token = ['--token', 'x'];
    const away = await keys('list', '--server', 'https://127.0.0.1:1', ...token);
    expect([away.code, away.err]).toEqual([1, expect.stringContaining('cannot connect to')]);
    for (const server of ['127.0.0.1:8443', 'http://127.0.0.1:8443', 'https://']) {
      const refused = await keys('list', '--server', server, ...token);
      expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('must be an https:// URL')]);
    }
    const { file } = configFile('no-authority', 'memory');
    const wrong = ['--server', api.api.url, '--certificate-authority', file, ...token];
    expect((await keys('list', ...wrong)).err).toContain('contains no PEM certificate');
  });

  test('an error of TLS is one line that names the flag to correct', async () => {
    await using other = await startComposed();
    const failed = async (...args: string[]): Promise<string> => {
      const { code, out, err } = await keys('list', '--token', 'x', ...args);
      expect([code, out, err.trimEnd().split('\n').length]).toEqual([1, '', 1]);
      return err;
    };
    const ca = ['--certificate-authority', join(place.dataDir, 'ca.crt')];
    const server = ['--server', api.api.url];
    expect(await failed(...server)).toContain('is not from an authority that this machine trusts (');
    const foreign = ['--certificate-authority', join(other.dataDir, 'ca.crt')];
    expect(await failed(...server, ...foreign)).toMatch(
      /is not from the given authority \(.*; name its authority with --certificate-authority \(dataDir\/ca.crt/u,
    );
    expect(await failed(...server, ...ca, '--tls-server-name', 'other.example')).toMatch(
      /other\.example.* is not in the cert's altnames: .*DNS:localhost.*; name one that it is for with --tls-server-name/u,
    );
    const plain = createServer((socket) => {
      socket
        .on('error', () => socket.destroy())
        .once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    });
    await once(plain.listen(0, '127.0.0.1'), 'listening');
    const { port } = plain.address() as AddressInfo; // it listens on a port
    expect(await failed('--server', `https://127.0.0.1:${port}`)).toContain(
      'no TLS connection is possible (ERR_SSL_WRONG_VERSION_NUMBER); give the address that the API printed',
    );
    plain.close();
  });
});
