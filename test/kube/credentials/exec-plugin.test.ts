/** Exec plugins: what they are told and which answers are credentials, beside client-go; and that no error shows what they print. */

import { rmSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { ExecPlugin } from '../../../src/kube/credentials/exec-plugin.ts';
import { parseJson } from '../../../src/base/json.ts';
import { writeYaml } from '../../../src/base/yaml/write.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { hasGo } from '../../support/go-program.ts';
import { inClientGo, inThisProgram, type Result } from './connections.ts';
import { base64, certificate, kubeconfig, load, problem, put, ROOT, type Parts } from './kubeconfig-files.ts';

afterAll(() => rmSync(ROOT, { recursive: true, force: true }));

const [V1, V1BETA1] = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];
const TOKEN = 'eyJhbGciOiJub25lIn0.secret-7f3a';

interface Loaded {
  readonly file: string;
  readonly text: string;
}

let written = 0;

function configOf(parts: Parts): Loaded {
  written += 1;
  const text = kubeconfig(parts);
  return { text, file: put(`exec/${written}/config`, text) };
}

function printing(output: string, apiVersion = V1): Loaded {
  const file = put(`answers/${(written += 1)}`, output);
  return configOf({
    user: `exec: {apiVersion: ${apiVersion}, command: cat, args: ["${file}"], interactiveMode: Never}`,
  });
}

const ours = ({ file }: Loaded): Promise<Result> => inThisProgram({ kubeconfig: file });

const PAIR = { clientCertificateData: certificate('client.crt'), clientKeyData: certificate('client.key') };

const either = <T>(right: T, ...wrong: readonly unknown[]): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant<unknown>(right) },
    { weight: 1, arbitrary: fc.constantFrom(...wrong) },
  );
const status = fc.record(
  {
    token: either(TOKEN, '', null, 7, [TOKEN], { token: TOKEN }, true),
    clientCertificateData: fc.constantFrom(undefined, PAIR.clientCertificateData, '', 'none', null),
    clientKeyData: fc.constantFrom(undefined, PAIR.clientKeyData, '', 'none', null),
    expirationTimestamp: fc.constantFrom<unknown>(
      undefined,
      undefined,
      null,
      '2030-01-02T03:04:05Z',
      '2001-01-01T00:00:00+02:00',
      '2030-01-01T00:00:00.5Z',
      '',
      'soon',
      '2030-02-30T00:00:00Z',
      '2030-01-01',
      '2030-01-01T24:00:00Z',
      1893456000,
      '2030-01-01t00:00:00z',
    ),
    other: fc.constantFrom(undefined, 'x', null),
  },
  { requiredKeys: ['token'] },
);
const answer = fc.record(
  {
    apiVersion: either(V1, V1BETA1, `${V1}alpha1`, 'v1', '', null, 7),
    kind: either('ExecCredential', '', 'Secret', 'ExecCredentialList', null, 7, 'execcredential'),
    status: fc.oneof({ weight: 8, arbitrary: status }, fc.constantFrom(null, [], 'x', TOKEN, {}, undefined)),
    spec: fc.constantFrom(undefined, { interactive: false }, {}, null),
    metadata: fc.constantFrom(undefined, {}),
  },
  { requiredKeys: ['status'] },
);
const json = (value: unknown): string => JSON.stringify(value) ?? '';
/** Alone, between other lines, cut, as YAML, or something else. */
const printed = fc.oneof(
  { weight: 5, arbitrary: answer.map(json) },
  { weight: 3, arbitrary: answer.map((value) => writeYaml(parseJson(json(value)))) },
  answer.map((value) => JSON.stringify(value, null, 2)),
  answer.map((value) => `\n ${json(value)}\n\n`),
  answer.map((value) => `logged in\n${json(value)}`),
  answer.map((value) => `${json(value)}\n${json(value)}`),
  answer.map((value) => json(value).slice(0, -3)),
  answer.map((value) => `---\n${json(value)}`),
  fc.constantFrom(
    '',
    '\n',
    TOKEN,
    `token: ${TOKEN}`,
    `{"token":"${TOKEN}"}`,
    `["${TOKEN}"]`,
    `"${TOKEN}"`,
    'null',
    '{}',
    '{',
  ),
  fc.constantFrom(
    `${TOKEN}: :`,
    `\t${TOKEN}`,
    `{${TOKEN}`,
    `%${TOKEN}`,
    `!!${TOKEN} x`,
    `*${TOKEN}`,
    `&a [*a, ${TOKEN}]`,
  ),
);

