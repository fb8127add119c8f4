/**
 * Syncs one object between two embedded clusters with the program of the image in a read-only root, whose folder is the first argument. Prints the
 * time until `run` is ready and its memory.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { newEmbeddedWorld } from '../../test/scenarios/embedded-world.ts';
import { eventually } from '../../test/support/eventually.ts';
import { freePorts } from '../../test/support/free-ports.ts';
import { endpoints, ipsOf } from '../../test/scenarios/objects.ts';

const root = process.argv[2];
if (root === undefined) throw new Error('usage: sync.ts ROOT');
const FOLDER = '/etc/endpoint-syncer';

await using world = await newEmbeddedWorld();
const [port] = await freePorts(1);
const address = `127.0.0.1:${port}`;
for (const cluster of ['virtual', 'host'] as const) {
  copyFileSync(world[cluster].kubeconfigPath, join(root, FOLDER, `${cluster}.kubeconfig`));
}
// With a flag that the daemon leaves to the sandbox process.
const patch = { path: 'metadata.annotations["owner"]', expression: 'value.replace(/A/i, "A")' };
writeFileSync(
  join(root, FOLDER, 'config.yaml'),
  stringify({
    sync: { toHost: { endpoints: { patches: [patch] } } },
    endpointSyncer: {
      name: world.vcluster,
      virtual: { kubeconfig: `${FOLDER}/virtual.kubeconfig` },
      host: { kubeconfig: `${FOLDER}/host.kubeconfig`, namespace: world.hostNamespace },
      http: { bindAddress: address },
    },
  }),
);

const startedMs = performance.now();
const command = ['/usr/local/bin/node', '/app/dist/main.js', 'run', '--config', `${FOLDER}/config.yaml`];
const daemon = spawn(join(import.meta.dirname, 'read-only.sh'), [root, ...command], {
  stdio: ['ignore', 'inherit', 'pipe'],
});
let log = '';
daemon.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
const exited = once(daemon, 'exit');
try {
  await eventually(
    async () => (await fetch(`http://${address}/readyz`)).status,
    (status) => status === 200,
  );
  const readyMs = performance.now() - startedMs;
  await world.virtual.create('Endpoints', endpoints('default/web', { annotations: { owner: 'a' } }));
  const copy = await world.whenCopy('default/web', ({ metadata }) => metadata.annotations?.['owner'] === 'A');
  print(
    `read-only run: ready after ${Math.round(readyMs)} ms, synced ${copy.metadata.name} ${ipsOf(copy).join()}`,
  );
  print(`memory: ${memoryMiB(daemon.pid ?? 0)} MiB with the sandbox process`);
} catch (error) {
  process.stderr.write(log);
  throw error;
} finally {
  daemon.kill('SIGTERM');
}
const [code] = (await exited) as [number | null]; // node's signature
if (code !== 0) throw new Error(`run exited with ${code}:\n${log}`);
print('SIGTERM: exit code 0');

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Resident memory of a process and its children. */
function memoryMiB(pid: number): number {
  const children = readdirSync('/proc').filter((name) => /^\d+$/u.test(name) && parentOf(name) === pid);
  if (children.length === 0) throw new Error('no sandbox process was started');
  const kib = [String(pid), ...children].reduce((sum, name) => sum + residentKib(name), 0);
  return Math.round(kib / 1024);
}

function parentOf(pid: string): number {
  return Number(/^PPid:\s+(\d+)/mu.exec(statusOf(pid))?.[1]);
}

function residentKib(pid: string): number {
  return Number(/^VmRSS:\s+(\d+)/mu.exec(statusOf(pid))?.[1] ?? 0);
}

function statusOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return ''; // it has exited
  }
}
