/** Access to a cluster from kubeconfigs, service accounts, exec plugins and Secrets, and the errors of invalid ones. */

import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { ServerAccess } from '../../../src/kube/access.ts';
import { kubeconfigFromSecret, loadClusterAccess } from '../../../src/kube/credentials/kubeconfig.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { failure } from '../../../src/kube/status-error.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { ROOT, put, certificate, base64, kubeconfig, load, problem, type Parts } from './kubeconfig-files.ts';

afterAll(() => rmSync(ROOT, { recursive: true, force: true }));

describe('a kubeconfig', () => {
  test('has the server, the namespace and the credentials', async () => {
    const access = load({ context: 'cluster: c, user: u, namespace: vc' });
    expect(access.server).toBe('https://127.0.0.1:6443');
    expect(access.namespace).toBe('vc');
    expect(access.description).toMatch(/^context x of .*config$/);
    expect(await access.credentials.headers()).toEqual({ authorization: 'Bearer abc' });
    expect(access.credentials.invalidate()).toBe(false);
  });

  test('another context can be selected', () => {
    expect(load({}, { context: 'other' }).namespace).toBe('elsewhere');
  });

  test.each([
    ['digits in quotes', 'token: "12345678901234567890"', 'Bearer 12345678901234567890'],
    ['digits and a tag', 'token: !!str 12e45', 'Bearer 12e45'],
    ['a file that does not exist', 'token: abc, tokenFile: /nowhere/token', 'Bearer abc'],
    ['a name and a password', 'username: me, password: "s:c"', `Basic ${base64('me:s:c')}`],
  ])('a token with %s', async (_, user, authorization) => {
    expect(await load({ user }).credentials.headers()).toEqual({ authorization });
  });

  test.each<[user: string, server: string, isSent: boolean]>(
    [
      'token: abc',
      'username: me, password: s',
      'token: abc, as: jane',
      'tokenFile: TOKEN',
      'exec: PLUGIN',
    ].flatMap((user) => [
      [user, 'https://192.0.2.1:6443', true],
      [user, 'http://192.0.2.1:8080', false],
      [user, 'HTTP://api.example.com', false],
      [user, 'http://127.0.0.1:8001', true],
      [user, 'http://[::1]:8001', true],
      [user, 'http://localhost:8001', true],
      [user, 'http://127.0.0.1.example.com', false],
    ]),
  )('the credential %s for %s is sent: %s', async (user, server, isSent) => {
    const token = put('plain/token', 'abc');
    const answer =
      '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"a"}}';
    const command = put('plain/plugin', `#!/bin/sh\necho '${answer}'\n`, 0o700);
    const plugin = `{apiVersion: client.authentication.k8s.io/v1, command: "${command}", interactiveMode: Never}`;
    const warnings: string[] = [];
    const file = put(
      `plain/${isSent}/config`,
      kubeconfig({
        cluster: `server: "${server}"`,
        user: user.replace('TOKEN', token).replace('PLUGIN', plugin),
      }),
    );
    const warn = (message: string): void => void warnings.push(message);
    const { credentials } = loadClusterAccess(
      { kubeconfig: file, context: '' },
      { clock: new FakeClock(), env: {}, warn },
    );
    const { authorization, ...others } = await credentials.headers();
    expect(authorization !== undefined).toBe(isSent);
    expect(others).toEqual(user.includes('as: jane') ? { 'impersonate-user': 'jane' } : {});
    expect(warnings).toEqual(
      isSent
        ? []
        : [`${file}: ${new URL(server).origin} gets no credential of user u, because it is not an https URL`],
    );
  });

  test('impersonation', async () => {
    expect(await load({ user: 'token: t, as: someone, as-uid: "42"' }).credentials.headers()).toEqual({
      authorization: 'Bearer t',
      'impersonate-user': 'someone',
      'impersonate-uid': '42',
    });
    const user = 'token: t, as: someone, as-groups: [a, b], as-user-extra: {Team/x: [c, d], e: [f]}';
    expect(await load({ user }).credentials.headers()).toEqual({
      authorization: 'Bearer t',
      'impersonate-user': 'someone',
      'impersonate-group': ['a', 'b'],
      'impersonate-extra-Team%2fx': ['c', 'd'],
      'impersonate-extra-e': ['f'],
    });
  });

  test('certificates as data and as files', async () => {
    put('certs/ca.crt', certificate('ca.crt'));
    put('certs/client.crt', certificate('client.crt'));
    put('certs/client.key', certificate('client.key'));
    const inline = `client-certificate-data: ${base64(certificate('client.crt'))}, client-key-data: ${base64(certificate('client.key'))}`;
    const first = load({
      cluster: `server: "https://h", certificate-authority-data: ${base64(certificate('ca.crt'))}`,
      user: inline,
    });
    const second = put(
      'certs/config',
      kubeconfig({
        cluster: 'server: "https://h", certificate-authority: ca.crt, tls-server-name: name',
        user: 'client-certificate: client.crt, client-key: ./client.key',
      }),
    );
    const beside = loadClusterAccess({ kubeconfig: second, context: '' }, { clock: new FakeClock() });
    for (const access of [first, beside]) {
      expect((await access.trust()).ca?.toString()).toBe(certificate('ca.crt'));
      const pair = await access.credentials.certificate();
      expect(pair?.cert.toString()).toBe(certificate('client.crt'));
      expect(pair?.key.toString()).toBe(certificate('client.key'));
    }
    expect(await beside.trust()).toMatchObject({ serverName: 'name', isUnverified: false });
  });

  test('a token file is read again every minute, and immediately after a 401', async () => {
    const clock = new FakeClock();
    const file = put('token', 'one\n');
    const { credentials } = load({ user: `tokenFile: ${file}, token: ignored` }, {}, clock);
    expect(await credentials.headers()).toEqual({ authorization: 'Bearer one' });
    put('token', 'two');
    clock.advance(60_000);
    expect(await credentials.headers()).toEqual({ authorization: 'Bearer one' });
    clock.advance(1);
    expect(await credentials.headers()).toEqual({ authorization: 'Bearer two' });
    expect(credentials.invalidate()).toBe(false);
    put('token', 'three');
    expect(credentials.invalidate()).toBe(true);
    expect(await credentials.headers()).toEqual({ authorization: 'Bearer three' });
    rmSync(file);
    clock.advance(120_000);
    expect(await credentials.headers(), 'the last one that could be read').toEqual({
      authorization: 'Bearer three',
    });
  });

  test.each<[string, Parts | string, RegExp]>([
    ['no YAML', 'a: [', /configs\/\d+\/config is not YAML/],
    [
      'no YAML: where, and nothing of what is written there',
      'users: [{token: s3cr3t}]]',
      /config is not YAML: line 1, column 25: unexpected token; correct it, or write the file again$/,
    ],
    ['no mapping', '- a', /, line 1: this is not a kubeconfig, which is a mapping: name a kubeconfig/],
    ['a list that is none', 'clusters: 5', /config, line 1: clusters must be a list, but is a number/],
    ['no current context', { tail: '' }, /has no current-context; choose one of: x, other/],
    [
      'a context that is not there',
      { tail: 'current-context: z' },
      /has no context "z"; choose one of: x, other/,
    ],
    [
      'a context without a cluster',
      { context: 'user: u' },
      /config, line 5: contexts\[x\].cluster is missing; choose one of: c/,
    ],
    [
      'a cluster that is not there',
      { context: 'cluster: d, user: u' },
      /config, line 5: contexts\[x\].cluster is "d", which is not there; choose one of: c/,
    ],
    [
      'a cluster without a server',
      { cluster: 'a: b' },
      /config, line 3: clusters\[c\].server is missing; add/,
    ],
    [
      'a server that is not a URL',
      { cluster: 'server: "https://10.0.0.1:6443x"' },
      /config, line 3: clusters\[c\].server "https:\/\/10.0.0.1:6443x" is not an http or https URL/,
    ],
    [
      'an authority that is not there',
      { cluster: 'server: "https://h", certificate-authority: nope.crt' },
      /clusters\[c\].certificate-authority names a file that cannot be read, .*nope.crt: there is no such file/,
    ],
    [
      'an authority that is not a certificate',
      { cluster: `server: "https://h", certificate-authority-data: ${base64('junk')}` },
      /clusters\[c\].certificate-authority-data is not a certificate in PEM/,
    ],
    [
      'a certificate that is not there',
      { user: 'client-certificate: a.crt, client-key: a.key' },
      /users\[u\].client-certificate names a file that cannot be read/,
    ],
    [
      'a certificate without its key',
      { user: `client-certificate-data: ${base64(certificate('client.crt'))}` },
      /users\[u\].client-certificate-data has no client-key or client-key-data beside it/,
    ],
    [
      'a key of another certificate',
      {
        user: `client-certificate-data: ${base64(certificate('client.crt'))}, client-key-data: ${base64(certificate('server.key'))}`,
      },
      /users\[u\].client-certificate-data and its key are not a PEM certificate and its key/,
    ],
    [
      'a token file that is not there',
      { user: 'tokenFile: nope' },
      /users\[u\].tokenFile names a file that cannot be read/,
    ],
    [
      'groups without a user to impersonate',
      { user: 'token: t, as-groups: [system:masters]' },
      /users\[u\].as-groups has no effect without users\[u\].as: name the user to impersonate/,
    ],
    [
      'a proxy of another kind',
      { cluster: 'server: "https://h", proxy-url: "socks5://p:1"' },
      /proxy-url "socks5:\/\/p:1" is not supported/,
    ],
  ])('with %s is refused with a reason', (_, parts, message) => {
    expect(problem(() => load(parts))).toMatch(message);
  });

  test('that does not exist', () => {
    const missing = { kubeconfig: join(ROOT, 'nothing'), context: '' };
    expect(problem(() => loadClusterAccess(missing, { clock: new FakeClock() }))).toMatch(
      /kubeconfig .*nothing cannot be read: there is no such file; name another file in the configuration/,
    );
  });
});