const RUNS = 250;
const SEED = Number(process.env['EXEC_SEED'] ?? 1);

const CLUSTERS = [
  '',
  ', insecure-skip-tls-verify: true',
  ', tls-server-name: other, disable-compression: true, proxy-url: "http://127.0.0.1:3128"',
  `, certificate-authority-data: ${base64(certificate('ca.crt'))}`,
  ', extensions: [{name: client.authentication.k8s.io/exec, extension: {shoot: {name: demo, port: 443, on: [true, "1"], none: null}}}]',
  ', extensions: [{name: other, extension: {a: 1}}, {name: client.authentication.k8s.io/exec, extension: audience}]',
].map((more) => `server: "https://127.0.0.1:6443"${more}`);

const SETTINGS = [
  ...['Never', 'IfAvailable', 'Always', 'never', '""'].map((mode) => `, interactiveMode: ${mode}`),
  '',
].flatMap((mode) => [V1, V1BETA1, `${V1}alpha1`, '""'].map((version) => `apiVersion: ${version}${mode}`));

/** Its token is what it was told. */
const TELLING = `printf '{"apiVersion":"%s","kind":"ExecCredential","status":{"token":"%s"}}' "$VERSION" "$(printf %s "$KUBERNETES_EXEC_INFO" | base64 -w0)"`;

function telling(cluster: string, setting: string, more = ''): Parts {
  const file = put('telling.sh', TELLING);
  const version = /apiVersion: ([^,]+)/u.exec(setting)?.[1] ?? '';
  const env = `env: [{name: VERSION, value: ${version}}, {name: KUBERNETES_EXEC_INFO, value: lost}]`;
  return {
    cluster,
    user: `exec: {${setting}, command: sh, args: ["${file}"], ${env}, provideClusterInfo: true}${more}`,
  };
}

/** Without a plugin, the token alone. */
function told(result: Result): unknown {
  const authorization = 'error' in result ? '' : result.authorization;
  const text = Buffer.from(authorization.slice('Bearer '.length), 'base64').toString();
  return text.startsWith('{') ? parseJson(text) : authorization;
}

function inGo(configs: readonly Loaded[]): Result[] {
  return inClientGo(configs.map(({ file }) => ({ kubeconfig: file })));
}

describe.skipIf(!hasGo)('beside client-go', () => {
  test('the same answers are credentials', async () => {
    const outputs = fc.sample(printed, { numRuns: RUNS, seed: SEED });
    const configs = outputs.map((output) => printing(output));
    const go = inGo(configs);
    const wrong: object[] = [];
    let accepted = 0;
    for (const [index, config] of configs.entries()) {
      const [mine, theirs] = [await ours(config), go[index] ?? { error: '' }];
      const isSame = 'error' in mine ? 'error' in theirs : isDeepStrictEqual(mine, theirs);
      if (!isSame) wrong.push({ output: outputs[index], mine, theirs });
      accepted += Number(!('error' in mine));
    }
    expect(wrong.slice(0, 3)).toEqual([]);
    expect(accepted).toBeGreaterThan(RUNS / 20);
  });

  test('the plugin is told the same, or not run at all', async () => {
    const all = [
      ...CLUSTERS.map((cluster) => telling(cluster, `apiVersion: ${V1}, interactiveMode: Never`)),
      ...SETTINGS.map((setting) => telling(CLUSTERS[0] ?? '', setting)),
      ...[
        ', token: abc',
        `, client-certificate-data: ${base64(PAIR.clientCertificateData)}, client-key-data: ${base64(PAIR.clientKeyData)}`,
      ].map((more) => ({
        user: `exec: {apiVersion: ${V1}, command: nowhere, interactiveMode: Never}${more}`,
      })),
    ].map(configOf);
    const go = inGo(all);
    for (const [index, config] of all.entries()) {
      const [mine, theirs] = [await ours(config), go[index] ?? { error: '' }];
      expect('error' in mine, `${config.text} ${JSON.stringify([mine, theirs])}`).toBe('error' in theirs);
      expect(told(mine)).toEqual(told(theirs));
    }
  });
});

