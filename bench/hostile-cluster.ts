/** The API server of a hostile member in a process of its own: it prints its kubeconfig, and ends with its input. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedCluster } from '../src/embedded-cluster/embedded-cluster.ts';
import { flapping } from '../test/attack/hostile-member.ts';
import { ApiProxy } from '../test/scenarios/api-proxy.ts';

const OBJECTS = 10_000;

const cluster = await startEmbeddedCluster({ name: 'hostile', token: 'hostile' });
const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-bench-'));
const file = join(directory, 'kubeconfig');
writeFileSync(file, cluster.kubeconfig);
const proxy = await ApiProxy.open(file);
rmSync(directory, { recursive: true });
proxy.behaviour = flapping(OBJECTS);
process.stdout.write(`${proxy.kubeconfig}\n`);
process.stdin.on('end', () => process.exit(0)).resume();
