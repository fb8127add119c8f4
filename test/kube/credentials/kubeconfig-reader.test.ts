/** A kubeconfig means what it means to client-go, or both refuse it; and what a refusal says. */

import { rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { hasGo } from '../../support/go-program.ts';
import { inClientGo, inThisProgram, type Connection, type Source } from './connections.ts';
import { base64, certificate, kubeconfig, put, ROOT } from './kubeconfig-files.ts';
import { kubeconfigFiles, kubeconfigText, MARK, putFiles } from './kubeconfig-texts.ts';

afterAll(() => rmSync(ROOT, { recursive: true, force: true }));

const RUNS = Number(process.env['KUBECONFIG_RUNS'] ?? 500);
/** Of the generated kubeconfigs; another one finds other texts. */
const SEED = Number(process.env['KUBECONFIG_SEED'] ?? 1);

interface Case {
  readonly source: Source;
  /** What is in the files, for the report. */
  readonly texts: unknown;
}

/** Returns the number of kubeconfigs that are accepted. */
async function expectSame(cases: readonly Case[]): Promise<number> {
  const theirs = inClientGo(cases.map(({ source }) => source));
  const wrong: object[] = [];
  let accepted = 0;
  for (const [index, { source, texts }] of cases.entries()) {
    const mine = await inThisProgram(source);
    const other = theirs[index] ?? { error: '' };
    const isSame = 'error' in mine ? 'error' in other : isDeepStrictEqual(mine, other);
    if (!isSame || ('error' in mine && !isExplained(mine.error))) wrong.push({ texts, mine, other });
    accepted += Number(!('error' in mine));
  }
  expect(wrong.slice(0, 3), `${wrong.length} of ${cases.length}`).toEqual([]);
  return accepted;
}

/** Which file and which line, with nothing of a credential. */
function isExplained(error: string): boolean {
  const isPlaced =
    error.includes(ROOT) && /\bline \d+|has no (?:context|current-context)|not a kubeconfig/u.test(error);
  return (
    !error.includes(MARK) &&
    (isPlaced || /^no kubeconfig found: |not text in UTF-8|^the credential plugin/u.test(error))
  );
}

const EXEC = 'exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}';
const CA = base64(certificate('ca.crt'));

/** A part of the connection, or what the refusal says after the name of the file. */
type Row = readonly [what: string, text: string, expected: Partial<Connection> | RegExp];

const TABLE: readonly Row[] = [
  [
    'a merge key keeps the token and the impersonation',
    `x-user: &u {token: abc, as: jane, as-groups: [g]}\n${kubeconfig({ user: '<<: *u, as: jack' })}`,
    {
      authorization: 'Bearer abc',
      impersonation: { 'impersonate-user': ['jack'], 'impersonate-group': ['g'] },
    },
  ],
  [
    'a token is a number',
    kubeconfig({ user: 'token: 12345' }),
    /, line 4: users\[u\]\.token must be text, but is a number: put it in quotes$/,
  ],
  [
    'a token is a number elsewhere',
    kubeconfig().replace('users: [', 'users: [{name: v, user: {token: 1}}, '),
    /, line 4: users\[v\]\.token must be text/,
  ],
  [
    'YAML 1.1',
    kubeconfig({ cluster: 'server: "https://a", insecure-skip-tls-verify: yes' }),
    { insecure: true },
  ],
  [
    'a flag in quotes',
    kubeconfig({ cluster: 'server: "https://a", insecure-skip-tls-verify: "true"' }),
    /, line 3: clusters\[c\]\.insecure-skip-tls-verify must be true or false, but is text: remove its quotes$/,
  ],
  [
    'an authority that would not be used',
    kubeconfig({
      cluster: `server: "https://a", insecure-skip-tls-verify: on, certificate-authority-data: ${CA}`,
    }),
    /, line 3: clusters\[c\]\.insecure-skip-tls-verify is set beside a certificate authority/,
  ],
  [
    'an authority in parts',
    kubeconfig({ cluster: `server: "https://a", certificate-authority-data: ${CA.slice(1)}` }),
    /, line 3: clusters\[c\]\.certificate-authority-data is not base64/,
  ],
  [
    'a second document',
    `${kubeconfig()}---\n${kubeconfig({ user: 'token: second' })}`,
    { authorization: 'Bearer abc' },
  ],
  ['a key twice', kubeconfig({ user: 'token: first, token: last' }), { authorization: 'Bearer last' }],
  [
    'a user twice',
    kubeconfig().replace('users: [', 'users: [{name: u, user: {}},\n  '),
    /, line 5: users\[u\] has the name of that in line 4: rename or remove one of them$/,
  ],
  [
    'a token and a name',
    kubeconfig({ user: 'token: abc, username: me' }),
    /, line 4: users\[u\]\.username is set beside a token/,
  ],
  [
    'a token and a file',
    kubeconfig({ user: 'token: abc, tokenFile: token' }),
    { authorization: `Bearer ${MARK}file` },
  ],
  [
    'a token and an empty file',
    kubeconfig({ user: 'token: abc, tokenFile: empty' }),
    { authorization: 'Bearer abc' },
  ],
  [
    'a token and a folder',
    kubeconfig({ user: 'token: abc, tokenFile: "."' }),
    { authorization: 'Bearer abc' },
  ],
  ['a token and a plugin', kubeconfig({ user: `token: abc, ${EXEC}` }), { authorization: 'Bearer abc' }],
  [
    'a plugin and a provider',
    kubeconfig({ user: `${EXEC}, auth-provider: {name: oidc}` }),
    /, line 4: users\[u\]\.auth-provider is set beside exec/,
  ],
  [
    'a plugin without a version',
    kubeconfig({ user: 'token: abc, exec: {command: ./plugin, interactiveMode: Never}' }),
    /, line 4: users\[u\]\.exec\.apiVersion "" is not supported; use /,
  ],
  [
    'another kind',
    kubeconfig().replace('kind: Config', 'kind: List'),
    /, line 2: kind is not Config: name a kubeconfig$/,
  ],
  ['another version', kubeconfig().replace('v1', 'v2'), /, line 1: apiVersion is not v1/],
  [
    'unknown fields',
    `other: 1\n${kubeconfig({ user: 'token: abc, token-file: nope, Token: x' })}`,
    { authorization: 'Bearer abc' },
  ],
  [
    'a key of no certificate',
    kubeconfig({ user: 'token: abc, client-key: nope' }),
    { authorization: 'Bearer abc', certificate: '' },
  ],
  [
    'names in UTF-8',
    kubeconfig({ user: 'token: abc, as: jürgen, as-groups: [日本]' }),
    { impersonation: { 'impersonate-user': ['jürgen'], 'impersonate-group': ['日本'] } },
  ],
  [
    'a token of two lines',
    kubeconfig({ user: 'token: "abc\\n"' }),
    /, line 4: users\[u\]\.token has a line break/,
  ],
  ['a user that is not there', kubeconfig({ context: 'cluster: c, user: v' }), { authorization: '' }],
  [
    'no scheme',
    kubeconfig({ cluster: 'server: "192.0.2.1:8080"' }),
    { server: 'http://192.0.2.1:8080', authorization: '' },
  ],
  [
    'impersonation without TLS',
    kubeconfig({ cluster: 'server: "http://192.0.2.1"', user: 'token: abc, as: jane' }),
    { authorization: '', impersonation: { 'impersonate-user': ['jane'] } },
  ],
  [
    'nothing',
    '',
    / is not a kubeconfig: it has no clusters, users and contexts; name a kubeconfig, such as kubectl uses$/,
  ],
];

describe('a kubeconfig with', () => {
  const fileOf = (what: string, text: string): string => {
    const folder = `table/${TABLE.findIndex(([name]) => name === what)}`;
    putFiles(folder);
    return put(`${folder}/config`, text);
  };

  test.each(TABLE)('%s', async (what, text, expected) => {
    const file = fileOf(what, text);
    const mine = await inThisProgram({ kubeconfig: file });
    const message = 'error' in mine ? mine.error : '';
    const isRefusal = expected instanceof RegExp;
    expect(message).toMatch(isRefusal ? expected : /^$/u);
    expect(message.startsWith(isRefusal ? file : '')).toBe(true);
    expect(mine).toMatchObject(isRefusal ? {} : expected);
  });

  test('what is not read says so', async () => {
    const warnings: string[] = [];
    const user = 'token: first,\n  token: last';
    const text = `${kubeconfig({ user, context: 'cluster: c, user: v' })}---\na: b\n`;
    const file = put('warned', text);
    await inThisProgram({ kubeconfig: file }, (message) => warnings.push(message));
    expect(warnings).toEqual([
      `${file}, line 5: this key replaces the same one in line 4, as for kubectl`,
      `${file} has a second document, which is not read, as by kubectl`,
      `${file}, line 6: contexts[x].user is "v", which is not there; choose one of: u; as with kubectl, requests have no credential`,
    ]);
  });

  test.each(['utf-16le', 'utf-16be'])('text in %s is read', async (encoding) => {
    const file = encodedFile(encoding);
    expect(await inThisProgram({ kubeconfig: file })).toMatchObject({ authorization: 'Bearer abc' });
  });

  test('bytes that are no text is refused', async () => {
    expect(await inThisProgram({ kubeconfig: encodedFile('latin1') })).toMatchObject({
      error: expect.stringMatching(
        /latin1 is not YAML: it is not text in UTF-8; name another file/,
      ) as string,
    });
  });
});

function encodedFile(encoding: string): string {
  const file = put(encoding, '');
  const text = kubeconfig({ user: 'token: abc, as: jürgen' });
  const utf16 = Buffer.from(`\ufeff${text}`, 'utf16le');
  if (encoding === 'latin1') writeFileSync(file, Buffer.from(text, 'latin1'));
  else writeFileSync(file, encoding === 'utf-16le' ? utf16 : utf16.swap16());
  return file;
}

describe.skipIf(!hasGo)('beside client-go', () => {
  test('the table above and encodings mean the same', async () => {
    const cases = TABLE.map(([, text], index) => {
      putFiles(`again/${index}`);
      return { source: { kubeconfig: put(`again/${index}/config`, text) }, texts: text };
    });
    const encoded = ['utf-16le', 'utf-16be', 'latin1'].map((encoding) => ({
      source: { kubeconfig: encodedFile(encoding) },
      texts: encoding,
    }));
    expect(await expectSame([...cases, ...encoded])).toBeGreaterThan(10);
  });

  test('a kubeconfig is the same connection, or refused by both', async () => {
    const texts = fc.sample(kubeconfigText, { numRuns: RUNS, seed: SEED });
    putFiles('read');
    const cases = texts.map((text, index) => ({
      source: { kubeconfig: put(`read/config-${index}`, text) },
      texts: text,
    }));
    expect(await expectSame(cases)).toBeGreaterThan(RUNS / 5);
  });

  test('the files of KUBECONFIG are merged in the same way', async () => {
    const samples = fc.sample(fc.tuple(kubeconfigFiles, fc.constantFrom('', '', 'a', 'b')), {
      numRuns: RUNS / 5,
      seed: SEED,
    });
    const cases = samples.map(([texts, context], run) => {
      const paths = texts.map((text, index) => {
        const name = `merged/${run}/${index}`;
        return text === undefined ? join(ROOT, name) : put(name, text);
      });
      const environment = [...paths, '', ...paths.slice(0, 1)].join(delimiter);
      return { source: { environment, context }, texts: { context, texts } };
    });
    expect(await expectSame(cases)).toBeGreaterThan(RUNS / 50);
  });
});
