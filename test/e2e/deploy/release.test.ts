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
    metadata: { component: { name: string; version: string } };
    components: { name: string }[];
    dependencies: { ref: string; dependsOn: string[] }[];
  };
  expect(sbom.metadata.component).toMatchObject({ name: 'endpoint-syncer', version: VERSION });
  const direct = sbom.dependencies.find(({ ref }) => ref === `endpoint-syncer@${VERSION}`)?.dependsOn;
  expect(direct).toEqual(
    expect.arrayContaining([`node@${process.versions.node}`, expect.stringMatching(/^zod@/u) as string]),
  );
  expect(sbom.components.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['node', 'isolated-vm', 'node-gyp-build', 'undici', 'tslib']),
  );
  expect(sbom.components.map(({ name }) => name)).not.toContain('vitest');
  expect(await run('git', 'status', '--porcelain', '--untracked-files=no')).toBe('');
  const chart = join(out, `chart-${VERSION}.tgz`);
  const rendered = await helm(clone, 'template', 'syncer', chart, '--set', 'config.endpointSyncer.name=a');
  expect(rendered).toContain(`image: ghcr.io/endpoint-syncer/endpoint-syncer:${VERSION}`);
});

test('a release names the repository that publishes it, and its site', async () => {
  await run('scripts/name-repository.sh', 'Acme/Sync');
  try {
    const [chart, values, alerts, manifest] = [
      'charts/endpoint-syncer/Chart.yaml',
      'charts/endpoint-syncer/values.yaml',
      'charts/endpoint-syncer/files/alerts.yaml',
      'package.json',
    ].map((file) => readFileSync(join(clone, file), 'utf8'));
    expect(chart).toContain('home: https://acme.github.io/Sync/\nsources: [https://github.com/acme/sync]\n');
    expect(values).toContain('repository: ghcr.io/acme/sync\n');
    expect(alerts).toContain('runbook_url: https://acme.github.io/Sync/operations.html#');
    expect(manifest).toContain('"homepage": "https://acme.github.io/Sync/"');
    expect(`${chart}${values}${alerts}${manifest}`).not.toMatch(
      /endpoint-syncer(?:\.github\.io)?\/endpoint-syncer/u,
    );
  } finally {
    await run('git', 'checkout', '--', '.');
  }
});

test('a tag of another version is refused with the next step', async () => {
  await expect(run('scripts/release-artifacts.sh', join(clone, 'other'), 'v1.2.3')).rejects.toThrow(
    'run npm version',
  );
});
