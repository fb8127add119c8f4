/** `demo`: sample objects, synced between two clusters in this process. */

import type { Command } from 'commander';
import { objectKey, parseKey, type KubeObject } from '../kube/object.ts';
import { runDemo, type SyncedSample } from '../showcase/demo.ts';
import { keepCompiledCode } from './compiled-code.ts';
import { formatListing, outputOption, resourceName, type ListedRow, type Listing } from './output/listing.ts';
import { tell, type ExitWith } from './output/terminal.ts';
import { portOption } from './playground.ts';
import { stopSignals } from './process-lifecycle.ts';

interface DemoFlags {
  readonly once?: boolean;
  readonly dir: string;
  readonly port: number;
  readonly output: string;
}

export function define(command: Command, exitWith: ExitWith): void {
  command
    .option('--once', 'list the objects when all are synced, then exit')
    .addOption(outputOption('with --once: '))
    .option('--dir <folder>', 'folder for the kubeconfigs and the configuration', '.endpoint-syncer/demo')
    .addOption(portOption())
    .action((flags: DemoFlags) => exitWith(() => demo(flags)));
}

async function demo({ once: isOnce = false, output, ...options }: DemoFlags): Promise<number> {
  using stop = stopSignals();
  const samples = await runDemo({ ...options, isOnce, signal: stop.signal });
  if (!isOnce) return 0;
  if (samples === undefined) {
    tell('the samples were not synced in time');
    return 1;
  }
  process.stdout.write(formatListing(listSamples(samples), output));
  keepCompiledCode();
  return 0;
}

export function listSamples(samples: readonly SyncedSample[]): Listing {
  return { heading: ['VIRTUAL', 'HOST', 'ADDRESSES', 'STATUS'], rows: samples.map(listed) };
}

function listed({ endpoints, copy, notSynced = 'no copy on the host', latencyMs }: SyncedSample): ListedRow {
  const key = objectKey(endpoints);
  const virtual = { ...parseKey(key) };
  const name = resourceName('Endpoints', '', virtual.name);
  const json = { kind: 'Endpoints', virtual, latencyMs: latencyMs ?? null };
  if (copy === undefined) {
    const host = { namespace: '', name: '' };
    return {
      cells: [key, '-', '-', `skipped: ${notSynced}`],
      name,
      json: { ...json, host, state: 'skipped', reason: notSynced, addresses: [] },
    };
  }
  const addresses = addressesOf(copy);
  const status = `synced in ${latencyMs?.toFixed(1) ?? '?'} ms`;
  const host = { ...parseKey(objectKey(copy)) };
  return {
    cells: [key, objectKey(copy), addresses.join(','), status],
    name,
    json: { ...json, host, state: 'synced', reason: '', addresses },
  };
}

function addressesOf({ subsets = [] }: KubeObject): string[] {
  const stored = subsets as { addresses?: { ip: string }[] }[]; // as the API server stores it
  return stored.flatMap(({ addresses = [] }) => addresses.map(({ ip }) => ip));
}
