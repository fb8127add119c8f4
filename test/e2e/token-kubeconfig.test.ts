/** kubectl with the kubeconfig of `keys token` against a real kube-apiserver: it goes on when a token has expired. */

import { execFile } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../scenarios/eventually.ts';
import { Platform, TrustingCluster, type Output } from './trust-clusters.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.ts');
const TTL_SECONDS = 5;

let folder: string;
let platform: Platform;
let cluster: TrustingCluster;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-exec-'));
  mkdirSync(join(folder, 'bin'));
  // What npm installs.
  const command = join(folder, 'bin', 'endpoint-syncer');
  writeFileSync(command, `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
  chmodSync(command, 0o755);
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
    PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH']}`,
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

function cachedToken(): string {
  const tokens = join(folder, '.cache', 'endpoint-syncer', 'tokens');
  const files = readdirSync(tokens);
  expect(files).toHaveLength(1);
  const file = join(tokens, files[0] ?? '');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  return readFileSync(file, 'utf8');
}

test('kubectl goes on past the end of a token, without a change of its kubeconfig', async () => {
  const key = await platform.key('ci.yaml', 'exec');
  const { url, caFile, kubectl } = cluster.place;
  const place = `--cluster-server ${url} --cluster-certificate-authority ${caFile} --cluster-name cluster-a`;
  const flags = `-o kubeconfig --ttl ${TTL_SECONDS}s --token ${key} ${place}`.split(' ');
  const made = await run('endpoint-syncer', ['keys', 'token', ...flags, ...platform.connection]);
  expect([made.code, made.err]).toEqual([0, '']);
  const kubeconfig = join(folder, 'cluster-a.kubeconfig');
  writeFileSync(kubeconfig, made.out, { mode: 0o600 });
  const getPods = (): Promise<Output> => run(kubectl, ['get', 'pods'], { KUBECONFIG: kubeconfig });
  const works = { code: 0, out: '', err: 'No resources found in default namespace.\n' };

  expect(await getPods()).toEqual(works);
  const first = cachedToken();
  const whoami = await run(kubectl, ['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}'], {
    KUBECONFIG: kubeconfig,
  });
  expect(whoami.out).toBe('alice');

  const { token } = JSON.parse(first) as { token: string };
  const refused = ({ err }: Output): boolean => err.includes('Unauthorized');
  await eventually(() => cluster.kubectl(token, 'get pods'), refused, { timeoutMs: 40_000 });
  expect(await getPods()).toEqual(works);
  expect(cachedToken()).not.toBe(first);
  expect(readFileSync(kubeconfig, 'utf8')).toBe(made.out);
});