describe('without a file', () => {
  const clock = new FakeClock();
  const unnamed = { kubeconfig: '', context: '' };

  test('the service account of the Pod takes precedence', async () => {
    put('sa/token', 'pod-token\n');
    put('sa/ca.crt', certificate('ca.crt'));
    put('sa/namespace', 'vc-ns\n');
    const serviceAccountFolder = join(ROOT, 'sa');
    for (const [host, server] of [
      ['10.0.0.1', 'https://10.0.0.1:443'],
      ['fd00::1', 'https://[fd00::1]:443'],
    ]) {
      const env = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: '443', KUBECONFIG: '/unused' };
      const access = loadClusterAccess(unnamed, { clock, env, serviceAccountFolder });
      expect([access.server, access.namespace]).toEqual([server, 'vc-ns']);
      expect(await access.credentials.headers()).toEqual({ authorization: 'Bearer pod-token' });
      expect((await access.trust()).ca?.toString()).toBe(certificate('ca.crt'));
    }
  });

  test.each([
    ['the first of several files of KUBECONFIG, which may be missing', unnamed, 'missing:p1:p2', 'one'],
    ['a file that is named wins over KUBECONFIG', { kubeconfig: 'p1', context: '' }, 'p2', 'one'],
    [
      'the context that is named wins over the current one',
      { kubeconfig: '', context: 'other' },
      'p1',
      'two',
    ],
    ['a context of a later file of KUBECONFIG', { kubeconfig: '', context: 'second' }, 'p1:p2', 'three'],
    [
      'the file in the home folder, as an empty KUBECONFIG counts as not set',
      { kubeconfig: '', context: '' },
      '',
      'home',
    ],
  ])('as kubectl: %s', (_, { kubeconfig: file, context }, paths, namespace) => {
    const contexts = (entries: readonly (readonly [string, string])[]): string =>
      `contexts: [${entries.map(([name, space]) => `{name: ${name}, context: {cluster: c, user: u, namespace: ${space}}}`).join(', ')}]`;
    const text = (entries: readonly (readonly [string, string])[]): string =>
      `apiVersion: v1\nkind: Config\ncurrent-context: ${entries[0]?.[0]}\nclusters: [{name: c, cluster: {server: "https://a"}}]\nusers: [{name: u, user: {token: t}}]\n${contexts(entries)}\n`;
    put(
      'p1',
      text([
        ['first', 'one'],
        ['other', 'two'],
      ]),
    );
    put('p2', text([['second', 'three']]));
    put('precedence/.kube/config', text([['home', 'home']]));
    const env = {
      HOME: join(ROOT, 'precedence'),
      KUBECONFIG: paths
        .split(':')
        .filter((name) => name !== '')
        .map((name) => join(ROOT, name))
        .join(':'),
    };
    const source = { kubeconfig: file === '' ? '' : join(ROOT, file), context };
    expect(loadClusterAccess(source, { clock, env }).namespace).toBe(namespace);
  });

  test('a context that no file has is an error that names it', () => {
    const file = put('one-context', kubeconfig({ user: 'token: t' }));
    const source = { kubeconfig: '', context: 'missing' };
    expect(problem(() => loadClusterAccess(source, { clock, env: { KUBECONFIG: file } }))).toMatch(/missing/);
  });

  test('none at all is an error with the next step', () => {
    const env = { HOME: join(ROOT, 'empty-home') };
    expect(problem(() => loadClusterAccess(unnamed, { clock, env }))).toMatch(
      /no kubeconfig found: .*name a file in the configuration/,
    );
  });
});

