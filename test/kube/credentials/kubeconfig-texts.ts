/** Generators of kubeconfigs: mostly right, with the mistakes and the YAML that people write. Each credential in them contains {@link MARK}. */

import fc from 'fast-check';
import { base64, certificate, put } from './kubeconfig-files.ts';

export const MARK = 'Zq';

/** YAML as it is written, members of a mapping (repeated ones too), or entries of a list. */
type Node = string | { readonly members: readonly Member[] } | { readonly entries: readonly Node[] };
type Member = readonly [key: string, value: Node];

const map = (...members: readonly Member[]): Node => ({ members });
const list = (...entries: readonly Node[]): Node => ({ entries });
const quoted = (text: string): string => JSON.stringify(text);

function flow(node: Node): string {
  if (typeof node === 'string') return node;
  if ('entries' in node) return `[${node.entries.map(flow).join(', ')}]`;
  return `{${node.members.map(([key, value]) => `${key}: ${flow(value)}`).join(', ')}}`;
}

/** With the indentation of the lines after the first. */
function block(node: Node, indent: string): string {
  if (typeof node === 'string') return ` ${node}`;
  const parts =
    'entries' in node
      ? node.entries.map((entry) => `-${block(entry, `${indent}  `)}`)
      : node.members.map(([key, value]) => `${key}:${block(value, `${indent}  `)}`);
  if (parts.length === 0) return ` ${flow(node)}`;
  return `\n${indent}${parts.join(`\n${indent}`)}`;
}

/** Values of another type than most fields have. */
const ODD = [
  '12345',
  '0x1f',
  '12e4',
  'yes',
  'on',
  'true',
  'null',
  '~',
  '""',
  '[a]',
  '[]',
  '{a: b}',
  '{}',
  '!!str 5',
  '',
  '1.10',
];

function either(right: readonly string[], ...wrong: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...right) },
    { weight: 1, arbitrary: fc.constantFrom(...ODD, ...wrong) },
  );
}

const fields = (of: Readonly<Record<string, fc.Arbitrary<Node>>>): fc.Arbitrary<Member> =>
  fc.oneof(...Object.entries(of).map(([key, value]) => value.map((node) => [key, node] as const)));

interface Files {
  readonly ca: string;
  readonly empty: string;
  readonly token: string;
  readonly cert: string;
  readonly key: string;
  readonly plugin: string;
}

/** Beside the kubeconfigs of a folder. */
export function putFiles(folder: string): Files {
  const answer = `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"${MARK}plugin"}}`;
  put(`${folder}/ca.crt`, certificate('ca.crt'));
  put(`${folder}/empty`, '');
  put(`${folder}/token`, `${MARK}file\n`);
  put(`${folder}/client.crt`, certificate('client.crt'));
  put(`${folder}/client.key`, certificate('client.key'));
  put(`${folder}/plugin`, `#!/bin/sh\necho '${answer}'\n`, 0o700);
  return {
    ca: 'ca.crt',
    empty: 'empty',
    token: 'token',
    cert: './client.crt',
    key: 'client.key',
    plugin: './plugin',
  };
}

const CA = base64(certificate('ca.crt'));
const [CERT, KEY] = [base64(certificate('client.crt')), base64(certificate('client.key'))];
const OTHER_KEY = base64(certificate('server.key'));
const ID_TOKEN = `h.${Buffer.from(JSON.stringify({ exp: 4e9, name: MARK })).toString('base64url')}.${MARK}`;

const SERVERS = [
  'https://192.0.2.1:6443',
  '"https://192.0.2.1:6443/"',
  'https://api.example.com/base/',
  'HTTPS://Api.Example.com',
];
const extensions = fc.constantFrom<Node>(
  '[{name: a, extension: {b: 1}}]',
  '[{name: a, extension: 1}, {name: a, extension: 2}]',
  '[{name: a}, {name: a, extension: 2}, {name: b, extension: null}, {name: b}]',
  '[5]',
  '[null]',
  'null',
  '{a: b}',
  '[{name: 5}]',
);
const unknown = fc.constantFrom<Member>(
  ['tokenfile', '/etc/hostname'],
  ['token-file', 'token'],
  ['Token', `${MARK}other`],
  ['Server', 'https://192.0.2.9'],
  ['constructor', 'x'],
  ['__proto__', '{token: Zqproto, server: "https://192.0.2.8"}'],
  ['"1"', '5'],
);

