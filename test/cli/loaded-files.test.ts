/** Which files of a product a command of the other one loads, under V8's coverage of its process. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { testFolder } from '../support/test-folder.ts';
import { MAIN } from './captured-run.ts';

const SRC = join(import.meta.dirname, '..', '..', 'src');

const { folder, write } = testFolder();

/** A file of both: a patch, a mapping of vCluster, and the section of the API. */
const FILE = write(
  'both.yaml',
  `endpointSyncer:
  name: vc
  workers: 3
  http: {bindAddress: "127.0.0.1:0"}
  host: {kubeconfig: ${join(folder, 'none')}}
sync:
  toHost:
    endpoints: {patches: [{path: metadata.labels.a, expression: value + "b"}]}
    namespaces: {enabled: true, mappings: {byName: {a: h-a}}}
managementApi: {bindAddress: "127.0.0.1:0", dataDir: ${join(folder, 'data')}}
`,
);

interface Command {
  readonly loaded: readonly string[];
  readonly out: string;
  readonly err: string;
}

/** Runs a command until it ends, or until `whileServing` has; `loaded` are files below `src`. */
async function covered(
  name: string,
  args: readonly string[],
  whileServing?: (out: () => string) => Promise<void>,
): Promise<Command> {
  const coverage = join(folder, `coverage-${name}`);
  mkdirSync(coverage);
  const {
    ENDPOINT_SYNCER_CONFIG: _file,
    VCLUSTER_NAME: _name,
    KUBECONFIG: _kubeconfig,
    ...env
  } = process.env;
  const child = spawn(process.execPath, [MAIN, ...args, '--config', FILE], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...env, NODE_V8_COVERAGE: coverage },
  });
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += String(chunk)));
  child.stderr.on('data', (chunk: Buffer) => (err += String(chunk)));
  const closed = once(child, 'close');
  if (whileServing !== undefined) {
    await Promise.race([whileServing(() => out), closed]);
    child.kill('SIGTERM');
  }
  await closed;
  const reports = readdirSync(coverage).map(
    (file) => JSON.parse(readFileSync(join(coverage, file), 'utf8')) as Report,
  );
  const urls = reports.flatMap(({ result }) => result.map(({ url }) => url.replace(/\?.*$/u, '')));
  const files = urls.filter((url) => url.startsWith('file:')).map((url) => relative(SRC, fileURLToPath(url)));
  return { loaded: [...new Set(files)].filter((file) => !file.startsWith('..')), out, err };
}

interface Report {
  readonly result: readonly { readonly url: string }[];
}

function inFolders({ loaded }: Command, ...folders: readonly string[]): readonly string[] {
  return loaded.filter((file) => folders.some((one) => file.startsWith(`${one}/`))).toSorted();
}

describe('the key and token API loads no file of the sync', () => {
  test('api and keys', async () => {
    const keys: Command[] = [];
    const api = await covered('api', ['api'], async (out) => {
      const url = await eventually(
        () => /^server: (.*)$/mu.exec(out())?.[1] ?? '',
        (found) => found !== '' && out().includes('next: '),
      );
      const runKeys = async (name: string, ...args: string[]): Promise<Command> => {
        const command = await covered(`keys-${name}`, ['keys', name, '--server', url, ...args]);
        keys.push(command);
        return command;
      };
      const { out: key } = await runKeys('bootstrap');
      await runKeys('create', '--display-name', 'ci', '--user', 'admin', '--ttl', '1h');
      await runKeys('list');
      await runKeys('token', '--scope-cluster', 'c', '--token', key.trim());
    });
    expect(api.out).toContain('next: ');
    expect(api.loaded).toContain('access-keys/management-api.ts');
    expect(keys.map(({ err }) => err).join('')).not.toContain('error');
    expect(keys[2]?.out).toContain('ci');
    for (const command of [api, ...keys]) {
      expect(command.loaded).toContain('access-keys/config.ts');
      expect(inFolders(command, 'syncer', 'fleet', 'expressions')).toEqual([]);
    }
    // Only the first key may have to be created without a running API.
    for (const client of keys.slice(1)) {
      expect(client.loaded).not.toContain('access-keys/management-api.ts');
      expect(inFolders(client, 'apiserver/http', 'apiserver/objects', 'apiserver/watch')).toEqual([]);
    }
  });

  test('store', async () => {
    const store = await covered('store', ['store', 'verify']);
    expect(store.loaded).toContain('access-keys/config.ts');
    expect(inFolders(store, 'syncer', 'fleet', 'expressions')).toEqual([]);
  });
});

test('the sync loads of the API its section alone, if it is not enabled', async () => {
  const run = await covered('run', ['run', '--once', '--dry-run']);
  expect(run.loaded).toContain('syncer/config/parse.ts');
  expect(inFolders(run, 'access-keys')).toEqual(['access-keys/config.ts']);
});