describe('another URL of the same server', () => {
  const server = 'https://my-vcluster.team-a/base/';
  const clock = new FakeClock();

  test('has the same credentials and trust', async () => {
    const path = put('moved', kubeconfig());
    const access = loadClusterAccess({ kubeconfig: path, context: '' }, { clock });
    const moved = loadClusterAccess({ kubeconfig: path, context: '', server }, { clock });
    expect(moved.server).toBe('https://my-vcluster.team-a/base');
    expect(await moved.credentials.headers()).toEqual(await access.credentials.headers());
    expect(await moved.trust()).toEqual(await access.trust());
  });

  test('has the proxy of the environment for that URL, not for the one of the file', async () => {
    const env = { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: '.example' };
    const proxyOf = (written: string, other: string) => {
      const path = put('moved', kubeconfig({ cluster: `server: "${written}"` }));
      return loadClusterAccess({ kubeconfig: path, context: '', server: other }, { clock, env }).proxyUrl;
    };
    expect(proxyOf('https://localhost:8443', server)).toBe('http://proxy:3128');
    expect(proxyOf('https://vc.company', 'https://vc.example')).toBeUndefined();
    const place = { namespace: 'ns', name: 'vc-my' };
    const get = async (): Promise<KubeObject> => ({
      metadata: { ...place, resourceVersion: '1' },
      data: { config: base64(kubeconfig()) },
    });
    const access = await kubeconfigFromSecret({ get }, place, { clock, server, env });
    expect([access.server, access.proxyUrl]).toEqual([
      'https://my-vcluster.team-a/base',
      'http://proxy:3128',
    ]);
  });

  test('follows the proxy in a kubeconfig that changes', async () => {
    const write = (port: number): string =>
      put('moved', kubeconfig({ cluster: `server: "https://a", proxy-url: "http://proxy:${port}"` }));
    const access = loadClusterAccess({ kubeconfig: write(1), context: '', server }, { clock });
    write(2);
    clock.advance(60_000);
    await access.credentials.headers();
    expect(access.proxyUrl).toBe('http://proxy:2');
  });
});

