/** kubectl with the kubeconfig of `keys token` against a real kube-apiserver keeps working after a token has expired. */

import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packedInstall } from '../docs/packed-install.ts';
import { eventually } from '../support/eventually.ts';
import { Platform, TrustingCluster, type Output } from './trust-clusters.ts';

/** Longer than a kubectl with its plugin takes on a busy machine. */
const TTL_SECONDS = 20;

let folder: string;
let platform: Platform;
let cluster: TrustingCluster;
let packed: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-exec-'));
  packed = await packedInstall();
  platform = await Platform.start();
  cluster = await TrustingCluster.start(platform, {
    flags: ['signed-tokens.flags'],
    files: ['authentication.yaml'],
  });
});

afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  await platform[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

function run(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Output> {
  const { ENDPOINT_SYNCER_TOKEN: _token, ENDPOINT_SYNCER_CONFIG: _config, ...inherited } = process.env;
  const all = {
    ...inherited,
    HOME: folder,
    XDG_CACHE_HOME: '',
    KUBECACHEDIR: join(folder, 'kube-cache'),
    ...env,
  };
  return new Promise((resolve) => {
    execFile(program, args, { env: all, cwd: folder }, (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? 1 : 0, out, err });
    });
  });
}

function cachedToken(home: string): string {
  const tokens = join(home, '.cache', 'endpoint-syncer', 'tokens');
  const files = readdirSync(tokens);
  expect(files).toHaveLength(1);
  const file = join(tokens, files[0] ?? '');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  return readFileSync(file, 'utf8');
}

/** How the program is run: the installed command, or the files of the image, which has no command in its PATH. */
const WAYS: Readonly<Record<string, () => { command: readonly string[]; path: readonly string[] }>> = {
  'an npm install': () => ({
    command: [join(packed, 'bin', 'endpoint-syncer')],
    path: [join(packed, 'bin'), dirname(process.execPath)],
  }),
  'the files of the image': () => ({
    command: [process.execPath, join(packed, 'lib', 'node_modules', 'endpoint-syncer', 'dist', 'main.js')],
    path: [],
  }),
};

test.each(Object.entries(WAYS))(
  'kubectl keeps working after a token expires, with the same kubeconfig: %s',
  async (what, way) => {
    const { command, path } = way();
    const home = mkdtempSync(join(folder, 'home-'));
    const env = { HOME: home, PATH: [...path, '/usr/bin', '/bin'].join(delimiter) };
    const key = await platform.key('ci.yaml', what.replaceAll(' ', '-').toLowerCase());
    const { url, caFile, kubectl } = cluster.place;
    const place = `--cluster-server ${url} --cluster-certificate-authority ${caFile} --cluster-name cluster-a`;
    const flags = `-o kubeconfig --ttl ${TTL_SECONDS}s --token ${key} ${place}`.split(' ');
    const [program = '', ...programArguments] = command;
    const printed = await run(
      program,
      [...programArguments, 'keys', 'token', ...flags, ...platform.connection],
      env,
    );
    expect([printed.code, printed.err]).toEqual([0, '']);
    const kubeconfig = join(home, 'cluster-a.kubeconfig');
    writeFileSync(kubeconfig, printed.out, { mode: 0o600 });
    const getPods = (): Promise<Output> => run(kubectl, ['get', 'pods'], { ...env, KUBECONFIG: kubeconfig });
    const works = { code: 0, out: '', err: 'No resources found in default namespace.\n' };

    expect(await getPods()).toEqual(works);
    const first = cachedToken(home);
    const whoami = await run(kubectl, ['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}'], {
      ...env,
      KUBECONFIG: kubeconfig,
    });
    expect(whoami.out).toBe('alice');

    const { token } = JSON.parse(first) as { token: string };
    const refused = ({ err }: Output): boolean => err.includes('Unauthorized');
    await eventually(() => cluster.kubectl(token, 'get pods'), refused);
    expect(await getPods()).toEqual(works);
    expect(cachedToken(home)).not.toBe(first);
    expect(readFileSync(kubeconfig, 'utf8')).toBe(printed.out);
  },
);
