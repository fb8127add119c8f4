/** Credentials of exec plugins: when they are run, what they may return, and how they fail. */

import { readFileSync, rmSync } from 'node:fs';
import { inspect } from 'node:util';
import { createServer } from 'node:https';
import { afterAll, describe, expect, test } from 'vitest';
import { loadClusterAccess } from '../../../src/kube/credentials/kubeconfig.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { listen } from '../../support/listen.ts';
import { worldText } from '../../support/world-file.ts';
import { ROOT, base64, certificate, put, load, type Parts } from './kubeconfig-files.ts';

afterAll(() => rmSync(ROOT, { recursive: true, force: true }));

describe('an exec plugin', () => {
  function plugin(name: string, script: string): string {
    return put(`plugins/${name}`, `#!${process.execPath}\n${script}`, 0o700);
  }

  function exec(command: string, extra = ', interactiveMode: Never', version = 'v1'): Parts {
    return {
      user: `exec: {apiVersion: client.authentication.k8s.io/${version}, command: "${command}", args: [x], env: [{name: A, value: b}]${extra}}`,
    };
  }

  /** Prints this text. */
  function printing(name: string, text: string): string {
    return plugin(name, `process.stdout.write(${JSON.stringify(text)})`);
  }

  const answer = (status: unknown, version = 'v1'): string =>
    JSON.stringify({ kind: 'ExecCredential', apiVersion: `client.authentication.k8s.io/${version}`, status });

  const COUNTING = `
    const { readFileSync, writeFileSync } = require('node:fs');
    const file = __filename + '.count';
    let count = 0;
    try { count = Number(readFileSync(file, 'utf8')); } catch {}
    writeFileSync(file, String(count + 1));
    const info = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
    const token = [info.apiVersion, info.spec.interactive, process.env.A, process.argv[2], count].join('|');
    console.log(JSON.stringify({ kind: 'ExecCredential', apiVersion: info.apiVersion, status: { token } }));`;

  test('runs once for all waiting requests, and again when its token is rejected', async () => {
    const clock = new FakeClock();
    const { credentials } = load(exec(plugin('counting.cjs', COUNTING)), {}, clock);
    const answers = await Promise.all([
      credentials.headers(),
      credentials.headers(),
      credentials.certificate(),
    ]);
    const first = { authorization: 'Bearer client.authentication.k8s.io/v1|false|b|x|0' };
    expect(answers).toEqual([first, first, undefined]);
    clock.advance(60_000);
    expect(await credentials.headers(), 'without an expiry it stays good').toEqual(first);
    expect(credentials.invalidate()).toBe(true);
    expect(await credentials.headers()).toEqual({
      authorization: 'Bearer client.authentication.k8s.io/v1|false|b|x|1',
    });
    expect(credentials.invalidate(), 'not twice in a row').toBe(false);
    clock.advance(10_000);
    expect(credentials.invalidate()).toBe(true);
  });

  test('may return a certificate', async () => {
    const [cert, key] = [certificate('client.crt'), certificate('client.key')];
    const text = answer({ clientCertificateData: cert, clientKeyData: key });
    const { credentials } = load(exec(printing('certificate.cjs', text)));
    expect(await credentials.certificate()).toEqual({ cert, key });
    expect(await credentials.headers()).toEqual({});
  });

  test('may answer in YAML, and is told of the cluster what its extension says, if it is to be', async () => {
    const script = `
      const { spec } = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
      const token = Buffer.from(JSON.stringify(spec)).toString('base64');
      console.log('apiVersion: client.authentication.k8s.io/v1beta1\\nkind: ExecCredential\\nstatus: {token: ' + token + '}');`;
    const command = plugin('yaml.cjs', script);
    const toldWith = async (extra: string): Promise<unknown> => {
      const cluster =
        'server: "https://127.0.0.1:1", extensions: [{name: client.authentication.k8s.io/exec, extension: {shoot: {name: demo, size: 3}}}]';
      const { credentials } = load({ ...exec(command, extra, 'v1beta1'), cluster });
      const { authorization = '' } = await credentials.headers();
      return JSON.parse(Buffer.from(authorization.slice('Bearer '.length), 'base64').toString());
    };
    expect(await toldWith('')).toEqual({ interactive: false });
    expect(await toldWith(', provideClusterInfo: true')).toEqual({
      interactive: false,
      cluster: { server: 'https://127.0.0.1:1', config: { shoot: { name: 'demo', size: 3 } } },
    });
  });

  test('beside its kubeconfig gets what the cluster says for it, as a provider of clusters writes it', async () => {
    const command = worldText('field/f3-exec/plugin.sh')
      .replace('\'%s\' "$KUBERNETES_EXEC_INFO" > exec-info.json', `'%s' "$KUBERNETES_EXEC_INFO" > "$0.json"`)
      .replace('"$PLUGIN_OUTPUT"', `'${answer({ token: 'a' })}'`);
    const path = put('shoot/plugin.sh', command, 0o700);
    const config = worldText('field/f3-exec/kubeconfig.yaml')
      .replace('server: SERVER', 'server: https://127.0.0.1:1')
      .replace('data: CA', `data: ${base64(certificate('ca.crt'))}`);
    const file = put('shoot/config', config);
    const { credentials } = loadClusterAccess(
      { kubeconfig: file, context: '' },
      { clock: new FakeClock(), env: {} },
    );
    expect(await credentials.headers()).toEqual({ authorization: 'Bearer a' });
    expect(JSON.parse(readFileSync(`${path}.json`, 'utf8'))).toMatchObject({
      apiVersion: 'client.authentication.k8s.io/v1',
      spec: { interactive: false, cluster: { config: { shoot: { name: 'demo' } } } },
    });
  });

  test('is run again when its answer has expired', async () => {
    const clock = new FakeClock();
    const at = new Date(clock.now() + 60_000).toISOString();
    const script = COUNTING.replace('status: { token }', `status: { token, expirationTimestamp: '${at}' }`);
    const { credentials } = load(exec(plugin('expiring.cjs', script)), {}, clock);
    const countOf = async (): Promise<string | undefined> =>
      (await credentials.headers())['authorization']?.split('|').at(-1);
    expect(await countOf()).toBe('0');
    clock.advance(30_000);
    expect(await countOf()).toBe('0');
    clock.advance(31_000);
    expect(await countOf()).toBe('1');
  });

  test('in place of which a certificate of the kubeconfig stands is not run', async () => {
    const more = `exec: {apiVersion: client.authentication.k8s.io/v1, command: /nowhere/plugin, interactiveMode: Never}`;
    const [cert, key] = [certificate('client.crt'), certificate('client.key')];
    const data = (text: string): string => Buffer.from(text).toString('base64');
    const user = `client-certificate-data: ${data(cert)}, client-key-data: ${data(key)}, ${more}`;
    const { credentials } = load({ user });
    expect(await credentials.headers()).toEqual({});
    const found = await credentials.certificate();
    expect([String(found?.cert), String(found?.key)]).toEqual([cert, key]);
  });

  const SECRET = 'hunter2-secret';
  test.each<[string, string, RegExp]>([
    ['text', SECRET, /printed something that is not an ExecCredential$/],
    ['a list', `["${SECRET}"]`, /printed something that is not an ExecCredential$/],
    [
      'YAML with a key twice',
      `token: ${SECRET}\ntoken: b\n`,
      /printed something that is not an ExecCredential$/,
    ],
    [
      'another kind',
      `{"kind":"${SECRET}","apiVersion":"v1"}`,
      /returned an object that is not an ExecCredential$/,
    ],
    [
      'another version',
      answer({ token: SECRET }, 'v1beta1'),
      /returned an ExecCredential of client\.authentication\.k8s\.io\/v1beta1, but its apiVersion in the kubeconfig is client\.authentication\.k8s\.io\/v1$/,
    ],
    [
      'no version',
      JSON.stringify({ kind: 'ExecCredential', status: { token: SECRET } }),
      /ExecCredential of another version/,
    ],
    ['no status', answer(undefined), /returned no status$/],
    ['a status that is text', answer(SECRET), /returned a status that is not a mapping$/],
    ['an empty status', answer({}), /returned neither a token nor a certificate and its key$/],
    ['a token that is a number', answer({ token: 7 }), /returned a status\.token that is not text$/],
    [
      'a certificate alone',
      answer({ clientCertificateData: SECRET }),
      /returned only a certificate or a key, not both$/,
    ],
    [
      'no pair',
      answer({ clientCertificateData: SECRET, clientKeyData: SECRET }),
      /returned a certificate and a key that are not a pair in PEM$/,
    ],
    [
      'a token of two lines',
      answer({ token: `${SECRET}\nb` }),
      /returned a token with characters that no HTTP header may have$/,
    ],
    [
      'a time that is none',
      answer({ token: SECRET, expirationTimestamp: '2026-02-30T00:00:00Z' }),
      /returned a status\.expirationTimestamp that is not a time of RFC 3339$/,
    ],
  ])('that prints %s fails, and no text has a character of it', async (what, text, message) => {
    const { credentials } = load(exec(printing(`${what.replaceAll(' ', '-')}.cjs`, text)));
    const error: unknown = await Promise.resolve(credentials.headers()).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ message: expect.stringMatching(message) as string });
    expect(inspect(error, { depth: 9 })).not.toContain(SECRET);
  });

  test.each<[string, string, string, RegExp]>([
    ['no mode', '', 'v1', /users\[u\]\.exec\.interactiveMode "" is none of Never, IfAvailable, Always/],
    ['an unknown mode', ', interactiveMode: Sometimes', 'v1', /"Sometimes" is none of/],
    [
      'a terminal',
      ', interactiveMode: Always',
      'v1',
      /interactiveMode is Always, but the standard input of this process is not a terminal/,
    ],
    [
      'an old version',
      '',
      'v1alpha1',
      /apiVersion "client\.authentication\.k8s\.io\/v1alpha1" is not supported; use /,
    ],
  ])('that needs %s is refused with its field', (_, extra, version, message) => {
    expect(() => load(exec('/bin/true', extra, version))).toThrow(message);
  });

  test.each([
    [
      'is missing',
      '/nowhere/plugin',
      ', interactiveMode: Never, installHint: "install it"',
      /credential plugin of user u \(exec\) in .* failed: executable \/nowhere\/plugin not found; install it$/,
    ],
    [
      'fails',
      () => plugin('fails.cjs', `console.error('login first'); process.exit(3)`),
      ', interactiveMode: Never, installHint: "install it"',
      /failed: login first$/,
    ],
    [
      'fails without a message',
      () => plugin('silent.cjs', `process.exit(3)`),
      ', interactiveMode: Never',
      /failed: it printed no error, and exited with 3$/,
    ],
    [
      'is ended',
      () => plugin('ended.cjs', `process.kill(process.pid, 'SIGKILL')`),
      ', interactiveMode: Never',
      /failed: it printed no error, and was ended by SIGKILL$/,
    ],
    ...[1, 2].map((fd): [string, () => string, string, RegExp] => [
      `prints without end on its file ${fd}`,
      () => put(`plugins/endless-${fd}`, `#!/bin/sh\nexec yes '' >&${fd}`, 0o700),
      ', interactiveMode: Never',
      /failed: it printed more than 262144 characters$/,
    ]),
  ])('that %s fails with the reason', async (_, command, extra, message) => {
    const { credentials } = load(exec(typeof command === 'string' ? command : command(), extra));
    await expect(credentials.headers()).rejects.toThrow(message);
    await expect(credentials.headers(), 'and the next try is a new one').rejects.toThrow(message);
  });

  test.each([
    ['magic', /users\[u\]\.auth-provider "magic" is not supported; use an exec plugin$/],
    ['gcp', /"gcp" is not supported; use the exec plugin gke-gcloud-auth-plugin$/],
    ['azure', /"azure" is not supported; use the exec plugin kubelogin/],
  ])('stands in for the auth provider %s', (name, message) => {
    expect(() => load({ user: `auth-provider: {name: ${name}, config: {access-token: abc}}` })).toThrow(
      message,
    );
  });
});

