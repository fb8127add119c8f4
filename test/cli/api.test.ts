/** `api` as a process: its address, its shutdown, and its errors when it cannot start. */

import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { RawClient } from '../contract/raw-client.ts';
import { freePorts } from '../support/free-ports.ts';
import { capturedRun, MAIN } from './captured-run.ts';
import { KEYS_PATH } from '../access-keys/composed-api.ts';
import { testFolder } from '../support/test-folder.ts';

const { folder, write } = testFolder();

function configFile(name: string, lines: readonly string[]): string {
  return write(`${name}.yaml`, `managementApi:\n${lines.map((line) => `  ${line}\n`).join('')}`);
}

class Api {
  readonly #child: ChildProcess;
  out = '';
  err = '';

  constructor(...args: string[]) {
    this.#child = spawn(process.execPath, [MAIN, 'api', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child.stdout?.on('data', (chunk: Buffer) => (this.out += String(chunk)));
    this.#child.stderr?.on('data', (chunk: Buffer) => (this.err += String(chunk)));
  }

  /** The output that describes the server, once it listens. */
  async printed(what: string): Promise<string> {
    await vi.waitFor(
      () => {
        if (!this.out.includes('certificate-authority: ')) throw new Error(`it does not listen: ${this.err}`);
      },
      { timeout: 60_000, interval: 10 },
    );
    return new RegExp(`^${what}: (.*)$`, 'mu').exec(this.out)?.[1] ?? '';
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async ended(signal?: NodeJS.Signals): Promise<number | null> {
    if (signal) this.#child.kill(signal);
    if (this.#child.exitCode === null) await once(this.#child, 'exit');
    return this.#child.exitCode;
  }
}

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: Readonly<Record<string, string>> }[];
  readonly users: readonly { readonly user: { readonly token: string } }[];
}

describe('api', () => {
  test('in a Pod: the kubeconfig of the first key works through a port-forward, and has the authority of the Service', async () => {
    const [port = 0] = await freePorts(1);
    const service = 'syncer-endpoint-syncer.team-a.svc';
    const file = configFile('pod', [
      `dataDir: ${join(folder, 'pod-data')}`,
      `bindAddress: ':${port}'`,
      `issuer: https://${service}`,
    ]);
    const api = new Api('--config', file, '--http-bind-address', '127.0.0.1:0');
    await api.printed('server');
    const { out } = await capturedRun(['keys', 'bootstrap', '--config', file, '-o', 'kubeconfig']);
    const { clusters, users } = parse(out) as Kubeconfig; // what the command prints
    const { server = '', 'certificate-authority-data': authority = '' } = clusters[0]?.cluster ?? {};
    expect(server).toBe(`https://127.0.0.1:${port}`);
    const ca = Buffer.from(authority, 'base64').toString('utf8');
    await using client = new RawClient({ url: server, ca, token: users[0]?.user.token ?? '' });
    expect((await client.send({ method: 'GET', path: KEYS_PATH })).status).toBe(200);
    const socket = connect({ host: '127.0.0.1', port, ca, servername: service });
    await once(socket, 'secureConnect');
    socket.destroy();
    expect(await api.ended('SIGTERM')).toBe(0);
  });

  test('a file with managementApi alone: serves, writes the bootstrap key file, ends at SIGTERM', async () => {
    const dataDir = join(folder, 'data');
    const keyFile = join(folder, 'first.key');
    const file = configFile('plain', [
      `dataDir: ${dataDir}`,
      'bindAddress: 127.0.0.1:0',
      `bootstrapKeyFile: ${keyFile}`,
    ]);
    const api = new Api('--config', file, '--http-bind-address', '127.0.0.1:0');
    const url = await api.printed('server');
    const ca = readFileSync(await api.printed('certificate-authority'), 'utf8');
    expect(await api.printed('next')).toBe(`endpoint-syncer keys list --config ${file}`);
    const key = readFileSync(keyFile, 'utf8').trim();
    await using client = new RawClient({ url, ca, token: key });
    const { status, json } = await client.send({ method: 'GET', path: KEYS_PATH });
    expect([status, JSON.stringify(json)]).toEqual([200, expect.stringContaining('"bootstrap-admin"')]);
    expect((await client.send({ method: 'GET', path: '/readyz' })).text).toBe('ok');
    // As logrotate does: the file is moved, and the process told.
    const auditFile = join(dataDir, 'audit.log');
    await vi.waitFor(() => expect(statSync(auditFile).size).toBeGreaterThan(0), { timeout: 10_000 });
    renameSync(auditFile, join(dataDir, 'moved.log'));
    api.kill('SIGHUP');
    expect((await client.send({ method: 'GET', path: KEYS_PATH })).status).toBe(200);
    await vi.waitFor(() => expect(statSync(auditFile).size).toBeGreaterThan(0), { timeout: 10_000 });
    const health = /"http":"(http:[^"]+)"/u.exec(api.err)?.[1] ?? '';
    expect((await fetch(`${health}/readyz`)).status).toBe(200);
    const series = await (await fetch(`${health}/metrics`)).text();
    expect(series).toMatch(/^apiserver_request_total\{verb="LIST",.*code="200"\} 2$/mu);
    expect(series).toMatch(
      /^endpoint_syncer_store_request_duration_seconds_count\{operation="list"\} [1-9]/mu,
    );
    expect([statSync(keyFile).mode & 0o777, statSync(dataDir).mode & 0o777]).toEqual([0o600, 0o700]);
    expect([await api.ended('SIGTERM'), api.out.includes(key), api.err.includes(key)]).toEqual([
      0,
      false,
      false,
    ]);
  });

  test('an address in use, an invalid certificate and no issuer: one line with the next step, exit code 1', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo; // it listens on TCP
    mkdirSync(join(folder, 'foreign'));
    writeFileSync(join(folder, 'foreign', 'master.key'), 'nonsense\n');
    write('file', '');
    const memory = 'store: {driver: memory}';
    const starts = {
      taken: [`dataDir: ${join(folder, 'taken')}`, `bindAddress: 127.0.0.1:${port}`, memory],
      foreign: [`dataDir: ${join(folder, 'foreign')}`, 'bindAddress: 127.0.0.1:0', memory],
      file: [`dataDir: ${join(folder, 'file')}`, 'bindAddress: 127.0.0.1:0'],
      everywhere: [`dataDir: ${join(folder, 'everywhere')}`, 'bindAddress: ":0"'],
    };
    const errors: string[] = [];
    for (const [name, lines] of Object.entries(starts)) {
      const api = new Api('--config', configFile(name, lines), '--log-level', 'silent');
      expect(await api.ended()).toBe(1);
      errors.push(api.err);
    }
    taken.close();
    expect(errors).toEqual([
      expect.stringMatching(
        /^error: cannot listen on managementApi\.bindAddress .*EADDRINUSE.*Choose a free address\n$/u,
      ),
      expect.stringMatching(/^error: .*master\.key is damaged.*\n$/u),
      expect.stringMatching(/^error: managementApi\.dataDir .* cannot be created: .*\n$/u),
      expect.stringMatching(
        /^error: managementApi\.bindAddress ":0" has no host .*: set managementApi\.issuer .*\n$/u,
      ),
    ]);
  });

  test('an invalid configuration is exit code 2', async () => {
    const api = new Api('--config', configFile('wrong', ['maxTtl: for ever']));
    expect([await api.ended(), api.err]).toEqual([
      2,
      expect.stringContaining('managementApi.maxTtl: must be a duration'),
    ]);
  });
});
