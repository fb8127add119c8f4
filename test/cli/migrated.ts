/** Runs `migrate` on values of vCluster in a temporary folder, which the test removes. */

import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { capturedRun } from './captured-run.ts';

export const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-migrate-'));

export async function migrate(values: string, ...args: string[]) {
  const file = join(folder, 'vcluster.yaml');
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, values);
  const run = await capturedRun(['migrate', '--vcluster-config', file, '--name', 'vc', ...args]);
  return { ...run, out: run.out.replaceAll(`${folder}/`, ''), err: run.err.replaceAll(`${folder}/`, '') };
}

export const BOTH_OFF = {
  sync: { toHost: { endpoints: { enabled: false }, endpointSlices: { enabled: false } } },
};

export async function json(values: string) {
  const { code, out } = await migrate(values, '-o', 'json');
  return {
    code,
    ...(JSON.parse(out) as { config: object; values: string; table: Record<string, string>[] }),
  };
}
