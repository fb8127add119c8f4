/**
 * The API server of a hostile member in a process of its own. It prints its kubeconfig, and reads names of {@link HOSTILE_INPUTS}, or empty lines for no hostility, one a
 * line: for each it prints `set`, and `answered` with the first hostile response. It ends with its input.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startEmbeddedCluster } from '../src/embedded-cluster/embedded-cluster.ts';
import { HOSTILE_INPUTS } from '../test/attack/hostile-input.ts';
import { ApiProxy, type ProxyBehaviour } from '../test/scenarios/api-proxy.ts';

const LEAST_PRIORITY = 19;

// What it takes of the processors would be another machine's.
setPriority(LEAST_PRIORITY);
const cluster = await startEmbeddedCluster({ name: 'hostile', token: 'hostile' });
const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-bench-'));
const file = join(directory, 'kubeconfig');
writeFileSync(file, cluster.kubeconfig);
const proxy = await ApiProxy.open(file);
rmSync(directory, { recursive: true });
process.stdout.write(`${proxy.kubeconfig}\n`);

for await (const mode of createInterface({ input: process.stdin })) {
  proxy.behaviour = behaviourOf(mode);
  proxy.cutAll();
  process.stdout.write('set\n');
}
process.exit(0);

function behaviourOf(mode: string): ProxyBehaviour {
  if (mode === '') return {};
  const answer = HOSTILE_INPUTS[mode];
  if (answer === undefined) throw new Error(`no hostile input ${JSON.stringify(mode)}`);
  let hasAnswered = false;
  return {
    decide(request) {
      const verdict = answer(request);
      if (verdict.kind !== 'pass' && !hasAnswered) {
        hasAnswered = true;
        process.stdout.write('answered\n');
      }
      return verdict;
    },
  };
}