const clusterField = fields({
  server: either(
    SERVERS,

    'http://192.0.2.1:8080',
    '192.0.2.1:6443',
    'api.example.com',
    'api.example.com/base',
    'ftp://192.0.2.1',
    '"https://"',

    '"https://a b"',
    '" https://192.0.2.1"',
    '"https:///a"',
    '"https:192.0.2.1"',
    '"https://192.0.2.1?a=b"',
    '//a',
    'Http://192.0.2.1',
  ),
  'tls-server-name': either(['name', '"192.0.2.7"']),
  'insecure-skip-tls-verify': either(
    ['true', 'yes', 'on', 'false', 'no', 'Off', 'True'],
    '"true"',
    'tRUE',
    '1',
  ),
  'certificate-authority': either(['ca.crt', '"./ca.crt"'], 'nope.crt', 'empty', 'client.key', '"."'),
  'certificate-authority-data': either(
    [CA, quoted(CA), `!!str ${CA}`],
    base64('junk'),
    quoted(CA.slice(0, -2)),
    '"a_b-"',
    '"*"',
    KEY,
  ),
  'proxy-url': either(
    ['http://proxy.example:3128', '"https://u:p@proxy.example/"'],
    'ftp://proxy',
    'proxy.example',
    '"http://[::1"',
  ),
  'disable-compression': either(['true', 'no'], '"no"'),
  extensions,
});

const exec = fc
  .array(
    fields({
      apiVersion: either(
        ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'],
        'v1',
        'client.authentication.k8s.io/v1alpha1',
      ),
      command: either(['./plugin']),
      interactiveMode: either(['Never', 'IfAvailable'], 'never'),
      args: either(['[a, b]'], '[1]', '[null]'),
      env: either(['[{name: A, value: b}]'], '[{value: b}]', '[null]', '[{name: A, value: 1}]'),
      provideClusterInfo: either(['true', 'no'], '"true"'),
      installHint: either(['x']),
      other: either(['x']),
    }),
    { maxLength: 2 },
  )
  .map((more) =>
    map(
      ['apiVersion', 'client.authentication.k8s.io/v1'],
      ['command', './plugin'],
      ['interactiveMode', 'Never'],
      ...more,
    ),
  );
const partialExec = fc.constantFrom<Node>(
  '{command: ./plugin, interactiveMode: Never}',
  '{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}',
  '{apiVersion: client.authentication.k8s.io/v1, command: ./plugin}',
  '{apiVersion: client.authentication.k8s.io/v1beta1, command: ./plugin, env: [{name: "", value: x}]}',
  '{}',
  'null',
  '[]',
);
/** client-go keeps what it has read of an issuer for a cluster: each is another one. */
const issuer = fc.nat().map((id) => `https://192.0.2.3/realm-${id}`);
const oidcFields = fc.array(
  fields({
    'client-id': either(['me']),
    'idp-issuer-url': fc.constantFrom('""', 'null', '5', '[a]'),
    'idp-certificate-authority-data': either([CA], base64('junk'), '"*"'),
    'idp-certificate-authority': either([`${import.meta.dirname}/../certificates/ca.crt`], '/nowhere/ca.crt'),
    'client-secret': either([`${MARK}secret`]),
    other: either(['x']),
  }),
  { maxLength: 2 },
);
const oidc = fc
  .tuple(issuer, oidcFields)
  .map(([url, more]) =>
    map(
      ['name', 'oidc'],
      ['config', map(['client-id', 'me'], ['idp-issuer-url', url], ['id-token', ID_TOKEN], ...more)],
    ),
  );
const otherProvider = fc.constantFrom<Node>(
  '{name: gcp}',
  '{name: azure, config: {a: b}}',
  '{name: magic}',
  '{name: oidc}',
  '{name: oidc, config: {client-id: me}}',
  '{name: oidc, config: {client-id: 5, idp-issuer-url: "https://192.0.2.3"}}',
  '{}',
  'null',
);

const userField = fields({
  token: either(
    [`${MARK}token`, `"${MARK} t"`],
    `"${MARK}\\n"`,
    `" ${MARK}"`,
    `"${MARK}é"`,
    `|\n        ${MARK}\n`,
    '12345678901234567890',
  ),
  tokenFile: either(['token', '"./token"'], 'nope', 'empty', '"."'),
  as: either(['jane', '"jürgen 日本"'], '"a\\nb"'),
  'as-uid': either(['"42"'], '42'),
  'as-groups': either(['[a, b]', '["é"]'], '[1]', '[null]', 'a'),
  'as-user-extra': either(
    ['{Team/x: [c, d], e: []}', '{"ä": ["ü"]}'],
    '{a: b}',
    '{a: null}',
    '{a: [1]}',
    '{a: [x], A: [y]}',
  ),
  username: either(['me']),
  password: either([`${MARK}pass`]),
  'client-certificate': either(['./client.crt'], 'nope.crt', 'empty', '"."'),
  'client-key': either(['client.key'], 'nope.key'),
  'client-certificate-data': either([CERT], base64('junk')),
  'client-key-data': either([KEY], OTHER_KEY, '"*"'),
  exec: fc.oneof(exec, partialExec),
  'auth-provider': fc.oneof(oidc, otherProvider),
  extensions,
});

