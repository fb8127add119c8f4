/**
 * Follows the pages literally, from nothing to a synced object, and prints how long each part takes: `npm run from-zero`. Needs what the
 * cluster suite needs. Exits with 1 if a command does not print what its page shows.
 */

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { playOnClusters } from '../e2e/play-on-clusters.ts';
import { differences } from './differences.ts';
import { packedEnvironment } from './packed-install.ts';
import { readPage } from './page.ts';
import { playPages, type PlayedCommand } from './session.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** README: a clone of this repository, until the page of the demo answers and the first object is synced. */
async function checkoutToDemo(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-zero-'));
  try {
    const start = performance.now();
    const [command] = readPage('README.md').shell.filter((line) => line.includes('npm start'));
    if (command === undefined) throw new Error('README.md does not start the demo');
    const script = `git clone --quiet ${ROOT} ${folder} && cd ${folder} && exec bash -c '${command}'`;
    // Its own process group, which the signal at the end reaches.
    const shell = spawn('bash', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
    for await (const line of createInterface({ input: shell.stdout })) {
      const [url] = /http:\S+(?=\/$)/u.exec(line) ?? [];
      if (url !== undefined && (await fetch(url)).ok) report('checkout → the page of the demo', start);
      if (/^\S+ {2}\S+\/\S+ +host +created/u.test(line)) {
        report('checkout → the first synced object', start);
        break;
      }
    }
    process.kill(-(shell.pid ?? 0), 'SIGTERM');
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/** docs/deploy.md: the commands from `helm install` to the copy. A process stands in for the Pod, so no image is pulled. */
async function chartToCopy(): Promise<void> {
  const played = await playOnClusters(['docs/deploy.md']);
  const end = played.findIndex(({ command }) => command.includes('wait --for=create'));
  reportCommands('chart → the copy on the host', played.slice(0, end + 1));
}

/** docs/testing.md: its first command. */
async function patchToTest(): Promise<void> {
  const start = performance.now();
  const env = await packedEnvironment();
  report('npm pack, npm install --global (none if the sources are unchanged)', start);
  const played = await playPages({ pages: ['docs/testing.md'], env });
  reportCommands('patch → its test', played.slice(0, 1));
}

function reportCommands(what: string, played: readonly PlayedCommand[]): void {
  const wrong = differences(played);
  if (wrong.length > 0 || played.length === 0)
    throw new Error(`${what}: other output than the page shows\n${JSON.stringify(wrong, null, 2)}`);
  const milliseconds = played.reduce((sum, { milliseconds: each }) => sum + each, 0);
  process.stdout.write(`${what}: ${(milliseconds / 1000).toFixed(1)} s, ${played.length} commands\n`);
}

function report(what: string, start: number): void {
  process.stdout.write(`${what}: ${((performance.now() - start) / 1000).toFixed(1)} s\n`);
}

await checkoutToDemo();
await patchToTest();
await chartToCopy();
