/** Run by `npm version`: updates the changelog's heading, the chart's versions, the pages, and the manifests generated from the chart. */

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const VERSION = /"version": "([^"]+)"/u.exec(readFileSync(join(ROOT, 'package.json'), 'utf8'))?.[1] ?? '';

edit('CHANGELOG.md', (text) =>
  text
    // Before the first release, the heading has its version.
    .replace(/^## [\d.]+ \(unreleased\)\n\n[^]*?(?=\n### )/mu, '## Unreleased\n')
    .replace(
      '## Unreleased\n',
      `## Unreleased\n\n## ${VERSION} (${new Date().toISOString().slice(0, 10)})\n`,
    ),
);
edit(join('charts', 'endpoint-syncer', 'Chart.yaml'), (text) =>
  text
    .replace(/^version: .*$/mu, `version: ${VERSION}`)
    .replace(/^appVersion: .*$/mu, `appVersion: ${VERSION}`),
);
edit(join('docs', 'deploy.md'), (text) =>
  published(text).replaceAll(/(endpoint-syncer\/endpoint-syncer):[\d.]+(?:-[\w.]+)?$/gmu, `$1:${VERSION}`),
);
edit('README.md', (text) =>
  published(text).replaceAll(/endpoint-syncer-[\d.]+(?:-[\w.]+)?\.tgz/gu, `endpoint-syncer-${VERSION}.tgz`),
);
execFileSync(process.execPath, [join(import.meta.dirname, 'write-kustomize.ts')], { stdio: 'inherit' });

/** Without what holds only as long as nothing is published. */
function published(text: string): string {
  return text.replaceAll(/<!-- until the first release -->\n[^]*?<!-- end -->\n\n/gu, '');
}

function edit(file: string, change: (text: string) => string): void {
  const path = join(ROOT, file);
  const [before, after] = [readFileSync(path, 'utf8'), change(readFileSync(path, 'utf8'))];
  if (before === after && !after.includes(VERSION))
    throw new Error(`${file} has no place for version ${VERSION}`);
  writeFileSync(path, after);
}
