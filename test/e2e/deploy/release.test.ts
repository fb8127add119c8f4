/** `npm version` in a clone, and the artifacts that the release workflow creates from its tag. */

import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CHART, helm, helmProgram } from './helm.ts';

const ROOT = join(CHART, '..', '..');
const VERSION = '9.8.7';
const execute = promisify(execFile);
let clone = '';

beforeAll(async () => {
  clone = mkdtempSync(join(tmpdir(), 'endpoint-syncer-release-'));
  await execute('git', ['clone', '--quiet', ROOT, clone]);
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
  await run('git', 'config', 'user.name', 'release');
  await run('git', 'config', 'user.email', 'release@example.com');
  await run('npm', 'version', VERSION);
});

afterAll(() => rmSync(clone, { recursive: true }));

async function run(program: string, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, HELM: await helmProgram() };
  return (await execute(program, args, { cwd: clone, env, maxBuffer: 16 * 1024 * 1024 })).stdout;
}

test('npm version changes every place that names the version, in one tagged commit', async () => {
  expect(await run('git', 'status', '--porcelain', '--untracked-files=no')).toBe('');
  expect((await run('git', 'tag', '--points-at', 'HEAD')).trim()).toBe(`v${VERSION}`);
  const changed = (await run('git', 'show', '--name-only', '--format=', 'HEAD')).trim().split('\n');
  expect(changed).toEqual(
    expect.arrayContaining([
      'CHANGELOG.md',
      'README.md',
      'charts/endpoint-syncer/Chart.yaml',
      'docs/deploy.md',
      'package.json',
    ]),
  );
  expect(readFileSync(join(clone, 'README.md'), 'utf8')).not.toContain('is published yet');
  expect(readFileSync(join(clone, 'docs', 'deploy.md'), 'utf8')).not.toContain('is published yet');
  expect(readFileSync(join(clone, 'CHANGELOG.md'), 'utf8')).toMatch(
    /^## Unreleased\n\n## 9\.8\.7 \(\d{4}-/mu,
  );
});

test('a release has a package, a chart, an SBOM and release notes', async () => {
  const out = join(clone, 'out');
  await run('scripts/release-artifacts.sh', out, `v${VERSION}`);
  expect(readdirSync(out).toSorted()).toEqual([
    `chart-${VERSION}.tgz`,
    `endpoint-syncer-${VERSION}.tgz`,
    'notes.md',
    'sbom.cdx.json',
  ]);
  expect(readFileSync(join(out, 'notes.md'), 'utf8')).toMatch(/^- \S/mu);
  const sbom = JSON.parse(readFileSync(join(out, 'sbom.cdx.json'), 'utf8')) as {
    components: { name: string }[];
  };
  expect(sbom.components.map(({ name }) => name)).toEqual(expect.arrayContaining(['isolated-vm', 'undici']));
  expect(sbom.components.map(({ name }) => name)).not.toContain('vitest');
  const chart = join(out, `chart-${VERSION}.tgz`);
  const rendered = await helm(clone, 'template', 'syncer', chart, '--set', 'config.endpointSyncer.name=a');
  expect(rendered).toContain(`image: ghcr.io/endpoint-syncer/endpoint-syncer:${VERSION}`);
});

test('a tag of another version is refused with the next step', async () => {
  await expect(run('scripts/release-artifacts.sh', join(clone, 'other'), 'v1.2.3')).rejects.toThrow(
    'run npm version',
  );
});
