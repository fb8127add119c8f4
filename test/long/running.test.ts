/** What runs until it is stopped still does its work after a minute, and ends as asked. */

import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { MAIN } from '../cli/captured-run.ts';
import { TestCluster } from '../scenarios/cluster-client.ts';
import { newEmbeddedWorld } from '../scenarios/embedded-world.ts';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { Guardian } from '../support/guardian.ts';
import { testFolder } from '../support/test-folder.ts';

const MINUTE_MS = 60_000;
const { folder, write } = testFolder();

/** A command in a process of its own, for at least a minute. */
class LongRun implements AsyncDisposable {
  out = '';
  err = '';
  readonly #guardian = new Guardian();
  readonly #child;
  readonly #minute = sleep(MINUTE_MS);

  constructor(...args: readonly string[]) {
    this.#child = this.#guardian.spawn(process.execPath, [MAIN, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child.stdout?.on('data', (chunk: Buffer) => void (this.out += String(chunk)));
    this.#child.stderr?.on('data', (chunk: Buffer) => void (this.err += String(chunk)));
  }

  whenPrinted(what: RegExp): Promise<string> {
    const text = (): string => this.out + this.err;
    const isDone = (printed: string): boolean => what.test(printed) || this.#child.exitCode !== null;
    return eventually(text, isDone, { timeoutMs: MINUTE_MS, what: what.source });
  }

  /** Resolves when it has run for a minute; rejects if it has ended. */
  async isRunning(): Promise<void> {
    await this.#minute;
    const { exitCode, signalCode } = this.#child;
    if ((exitCode ?? signalCode) !== null)
      throw new Error(`it ended: ${exitCode ?? signalCode}\n${this.err}`);
  }

  /** Resolves with exit code and signal. */
  async stopped(): Promise<readonly unknown[]> {
    const closed = once(this.#child, 'close');
    this.#child.kill('SIGTERM');
    const ended: unknown[] = await closed;
    if (/^ +at /mu.test(this.err)) throw new Error(`there is a stack in ${this.err}`);
    return ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#guardian[Symbol.asyncDispose]();
  }
}

describe('after a minute', () => {
  test('status --watch prints a change, and goes on when an API server has not responded', async () => {
    await using world = await newEmbeddedWorld();
    const host = await world.proxy('host');
    const config = world.writeConfig(world.configuration({ kubeconfigs: { host: host.path } }, 0));
    await world.createVirtual('default/web');
    await using status = new LongRun('status', '--watch', '--config', config);
    await status.whenPrinted(/web/u);
    await status.isRunning();
    await world.createVirtual('default/late');
    expect(await status.whenPrinted(/late/u)).toMatch(/late/u);
    host.behaviour = { decide: () => ({ kind: 'cut' }) };
    expect(await status.whenPrinted(/warning: cannot connect/u)).toMatch(/read again every 2 s/u);
    host.behaviour = {};
    await world.createVirtual('default/later');
    expect(await status.whenPrinted(/later/u)).toMatch(/later/u);
    expect(await status.stopped()).toEqual([null, 'SIGTERM']);
  });

  test('run copies a new object', async () => {
    await using world = await newEmbeddedWorld();
    const config = world.writeConfig(world.configuration({}, 0));
    await using run = new LongRun('run', '--config', config);
    await run.whenPrinted(/first pass complete/u);
    await run.isRunning();
    await world.createVirtual('default/late');
    await world.whenCopy('default/late');
    expect(await run.stopped()).toEqual([0, null]);
  });

  test('run --dry-run logs what it would do about a new object', async () => {
    await using world = await newEmbeddedWorld();
    const config = world.writeConfig(world.configuration({}, 0));
    await using run = new LongRun('run', '--dry-run', '--config', config);
    await run.whenPrinted(/first pass complete/u);
    await run.isRunning();
    await world.createVirtual('default/late');
    expect(await run.whenPrinted(/late-x-default/u)).toMatch(/late-x-default/u);
    expect(await run.stopped()).toEqual([0, null]);
  });

  test('api serves', async () => {
    const [port = 0, health = 0] = await freePorts(2);
    const file = write(
      'api.yaml',
      `endpointSyncer: {http: {bindAddress: "127.0.0.1:${health}"}}
managementApi: {enabled: true, bindAddress: "127.0.0.1:${port}", dataDir: ${folder}/data}\n`,
    );
    await using api = new LongRun('api', '--config', file);
    await api.whenPrinted(/certificate-authority/u);
    await api.isRunning();
    expect((await fetch(`http://127.0.0.1:${health}/readyz`)).status).toBe(200);
    expect(await api.stopped()).toEqual([0, null]);
  });

  test('demo shows a change, and the playground serves', async () => {
    const [page = 0] = await freePorts(1);
    await using demo = new LongRun('demo', '--dir', `${folder}/demo`);
    await using playground = new LongRun('playground', '--port', String(page));
    await Promise.all([demo.isRunning(), playground.isRunning()]);
    const { length } = demo.out;
    await eventually(
      () => demo.out.length,
      (now) => now > length,
    );
    expect((await fetch(`http://127.0.0.1:${page}/`)).status).toBe(200);
    await using virtual = new TestCluster(`${folder}/demo/virtual.kubeconfig`);
    const events = await virtual.list('Event', 'shop');
    expect(events.filter(({ type }) => type === 'Warning')).toEqual([]);
    expect(await playground.stopped()).toEqual([0, null]);
    expect(await demo.stopped()).toEqual([0, null]);
  });
});
