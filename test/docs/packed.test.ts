/** The packed install. It differs from a checkout in how files are found, so each kind of file is used once. */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { sendBytes } from '../apiserver/request/send-bytes.ts';
import { freePorts } from '../support/free-ports.ts';
import { packedEnvironment, packedInstall } from './packed-install.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const run = promisify(execFile);
const OBJECT = { apiVersion: 'v1', kind: 'Endpoints' };

describe('the packed install', () => {
  let env: NodeJS.ProcessEnv = {};
  beforeAll(async () => {
    env = await packedEnvironment();
  }, 300_000);

  const command = (...args: string[]) => run('endpoint-syncer', args, { env });

  test('has no TypeScript and no test', async () => {
    const files = readdirSync(join(await packedInstall(), 'lib', 'node_modules', 'endpoint-syncer'), {
      recursive: true,
      encoding: 'utf8',
    }).filter((path) => !path.startsWith('node_modules'));
    const folders = new Set(files.map((path) => path.split('/')[0]));
    expect(files.filter((path) => path.endsWith('.ts'))).toEqual([]);
    expect(folders).toEqual(
      new Set(['CHANGELOG.md', 'README.md', 'bin', 'config', 'dist', 'package.json', 'LICENSE']),
    );
  });

  test('installs nothing but the native addon and what finds it', async () => {
    const folder = join(await packedInstall(), 'lib', 'node_modules', 'endpoint-syncer', 'node_modules');
    const packages = readdirSync(folder).filter((name) => !name.startsWith('.'));
    expect(packages.toSorted()).toEqual(['isolated-vm', 'node-gyp-build']);
  });

  test('depends on what it does not contain; the checkout depends on both, so that scanners see them', async () => {
    const folder = join(await packedInstall(), 'lib', 'node_modules', 'endpoint-syncer');
    const [published, ours] = [folder, ROOT].map(
      (root) => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest,
    );
    expect(published?.dependencies).toEqual({ 'isolated-vm': ours?.dependencies['isolated-vm'] });
    expect(published?.devDependencies).toBeUndefined();
    const licenses = readFileSync(join(folder, 'dist', 'third-party-licenses.txt'), 'utf8');
    const contained = new Set([...licenses.matchAll(/^## (\S+)@\S+ \(/gmu)].map(([, name]) => name));
    const isContained = (name: string): boolean => name === 'isolated-vm' || contained.has(name);
    expect(Object.keys(ours?.dependencies ?? {}).filter((name) => !isContained(name))).toEqual([]);
    expect(Object.keys(ours?.devDependencies ?? {}).filter(isContained)).toEqual([]);
  });

  test('a start uses the code that the demo has called', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-packed-'));
    try {
      const inFolder = { ...env, XDG_CACHE_HOME: folder, NODE_COMPILE_CACHE: undefined };
      const kept = () =>
        readdirSync(folder, { recursive: true, encoding: 'utf8' })
          .filter((path) => path.includes('run.cjs-'))
          .map((path) => statSync(join(folder, path)).ino);
      await run('endpoint-syncer', ['demo', '--once', '--dir', join(folder, 'demo')], { env: inFolder });
      const before = kept();
      expect(before).toHaveLength(1);
      await run('endpoint-syncer', ['run', '--help'], { env: inFolder });
      expect(kept()).toEqual(before);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test('has the license of every package that it contains', async () => {
    const dist = join(await packedInstall(), 'lib', 'node_modules', 'endpoint-syncer', 'dist');
    const scripts = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((path) =>
      /\.c?js$/u.test(path),
    );
    const contained = scripts.flatMap((path) =>
      [
        ...readFileSync(join(dist, path), 'utf8').matchAll(/^\/\/ .*node_modules\/((?:@[^/]+\/)?[^/]+)\//gmu),
      ].map(([, name = '']) => name),
    );
    const text = readFileSync(join(dist, 'third-party-licenses.txt'), 'utf8');
    const licenses = new Map(
      text
        .split(/^## (?=\S+@\d)/mu)
        .map((part) => [part.slice(0, part.lastIndexOf('@', part.indexOf(' '))), part]),
    );
    expect(new Set(contained).size).toBeGreaterThan(50);
    for (const name of new Set(contained))
      expect([name, licenses.get(name) ?? '']).toMatchObject([
        name,
        expect.stringMatching(/\(\S+\)\n\n.{3}/su),
      ]);
  });

  test('has the version of package.json', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    const { stdout } = await command('version', '-o', 'json');
    expect(JSON.parse(stdout)).toEqual({ version, node: process.version });
  });

  test('evaluates expressions in its sandbox', async () => {
    const { stdout, stderr } = await command('eval', '--place', '/A/i.test(value)', '--value', '"a"');
    expect([stdout, stderr]).toEqual(['true\n', expect.stringMatching(/^evaluated in the sandbox/u)]);
  });

  test('contains the default values of vCluster and the schema', async () => {
    const expression = 'String(context.vcluster.config.sync.toHost.pods.enabled)';
    const config = JSON.stringify({
      sync: { toHost: { endpoints: { patches: [{ path: 'metadata.labels.pods', expression }] } } },
      endpointSyncer: { name: 'a', host: { namespace: 'b' } },
    });
    const object = JSON.stringify({
      ...OBJECT,
      metadata: { name: 'x', namespace: 'y', labels: { pods: '' } },
    });
    const files = folderWith({ 'config.yaml': config, 'object.yaml': object });
    const { stdout } = await command(
      'patch',
      '--config',
      join(files, 'config.yaml'),
      '-f',
      join(files, 'object.yaml'),
    );
    rmSync(files, { recursive: true });
    expect(stdout).toContain('pods: "true"');
    expect((await command('schema', '--check')).stderr).toBe('');
  });

  test('syncs between two embedded clusters', async () => {
    const dir = folderWith({});
    try {
      const { stdout } = await command('demo', '--once', '--dir', dir);
      expect(stdout).toMatch(/^shop\/db +team-demo\/db-x-shop-x-demo +\S+ +synced in/mu);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  test('serves keys from a database, which a worker thread writes', async () => {
    const [port] = await freePorts(1);
    const dir = folderWith({});
    const managementApi = { bindAddress: `127.0.0.1:${port}`, dataDir: join(dir, 'data') };
    writeFileSync(join(dir, 'keys.yaml'), JSON.stringify({ managementApi }));
    const config = join(dir, 'keys.yaml');
    const api = spawn('endpoint-syncer', ['api', '--config', config], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      await once(api.stdout, 'data');
      const { stdout } = await command('keys', 'bootstrap', '--config', config);
      const yaml = `apiVersion: management.platform.sh/v1
kind: OwnedAccessKey
metadata: {name: from-yaml}
spec: {displayName: a, type: User, user: ann, ttl: 0}
`;
      const created = await sendBytes({
        method: 'POST',
        url: `https://127.0.0.1:${port}/apis/management.platform.sh/v1/ownedaccesskeys`,
        headers: { authorization: `Bearer ${stdout.trim()}`, 'content-type': 'application/yaml' },
        bytes: Buffer.from(yaml),
        ca: readFileSync(join(dir, 'data', 'ca.crt'), 'utf8'),
      });
      expect([created.status, String(created.bytes)]).toMatchObject([201, expect.stringContaining('pak_')]);
      expect((await command('store', 'verify', '--config', config)).stdout).toMatch(/^ok: /u);
    } finally {
      api.kill('SIGTERM');
      expect(await once(api, 'exit')).toEqual([0, null]);
      rmSync(dir, { recursive: true });
    }
  });

  test('serves the pages of the playground', async () => {
    const playground = spawn('endpoint-syncer', ['playground', '--port', '0'], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const [printed] = (await once(playground.stdout, 'data')) as [Buffer];
      const url = /http:\S+/u.exec(String(printed))?.[0] ?? '';
      const page = await (await fetch(url)).text();
      expect(page).toContain('<html');
      const [script = ''] = /[^"]*main\.js/u.exec(page) ?? [];
      const served = await fetch(new URL(script, url));
      expect(served.status).toBe(200);
      // The editor's packages are in it.
      expect(await served.text()).not.toMatch(/^import\b/mu);
    } finally {
      playground.kill('SIGTERM');
      await once(playground, 'exit');
    }
  });

  test('prints the required version on an older Node.js', async () => {
    const program = join(await packedInstall(), 'bin', 'endpoint-syncer');
    const older = `Object.defineProperty(process, 'versions', {value: {node: '22.9.0'}});
Object.defineProperty(process, 'version', {value: 'v22.9.0'}); import(${JSON.stringify(program)})`;
    const failure: unknown = await run(process.execPath, ['-e', older]).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: 1,
      stderr: `endpoint-syncer needs Node.js 24.12 or newer, but this is v22.9.0 (${process.execPath})\n`,
    });
  });
});

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-packed-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}