const credential: fc.Arbitrary<readonly Member[]> = fc.oneof(
  fc.constantFrom<readonly Member[]>(
    [['token', `${MARK}one`]],
    [['tokenFile', 'token']],
    [
      ['client-certificate-data', CERT],
      ['client-key-data', KEY],
    ],
    [
      ['client-certificate', 'client.crt'],
      ['client-key', 'client.key'],
    ],
    [
      ['username', 'me'],
      ['password', `${MARK}pass`],
    ],
    [
      ['token', `${MARK}two`],
      ['as', 'jane'],
    ],
    [['<<', '*credential']],
    [
      ['<<', '[*credential, {as: jack, as-uid: "1"}]'],
      ['as', 'jane'],
    ],
    [
      ['token', `${MARK}before`],
      ['<<', '*credential'],
    ],
    [],
  ),
  exec.map((node) => [['exec', node]] as const),
  oidc.map((node) => [['auth-provider', node]] as const),
);

/** Zero to two more of these beside what is there. */
function with2(right: fc.Arbitrary<readonly Member[]>, more: fc.Arbitrary<Member>): fc.Arbitrary<Node> {
  return fc
    .tuple(
      right,
      fc.oneof({ weight: 2, arbitrary: fc.constant<Member[]>([]) }, fc.array(more, { maxLength: 2 })),
    )
    .map(([first, second]) => map(...first, ...second));
}

const cluster = with2(
  fc.constantFrom<readonly Member[]>(
    ...SERVERS.map((server): Member[] => [['server', server]]),
    [
      ['server', 'https://192.0.2.1'],
      ['certificate-authority-data', CA],
    ],
    [
      ['server', 'https://192.0.2.1'],
      ['certificate-authority', 'ca.crt'],
      ['tls-server-name', 'name'],
    ],
    [
      ['server', 'https://192.0.2.1'],
      ['insecure-skip-tls-verify', 'yes'],
    ],
    [
      ['server', 'http://192.0.2.1:8080'],
      ['certificate-authority-data', CA],
    ],
  ),
  fc.oneof({ weight: 4, arbitrary: clusterField }, unknown),
);
const user = with2(credential, fc.oneof({ weight: 4, arbitrary: userField }, unknown));
const context = with2(
  fc.constant<readonly Member[]>([
    ['cluster', 'c'],
    ['user', 'u'],
  ]),
  fields({
    namespace: either(['team', '"Not a name"']),
    cluster: either(['c', 'd'], 'other'),
    user: either(['u', 'v'], 'other'),
    extensions,
    other: either(['x']),
  }),
);

const mostly = <T>(usual: T, other: fc.Arbitrary<T>, weight = 8): fc.Arbitrary<T> =>
  fc.oneof({ weight, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other });

function namedList(
  kind: string,
  usual: string,
  entry: fc.Arbitrary<Node>,
  odd: readonly string[],
): fc.Arbitrary<Node> {
  const one = (name: fc.Arbitrary<string>): fc.Arbitrary<Node> =>
    fc.tuple(name, entry).map(([text, node]) => map(['name', text], [kind, node]));
  const more = fc.oneof(
    one(fc.constantFrom(...odd, usual)),
    fc.constantFrom('null', '{}', '5', `{name: ${usual}}`),
  );
  return fc
    .tuple(
      one(mostly(usual, fc.constantFrom(...odd))),
      mostly<Node[]>([], fc.array(more, { maxLength: 2 }), 3),
    )
    .map(([first, others]) => list(first, ...others));
}

