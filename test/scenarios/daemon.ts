/** The daemon under test as its users run it: a process with arguments, signals, an exit code, log lines and HTTP endpoints. */

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { killGroup, type Guardian } from '../support/guardian.ts';
import { eventually } from '../support/eventually.ts';
import { RunningDaemon } from './running-daemon.ts';

const ROOT = join(import.meta.dirname, '..', '..');

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface DaemonOptions {
  readonly args: readonly string[];
  /** The URL of `/readyz` and `/metrics`, such as `http://127.0.0.1:1234`. */
  readonly httpUrl: string;
  readonly guardian: Guardian;
  readonly env?: Readonly<Record<string, string>>;
  /** Of another build. Default: this one. */
  readonly checkout?: string;
}

export class Daemon extends RunningDaemon {
  readonly exited: Promise<Exit>;
  readonly pid: number;
  readonly startedAtMs: number;
  readonly #child: ChildProcess;
  #stderr = '';
  #stdout = '';
  #exit: Exit | undefined;

  constructor(options: DaemonOptions) {
    super(options.httpUrl);
    this.startedAtMs = performance.now();
    const { checkout = ROOT } = options;
    this.#child = options.guardian.spawn(
      process.execPath,
      [join(checkout, 'src', 'main.ts'), 'run', ...options.args],
      { cwd: checkout, stdio: ['ignore', 'pipe', 'pipe'], env: { ...cleanEnv(), ...options.env } },
    );
    this.pid = this.#child.pid ?? 0;
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text));
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#stdout += text));
    this.exited = this.#whenClosed();
  }

  async #whenClosed(): Promise<Exit> {
    const [code, signal] = (await once(this.#child, 'close')) as [number | null, NodeJS.Signals | null]; // node's signature
    this.#exit = { code, signal };
    return this.#exit;
  }

  override get stderr(): string {
    return this.#stderr;
  }

  get stdout(): string {
    return this.#stdout;
  }

  /** Waits for `/readyz` to answer 200; fails immediately, with its output, when the process ends instead. */
  async ready(timeoutMs = 60_000): Promise<this> {
    await eventually(
      async () => {
        if (this.#exit !== undefined) return 'ended';
        // It listens before it writes its first line.
        if (this.#stderr === '') return 'silent';
        return (await this.get('/readyz')).status;
      },
      (status) => status === 200 || status === 'ended',
      { timeoutMs, what: `readiness of the daemon (stderr: ${this.#stderr.slice(-2000)})` },
    );
    if (this.#exit !== undefined) throw new Error(`the daemon ended: ${this.describeExit()}`);
    return this;
  }

  get isRunning(): boolean {
    return this.#exit === undefined;
  }

  describeExit(): string {
    return `${JSON.stringify(this.#exit)}\n${this.#stderr.slice(-4000)}`;
  }

  signal(signal: NodeJS.Signals): void {
    if (this.#exit === undefined) process.kill(this.pid, signal);
  }

  /** Sends SIGTERM, as a kubelet does; resolves with the exit code or signal. */
  async terminate(): Promise<Exit> {
    this.signal('SIGTERM');
    return this.exited;
  }

  override async stop(): Promise<void> {
    const exit = await this.terminate();
    if (exit.code !== 0) throw new Error(`the daemon ended: ${this.describeExit()}`);
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    await killGroup(this.#child);
    await this.exited;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    if (this.#exit === undefined) await this.kill();
  }
}

/** Without variables of the developer's shell that affect the daemon. All starts share compiled code. */
function cleanEnv(): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env;
  return { PATH, HOME, NO_COLOR: '1', NODE_COMPILE_CACHE: COMPILE_CACHE };
}