describe('a kubeconfig in a Secret', () => {
  function secret(data: Record<string, string> | undefined): KubeObject {
    const object: KubeObject = { metadata: { name: 'vc-my', namespace: 'ns' } };
    if (data !== undefined) object['data'] = data;
    return object;
  }

  const read = (get: () => Promise<KubeObject>, clock = new FakeClock()): Promise<ServerAccess> =>
    kubeconfigFromSecret({ get }, { namespace: 'ns', name: 'vc-my' }, { clock });

  test('is read, and read again for new connections and after a 401', async () => {
    const clock = new FakeClock();
    let token = 'one';
    let reads = 0;
    const get = async (): Promise<KubeObject> => {
      reads += 1;
      if (token === '') throw new Error('host away');
      return secret({ config: base64(kubeconfig({ user: `token: ${token}` })) });
    };
    const access = await read(get, clock);
    const { credentials, description } = access;
    expect(description).toBe('context x of Secret ns/vc-my of the host cluster');
    token = 'two';
    expect(await credentials.headers()).toEqual({ authorization: 'Bearer one' });
    await access.trust();
    expect(reads).toBe(1);
    clock.advance(11_000);
    expect(credentials.invalidate()).toBe(true);
    expect(await credentials.headers()).toEqual({ authorization: 'Bearer two' });
    expect(credentials.invalidate()).toBe(false);
    token = '';
    clock.advance(300_000);
    expect(await credentials.certificate()).toBeUndefined();
    expect(await credentials.headers(), 'what is at hand').toEqual({ authorization: 'Bearer two' });
    expect(reads).toBe(3);
  });

  test.each<[string, () => Promise<KubeObject>, RegExp]>([
    [
      'is missing',
      () => Promise.reject(failure(404, 'NotFound', 'gone')),
      /Secret ns\/vc-my of the host cluster does not exist: vCluster writes vc-NAME .* set endpointSyncer.virtual.secret/,
    ],
    [
      'has no data',
      async () => secret(undefined),
      /has none of the keys config, value, .* with a kubeconfig; it has: none/,
    ],
    ['has another key', async () => secret({ kubeconfig: '' }), /it has: kubeconfig/],
    ['holds nonsense', async () => secret({ config: base64('nonsense') }), /is not a kubeconfig/],
  ])('that %s', async (_, get, message) => {
    await expect(read(get)).rejects.toThrow(message);
  });

  test.each(['value', 'kubeconfig', 'kubeconfig.yaml', 'admin.conf'])('may be in the key %s', async (key) => {
    const access = await read(async () => secret({ [key]: base64(kubeconfig()) }));
    expect(access.server).toBe('https://127.0.0.1:6443');
  });

  test('is read again, and another server used, when the server cannot be reached', async () => {
    const clock = new FakeClock();
    let server = 'https://one:6443';
    const get = async (): Promise<KubeObject> =>
      secret({ config: base64(kubeconfig({ cluster: `server: "${server}"` })) });
    const access = await read(get, clock);
    server = 'https://two:6443';
    access.unreachable?.();
    await access.credentials.headers();
    expect(access.server, 'not read twice at once').toBe('https://one:6443');
    clock.advance(11_000);
    access.unreachable?.();
    await access.credentials.headers();
    expect(access.server).toBe('https://two:6443');
  });

  const fromSecret = (parts: Parts): Promise<ServerAccess> =>
    read(async () => secret({ config: base64(kubeconfig(parts)) }));

  test('runs no program of the daemon', async () => {
    const marker = join(ROOT, 'was-run');
    const command = put('from-secret/plugin', `#!/bin/sh\ntouch ${marker}\n`, 0o755);
    const user = `exec: {apiVersion: client.authentication.k8s.io/v1, command: ${command}}`;
    const headers = fromSecret({ user }).then(({ credentials }) => credentials.headers());
    await expect(headers).rejects.toThrow(/users\[u\]\.exec/);
    expect(existsSync(marker)).toBe(false);
  });

  test.each<[string, Parts]>([
    ['users[u].exec', { user: 'token: abc, exec: {command: /bin/true}' }],
    ['users[u].auth-provider', { user: 'auth-provider: {name: oidc}' }],
    ['users[u].tokenFile', { user: 'tokenFile: /etc/hostname' }],
    ['users[u].client-certificate', { user: 'client-certificate: /etc/hostname' }],
    ['users[u].client-key', { user: 'client-key: /etc/hostname' }],
    ['users[u].username', { user: 'username: a, password: b' }],
    ['users[u].as', { user: 'token: abc, as: system:admin' }],
    [
      'clusters[c].certificate-authority',
      { cluster: 'server: "https://127.0.0.1", certificate-authority: /etc/hostname' },
    ],
    ['clusters[c].proxy-url', { cluster: 'server: "https://127.0.0.1", proxy-url: "http://127.0.0.1:1"' }],
  ])('is refused with %s', async (field, parts) => {
    await expect(fromSecret(parts)).rejects.toThrow(
      `of the host cluster, line ${field.startsWith('users') ? 4 : 3}: ${field} is not accepted in a kubeconfig from a Secret`,
    );
  });

  test('that names a user that is not there is refused', async () => {
    await expect(fromSecret({ context: 'cluster: c, user: v' })).rejects.toThrow(
      /of the host cluster, line 5: contexts\[x\].user is "v", which is not there; choose one of: u/,
    );
  });

  test('keeps its data, the name to verify, and empty fields', async () => {
    const ca = base64(certificate('ca.crt'));
    const access = await fromSecret({
      cluster: `server: "https://127.0.0.1:6443", certificate-authority-data: ${ca}, tls-server-name: kubernetes`,
      user: 'token: abc, client-certificate: "", username: null, password: ""',
    });
    expect(access.server).toBe('https://127.0.0.1:6443');
    expect(await access.trust()).toMatchObject({ serverName: 'kubernetes', isUnverified: false });
    expect(await access.credentials.headers()).toEqual({ authorization: 'Bearer abc' });
  });

  test('that vCluster exports as insecure is accepted', async () => {
    const access = await fromSecret({
      cluster: 'server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true',
    });
    expect(await access.trust()).toMatchObject({ isUnverified: true });
  });
});