describe('what a plugin prints', () => {
  test('is in no error, not even in part', async () => {
    const letters = fc.stringMatching(/^[a-z]{6}[\d{}[\]:,"' \n]{0,3}$/u).map((text) => `Zq${text}`);
    const outputs = [
      ...fc
        .sample(fc.tuple(letters, printed), { numRuns: 60, seed: SEED })
        .map(([text, more]) => [text, `${text}\n${more}`]),
      ...['kind', 'apiVersion'].map((field) => [
        'Zqvwxyz',
        JSON.stringify({ apiVersion: V1, kind: 'ExecCredential', [field]: 'Zqvwxyz' }),
      ]),
      [
        'Zqvwxyz',
        JSON.stringify({ apiVersion: V1, status: { expirationTimestamp: 'Zqvwxyz', token: 'Zqvwxyz' } }),
      ],
      [
        'Zqvwxyz',
        JSON.stringify({
          apiVersion: V1,
          status: { clientCertificateData: 'Zqvwxyz', clientKeyData: 'Zqvwxyz' },
        }),
      ],
      ['Zqvwxyz', JSON.stringify({ apiVersion: V1, status: { token: 'Zqvwxyz\nä€' } })],
    ] as const;
    for (const [, output] of outputs) {
      const result = await ours(printing(output ?? ''));
      const error = 'error' in result ? result.error : '';
      expect(error).not.toBe('');
      expect(error).not.toContain('Zq');
    }
  });
});

describe('the entry of a plugin', () => {
  const entry = (exec: string): string => problem(() => load({ user: `exec: {${exec}}` }));

  test.each([
    [`command: x, interactiveMode: Never`, /users\[u\]\.exec\.apiVersion "" is not supported; use .*\/v1 or/],
    [`apiVersion: ${V1}, interactiveMode: Never`, /\.command is missing/],
    [`apiVersion: ${V1}, command: x`, /\.interactiveMode "" is none of Never, IfAvailable, Always/],
    [
      `apiVersion: ${V1}, command: x, interactiveMode: Always`,
      /is Always, but the standard input .* not a terminal; use/,
    ],
  ])('%s is an error when it is loaded', (exec, message) => {
    expect(entry(exec)).toMatch(message);
  });

  test('on a terminal, a plugin may ask', () => {
    const exec = { apiVersion: V1, command: 'x', interactiveMode: 'Always' };
    const make = (): unknown =>
      new ExecPlugin(
        {
          user: { kind: 'user', name: 'u', source: 'f', fields: { exec }, lines: {} },
          cluster: {},
          files: [],
          warn: () => undefined,
        },
        new FakeClock(),
        true,
      );
    expect(make).not.toThrow();
  });

  test('an answer is used until it expires', async () => {
    const clock = new FakeClock();
    const counted = put('counted', '');
    const expiry = new Date(clock.now() + 60_000).toISOString();
    const script = `echo x >> ${counted}; printf '{"apiVersion":"${V1}","status":{"token":"%s","expirationTimestamp":"${expiry}"}}' $(wc -l < ${counted})`;
    const user = `exec: {apiVersion: ${V1}, command: sh, args: ["${put('count.sh', script)}"], interactiveMode: Never}`;
    const { credentials } = load({ user }, {}, clock);
    const next = async (afterMs: number): Promise<unknown> => {
      clock.advance(afterMs);
      return (await credentials.headers())['authorization'];
    };
    expect(await next(0)).toBe('Bearer 1');
    expect(await next(60_000)).toBe('Bearer 1');
    expect(await next(6000), 'one that has expired already is used for a moment').toBe('Bearer 2');
    expect(await next(6000)).toBe('Bearer 3');
  });
});