describe('the auth provider oidc', () => {
  interface Grant {
    readonly form: Record<string, string>;
    readonly authorization: string | undefined;
  }

  const idToken = (clock: FakeClock, name: string): string => {
    const claims = JSON.stringify({ exp: Math.floor(clock.now() / 1000) + 600, name });
    return `h.${Buffer.from(claims).toString('base64url')}.s`;
  };

  /** An identity provider that replaces no refresh token. */
  async function startProvider(
    clock: FakeClock,
    isAccepted: (grant: Grant) => boolean = () => true,
  ): Promise<AsyncDisposable & { readonly url: string; readonly grants: Grant[] }> {
    const grants: Grant[] = [];
    const options = { cert: certificate('server.crt'), key: certificate('server.key') };
    const server = createServer(options, (request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        if (request.url === '/realm/.well-known/openid-configuration') {
          response.end(JSON.stringify({ issuer: `${url}/realm`, token_endpoint: `${url}/token` }));
          return;
        }
        const form = Object.fromEntries(new URLSearchParams(body));
        const grant = { form, authorization: request.headers.authorization };
        grants.push(grant);
        if (!isAccepted(grant)) {
          response.writeHead(401).end('{"error":"invalid_client"}');
          return;
        }
        const id_token = idToken(clock, String(grants.length));
        response.end(JSON.stringify({ id_token, access_token: 'a', token_type: 'Bearer', expires_in: 600 }));
      });
    });
    const url = `https://127.0.0.1:${await listen(server)}`;
    return {
      url,
      grants,
      async [Symbol.asyncDispose]() {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    };
  }

  function user(url: string, token: string, more = ''): Parts {
    const ca = Buffer.from(certificate('ca.crt')).toString('base64');
    const config = `idp-issuer-url: "${url}/realm", client-id: me, id-token: ${token}, refresh-token: r, idp-certificate-authority-data: ${ca}`;
    return { user: `auth-provider: {name: oidc, config: {${config}${more}}}` };
  }

  test('uses its token until it expires, then one of the refresh token, until that expires', async () => {
    const clock = new FakeClock();
    await using provider = await startProvider(clock);
    const first = idToken(clock, 'first');
    const { credentials } = load(user(provider.url, first), {}, clock);
    expect(await credentials.headers()).toEqual({ authorization: `Bearer ${first}` });
    for (const count of [1, 2]) {
      clock.advance(600_000);
      const renewed = idToken(clock, String(count));
      expect(await credentials.headers()).toEqual({ authorization: `Bearer ${renewed}` });
      clock.advance(60_000);
      expect(await credentials.headers(), 'not renewed before it expires').toEqual({
        authorization: `Bearer ${renewed}`,
      });
    }
    const form = { grant_type: 'refresh_token', refresh_token: 'r', client_id: 'me' };
    expect(provider.grants).toEqual([
      { form, authorization: undefined },
      { form, authorization: undefined },
    ]);
  });

  test.each([
    ['in the header', (grant: Grant) => grant.authorization === `Basic ${btoa('me:s%20%3A')}`, 1],
    ['in the form', (grant: Grant) => grant.form['client_secret'] === 's :', 2],
  ])('sends its client-secret %s', async (_, isAccepted, count) => {
    const clock = new FakeClock();
    await using provider = await startProvider(clock, isAccepted);
    const { credentials } = load(user(provider.url, 'expired', ', client-secret: "s :"'), {}, clock);
    expect(await credentials.headers()).toEqual({ authorization: `Bearer ${idToken(clock, String(count))}` });
  });

  test('that refuses is an error with the reason', async () => {
    const clock = new FakeClock();
    await using provider = await startProvider(clock, () => false);
    const { credentials } = load(user(provider.url, 'expired'), {}, clock);
    await expect(credentials.headers()).rejects.toThrow(
      /user u \(oidc\) in .* failed: .*\/token refused to refresh the id-token: 401 invalid_client/,
    );
  });
});
