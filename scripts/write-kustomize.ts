/** Writes `deploy/kustomize` from the Helm chart. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { CHART, helm } from '../test/e2e/deploy/helm.ts';
import { KUSTOMIZE_NAMESPACE, kustomizeFiles } from './kustomize.ts';

const TARGET = join(import.meta.dirname, '..', 'deploy', 'kustomize');
const home = mkdtempSync(join(tmpdir(), 'endpoint-syncer-helm-'));
try {
  const files = await kustomizeFiles((values) =>
    helm(
      home,
      'template',
      'endpoint-syncer',
      CHART,
      '--namespace',
      KUSTOMIZE_NAMESPACE,
      '--set',
      values.join(','),
    ),
  );
  rmSync(TARGET, { recursive: true, force: true });
  for (const [path, text] of files) {
    mkdirSync(dirname(join(TARGET, path)), { recursive: true });
    writeFileSync(join(TARGET, path), text);
  }
} finally {
  rmSync(home, { recursive: true });
}
