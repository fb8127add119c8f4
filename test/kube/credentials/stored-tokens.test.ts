/** Tokens of an OIDC user that were renewed are in the kubeconfig for the next program, and nothing else of it has changed. */

import { createServer } from 'node:http';
import { lstatSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { parseYaml } from '../../../src/base/yaml/document.ts';
import type { ServerAccess } from '../../../src/kube/access.ts';
import { loadClusterAccess } from '../../../src/kube/credentials/kubeconfig.ts';
import { withTokens } from '../../../src/kube/credentials/stored-tokens.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { listen } from '../../support/listen.ts';
import { put, ROOT } from './kubeconfig-files.ts';

afterAll(() => rmSync(ROOT, { recursive: true, force: true }));

const TOKENS = { idToken: 'new.id.token', refreshToken: 'r1' };

function block(tokens: string, more = ''): string {
  return `# of the team
apiVersion: v1
kind: Config
current-context: x   # the usual one
contexts: [{name: x, context: {cluster: c, user: u}}, {name: z, context: {cluster: c, user: u}}]
clusters:
- name: c
  cluster: {server: "http://127.0.0.1:1"}
users:
- name: other
  user: {token: "123"}
- name: u
  user:
    auth-provider:
      name: oidc
      config:
        client-id: me # public
        idp-issuer-url: ISSUER
${tokens}
        zone: 'x'
${more}`;
}

const FORMS: readonly (readonly [what: string, text: string])[] = [
  ['plain', block('        id-token: old\n        refresh-token: r0')],
  ['quoted, with comments', block(`        refresh-token: 'r0' # secret\n        id-token: "old"`)],
  ['literal', block('        id-token: |-\n          old\n        refresh-token: >-\n          r0\n')],
  ['without an id-token', block('        refresh-token: r0')],
  ['with an empty id-token', block('        id-token:\n        refresh-token: r0')],
  ['with CRLF', block('        id-token: old\n        refresh-token: r0').replaceAll('\n', '\r\n')],
  ['JSON', JSON.stringify(parse(block('        id-token: old\n        refresh-token: r0')))],
  ['indented JSON', JSON.stringify(parse(block('        refresh-token: r0')), null, 2)],
];

describe('the text of a kubeconfig', () => {
  test.each(FORMS)('gets the tokens and stays as it is: %s', (_, text) => {
    const next = withTokens(text, 'u', TOKENS);
    const config = { 'id-token': TOKENS.idToken, 'refresh-token': TOKENS.refreshToken };
    const [before, after] = [text, next ?? ''].map(
      (one) => parse(one) as { users: { user: { 'auth-provider'?: { config: object } } }[] },
    );
    const user = before?.users.find((one) => one.user['auth-provider'] !== undefined)?.user['auth-provider'];
    Object.assign(user?.config ?? {}, config);
    expect(after).toEqual(before);
    const others = (lines: string): readonly string[] =>
      lines.split('\n').filter((line) => !/token|old|r0|r1/u.test(line));
    expect(others(next ?? '')).toEqual(others(text));
  });

  test.each([
    [
      'the refresh-token is an alias',
      block('        refresh-token: *t', 'extra: r0').replace('"123"', '&t "r0"'),
    ],
    [
      'another value is an alias of it',
      block('        id-token: &t old\n        refresh-token: r0', 'extra: *t\n'),
    ],
    ['there is no such user', block('        refresh-token: r0').replace('name: u', 'name: v')],
    ['there is no refresh-token', block('')],
  ])('is not guessed where %s', (_, text) => {
    expect(withTokens(text, 'u', TOKENS)).toBeUndefined();
  });

  test('has the tokens, whatever else it has and however it is printed', () => {
    const key = fc.stringMatching(/^[a-z-]{1,12}$/u).filter((one) => !one.endsWith('-token'));
    const entry = fc.record({
      name: fc.constantFrom('u', 'v', 'w x'),
      user: fc.record({
        'auth-provider': fc.record({
          config: fc
            .tuple(fc.dictionary(key, fc.string()), fc.string(), fc.option(fc.string(), { nil: undefined }))
            .map(([rest, refresh, id]) => ({
              ...rest,
              'refresh-token': refresh,
              ...(id !== undefined && { 'id-token': id }),
            })),
        }),
      }),
    });
    const printing = fc.record({
      defaultStringType: fc.constantFrom('PLAIN' as const, 'QUOTE_DOUBLE' as const, 'BLOCK_LITERAL' as const),
      collectionStyle: fc.constantFrom('any' as const, 'flow' as const, 'block' as const),
      indent: fc.integer({ min: 1, max: 6 }),
    });
    fc.assert(
      fc.property(
        fc.uniqueArray(entry, { selector: ({ name }) => name, minLength: 1 }),
        printing,
        (users, how) => {
          const name = users[0]?.name ?? '';
          const text = stringify({ users }, how);
          fc.pre(parseYaml(text).isReadable); // what YAML 1.1 refuses is no kubeconfig
          const [next, wanted] = [withTokens(text, name, TOKENS) ?? '', text].map(
            (one) => parse(one, { schema: 'failsafe' }) as { users: typeof users },
          );
          const config = { 'id-token': TOKENS.idToken, 'refresh-token': TOKENS.refreshToken };
          if (wanted?.users[0] !== undefined)
            Object.assign(wanted.users[0].user['auth-provider'].config, config);
          expect(next).toEqual(wanted);
        },
      ),
    );
  });
});

describe('a provider that accepts each refresh token once', () => {
  async function startProvider(clock: FakeClock) {
    let valid = 'r0';
    const used: string[] = [];
    const server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        if (request.url?.includes('openid-configuration') === true) {
          response.end(JSON.stringify({ token_endpoint: `${url}/token` }));
          return;
        }
        const given = new URLSearchParams(body).get('refresh_token') ?? '';
        used.push(given);
        if (given !== valid) {
          response.writeHead(400).end('{"error":"invalid_grant"}');
          return;
        }
        valid = `r${used.length}`;
        const claims = JSON.stringify({ exp: Math.floor(clock.now() / 1000) + 600, count: used.length });
        const id_token = `h.${Buffer.from(claims).toString('base64url')}.s`;
        response.end(JSON.stringify({ id_token, refresh_token: valid }));
      });
    });
    const url = `http://127.0.0.1:${await listen(server)}`;
    return {
      url,
      used,
      [Symbol.asyncDispose]: async () => {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    };
  }

  let folders = 0;
  const configAt = (url: string, tokens = '        id-token: old\n        refresh-token: r0', mode = 0o640) =>
    put(`stored/${(folders += 1)}/config`, block(tokens).replace('ISSUER', url), mode);

  function load(file: string, { clock, context = '', env = {}, warnings = [] }: Loaded): ServerAccess {
    const kubeconfig = 'KUBECONFIG' in env ? '' : file;
    const warn = (message: string): void => void warnings.push(message);
    return loadClusterAccess({ kubeconfig, context }, { clock, env, warn, serviceAccountFolder: '/none' });
  }

  interface Loaded {
    readonly clock: FakeClock;
    readonly context?: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly warnings?: string[];
  }

  test('finds the next one in the file, which keeps its mode, and no other file beside it', async () => {
    const clock = new FakeClock();
    await using provider = await startProvider(clock);
    const file = configAt(provider.url);
    for (const _ of [1, 2, 3]) {
      await load(file, { clock }).credentials.headers();
      clock.advance(600_000);
    }
    expect(provider.used).toEqual(['r0', 'r1', 'r2']);
    expect(readFileSync(file, 'utf8')).toContain('refresh-token: "r3"');
    expect(statSync(file).mode & 0o777).toBe(0o640);
    expect(readdirSync(dirname(file))).toEqual(['config']);
  });

  test('is asked once by all who use the user of a file at the same time', async () => {
    const clock = new FakeClock();
    await using provider = await startProvider(clock);
    const file = configAt(provider.url);
    const all = ['x', 'z', 'x'].map(async (context) => load(file, { clock, context }).credentials.headers());
    const [first, ...others] = await Promise.all(all);
    expect(provider.used).toEqual(['r0']);
    expect(others).toEqual([first, first]);
  });

  test('is asked with what another program has stored meanwhile', async () => {
    const clock = new FakeClock();
    await using provider = await startProvider(clock);
    const file = configAt(provider.url);
    const access = load(file, { clock });
    await load(file, { clock }).credentials.headers();
    clock.advance(600_000);
    await access.credentials.headers();
    expect(provider.used).toEqual(['r0', 'r1']);
  });

  test('is stored in the file that has the user, behind a link too', async () => {
    const clock = new FakeClock();
    await using provider = await startProvider(clock);
    const file = configAt(provider.url);
    const link = join(dirname(file), 'link');
    symlinkSync(file, link);
    const contexts = put(`stored/${(folders += 1)}/contexts`, 'current-context: z\n');
    const env = { KUBECONFIG: `${contexts}:${link}` };
    await load(link, { clock, env }).credentials.headers();
    expect(readFileSync(contexts, 'utf8')).toBe('current-context: z\n');
    expect(readFileSync(file, 'utf8')).toContain('"r1"');
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
  });

  test('is used from memory, with one warning, where the file cannot have the next one', async () => {
    const clock = new FakeClock();
    await using provider = await startProvider(clock);
    const file = configAt(provider.url, '        refresh-token: *t');
    const text = readFileSync(file, 'utf8').replace('"123"', '&t r0');
    writeFileSync(file, text);
    const warnings: string[] = [];
    const { credentials } = load(file, { clock, warnings });
    for (const _ of [1, 2, 3]) {
      await credentials.headers();
      clock.advance(600_000);
    }
    expect(provider.used).toEqual(['r0', 'r1', 'r2']);
    expect(readFileSync(file, 'utf8')).toBe(text);
    expect(warnings).toEqual([
      expect.stringMatching(/refresh-token of user u, and the new one cannot be stored: /u),
    ]);
  });
});