const top = fc.constantFrom<Member>(
  ['kind', 'List'],
  ['kind', 'config'],
  ['Kind', 'List'],
  ['KIND', 'Config'],
  ['kind', '5'],
  ['kind', 'null'],
  ['apiVersion', 'v2'],
  ['apiVersion', '/v1'],
  ['apiVersion', 'a/v1'],
  ['apiVersion', '1'],
  ['apiversion', 'v2'],
  ['preferences', '{colors: yes}'],
  ['preferences', '{colors: x}'],
  ['preferences', '[]'],
  ['preferences', '{extensions: [{name: a, extension: 1}, {name: a, extension: 1}]}'],
  ['extensions', '[{name: a, extension: 1}]'],
  ['current-context', 'other'],
  ['current-context', '5'],
  ['current-context', 'null'],
  ['current-context', '""'],
  ['users', 'null'],
  ['users', '[]'],
  ['users', '{u: {token: x}}'],
  ['clusters', 'null'],
  ['contexts', 'x'],
  ['other', '{a: 1}'],
);

const document: fc.Arbitrary<readonly Member[]> = fc
  .tuple(
    namedList('cluster', 'c', cluster, ['d', '5', '""', 'null']),
    namedList('user', 'u', user, ['v', 'yes', '""']),
    namedList('context', 'x', context, ['y', 'other', '1.0', '""']),
    mostly<Member[]>([], fc.array(top, { maxLength: 2 }), 2),
    fc.boolean(),
  )
  .map(([clusters, users, contexts, more, isFirst]) => [
    ['x-credential', '&credential {token: Zqmerged, as: merged, as-groups: [g]}'],
    ['apiVersion', 'v1'],
    ['kind', 'Config'],
    ...(isFirst ? more : []),
    ['clusters', clusters],
    ['users', users],
    ['contexts', contexts],
    ['current-context', 'x'],
    ...(isFirst ? [] : more),
  ]);

const AFTER = [
  '',
  '',
  '',
  '',
  '# the end\n',
  '---\n',
  '---\nkind: List\n',
  '---\nusers: [{name: u, user: {token: Zqsecond}}]\n',
  '---\n{ not YAML',
  '...\n',
  '---\n# nothing\n',
];
const BEFORE = [
  '',
  '',
  '',
  '',
  '---\n',
  '# a file\n',
  '\ufeff',
  '%YAML 1.1\n---\n',
  '%YAML 1.2\n---\n',
  '\n\n',
];

export const kubeconfigText: fc.Arbitrary<string> = fc.oneof(
  {
    weight: 40,
    arbitrary: fc
      .tuple(
        document,
        fc.constantFrom('block', 'flow', 'crlf'),
        fc.constantFrom(...BEFORE),
        fc.constantFrom(...AFTER),
      )
      .map(([members, style, before, after]) => {
        const text =
          style === 'flow'
            ? members
                .map(([key, value]) => `${key}: ${flow(value).replaceAll(/\|\n *(\w+)\n/gu, '"$1\\n"')}\n`)
                .join('')
            : members.map(([key, value]) => `${key}:${block(value, '  ')}\n`).join('');
        const whole = before + text + after;
        return style === 'crlf' ? whole.replaceAll('\n', '\r\n') : whole;
      }),
  },
  fc.constantFrom(
    '',
    '\n',
    '# nothing\n',
    'null',
    '{}',
    '[]',
    '5',
    'text',
    '{',
    '\u0000',
    'kind: Config\n',
    'current-context: x\n',
    `${MARK}: :`,
  ),
);

/** Of a file among several: who wins is seen by the names in it. */
const part = fc
  .record({
    id: fc.nat({ max: 99 }),
    clusters: fc.subarray(['a', 'b']),
    users: fc.subarray(['a', 'b']),
    contexts: fc.subarray(['a', 'b']),
    current: fc.constantFrom('', 'current-context: a\n', 'current-context: b\n', 'current-context: ""\n'),
  })
  .map(({ id, clusters, users, contexts, current }) =>
    [
      current,
      `clusters: [${clusters.map((name) => `{name: ${name}, cluster: {server: "https://${name}${id}.example.com"}}`).join(', ')}]\n`,
      `users: [${users.map((name) => `{name: ${name}, user: {token: ${MARK}${name}${id}}}`).join(', ')}]\n`,
      `contexts: [${contexts.map((name) => `{name: ${name}, context: {cluster: ${name}, user: ${name}, namespace: n${id}}}`).join(', ')}]\n`,
    ].join(''),
  );

/** Undefined: there is no such file. */
export const kubeconfigFiles: fc.Arbitrary<readonly (string | undefined)[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: part },
    fc.constantFrom(
      undefined,
      '',
      '# nothing\n',
      'null\n',
      'users: [{name: a, user: {token: 5}}]\n',
      '{ not YAML',
    ),
  ),
  { minLength: 1, maxLength: 4 },
);