describe('a kubeconfig file that is replaced', () => {
  test('has another token: it is used after a 401, and in any case after half a minute', () => {
    const clock = new FakeClock();
    const file = put('replaced/config', kubeconfig({ user: 'token: one' }));
    const { credentials } = loadClusterAccess({ kubeconfig: file, context: '' }, { clock, env: {} });
    put('replaced/config', kubeconfig({ user: 'token: two' }));
    expect(credentials.headers()).toEqual({ authorization: 'Bearer one' });
    clock.advance(2000);
    expect(credentials.invalidate()).toBe(true);
    expect(credentials.headers()).toEqual({ authorization: 'Bearer two' });
    put('replaced/config', kubeconfig({ user: 'token: three' }));
    clock.advance(31_000);
    expect(credentials.headers()).toEqual({ authorization: 'Bearer three' });
    put('replaced/config', 'half written');
    clock.advance(31_000);
    expect(credentials.headers()).toEqual({ authorization: 'Bearer three' });
  });
});

describe('the proxy of the environment', () => {
  const proxy = { HTTPS_PROXY: 'http://proxy:3128' };
  const proxyOf = (cluster: string, env: Record<string, string>): string | undefined =>
    load({ cluster }, {}, new FakeClock(), env).proxyUrl;

  test.each<[string, Record<string, string>, string | undefined]>([
    ['https://a.example:6443', proxy, 'http://proxy:3128'],
    ['https://a.example:6443', { https_proxy: 'proxy:3128' }, 'http://proxy:3128'],
    ['https://a.example:6443', { HTTP_PROXY: 'http://proxy:3128' }, undefined],
    ['http://a.example', { http_proxy: 'http://proxy:3128' }, 'http://proxy:3128'],
    ['https://127.0.0.1:6443', proxy, undefined],
    ['https://localhost:6443', proxy, undefined],
    ['https://[::1]:6443', proxy, undefined],
    ['https://a.example:6443', { ...proxy, NO_PROXY: '*' }, undefined],
    ['https://a.example:6443', { ...proxy, NO_PROXY: 'example' }, undefined],
    ['https://a.example:6443', { ...proxy, no_proxy: 'b, .EXAMPLE' }, undefined],
    ['https://example:6443', { ...proxy, NO_PROXY: '.example' }, 'http://proxy:3128'],
    ['https://a.example:6443', { ...proxy, NO_PROXY: '*.example' }, undefined],
    ['https://aexample:6443', { ...proxy, NO_PROXY: 'example' }, 'http://proxy:3128'],
    ['https://a.example:6443', { ...proxy, NO_PROXY: 'a.example:6443' }, undefined],
    ['https://a.example:6443', { ...proxy, NO_PROXY: 'a.example:443' }, 'http://proxy:3128'],
    ['https://a.example', { ...proxy, NO_PROXY: 'a.example:443' }, undefined],
    ['https://10.96.0.1', { ...proxy, NO_PROXY: '10.96.0.0/12' }, undefined],
    ['https://10.112.0.1', { ...proxy, NO_PROXY: '10.96.0.0/12' }, 'http://proxy:3128'],
    ['https://10.96.0.1', { ...proxy, NO_PROXY: '10.96.0.1' }, undefined],
    ['https://[fd00::1]:6443', { ...proxy, NO_PROXY: 'fd00::/8' }, undefined],
    ['https://[fd00::1]:6443', { ...proxy, NO_PROXY: '[fd00::1]:6443' }, undefined],
    ['https://[fd00::1]:6443', { ...proxy, NO_PROXY: 'FD00:0::0001' }, undefined],
    ['https://a.example', { ...proxy, NO_PROXY: '10.0.0.0/99,/,:,' }, 'http://proxy:3128'],
  ])('%s with %o: %s', (server, env, expected) => {
    expect(proxyOf(`server: "${server}"`, env)).toBe(expected);
  });

  test('of another kind is refused', () => {
    const env = { HTTPS_PROXY: 'socks5://proxy:1080' };
    expect(() => proxyOf('server: "https://a.example"', env)).toThrow(
      'HTTPS_PROXY of the environment: "socks5://proxy:1080" is not supported; use an http or https proxy',
    );
  });

  test('proxy-url of the kubeconfig comes first', () => {
    expect(proxyOf('server: "https://a.example", proxy-url: "http://own:1"', proxy)).toBe('http://own:1');
  });
});
