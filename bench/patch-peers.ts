/** The implementations that the patch benchmark compares with ours: processes that run one measurement per request. */

import { execFileSync, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { EXPRESSION, rateOf, type Rate } from './patch-work.ts';

export type PeerName = 'gojaPerObject' | 'gojaReused' | 'isolatedVmNaive' | 'plainFunction';

export interface Peers extends Disposable {
  readonly names: readonly PeerName[];
  /** Why a peer cannot be measured here. */
  readonly missing: Readonly<Partial<Record<PeerName, string>>>;
  measure(peer: PeerName, matches: number, millis: number): Promise<Rate | undefined>;
}

/** The value of `peer` in a request. */
const PEER_PARAMETERS: Readonly<Record<PeerName, string>> = {
  gojaPerObject: 'per-object',
  gojaReused: 'reused',
  isolatedVmNaive: 'isolated-vm',
  plainFunction: 'plain',
};
const NAMES = Object.keys(PEER_PARAMETERS) as PeerName[];

export function startPeers(): Peers {
  const go = buildGo();
  const inProcess = new PeerProcess(process.execPath, [
    '--no-node-snapshot',
    join(import.meta.dirname, 'peers/in-process.ts'),
  ]);
  const goja = go.ok ? new PeerProcess(go.binary, []) : undefined;
  return {
    names: NAMES,
    missing: go.ok ? {} : { gojaPerObject: go.reason, gojaReused: go.reason },
    async measure(peer, matches, millis) {
      const owner = peer === 'gojaPerObject' || peer === 'gojaReused' ? goja : inProcess;
      return owner?.measure({ peer: PEER_PARAMETERS[peer], expression: EXPRESSION, matches, millis });
    },
    [Symbol.dispose]() {
      inProcess.close();
      goja?.close();
    },
  };
}

type Built = { readonly ok: true; readonly binary: string } | { readonly ok: false; readonly reason: string };

/** Pinned by go.mod and go.sum; the first time Go downloads the modules. */
function buildGo(): Built {
  const cwd = join(import.meta.dirname, 'peers/goja');
  const folder = join(import.meta.dirname, '../node_modules/.cache/bench');
  const binary = join(folder, 'goja');
  try {
    mkdirSync(folder, { recursive: true });
    execFileSync('go', ['build', '-mod=readonly', '-o', binary, '.'], {
      cwd,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    return { ok: true, binary };
  } catch (error) {
    const { code, stderr } = error as { code?: string; stderr?: Buffer };
    if (code === 'ENOENT') return { ok: false, reason: 'Go is not installed' };
    return {
      ok: false,
      reason: `go build failed: ${stderr?.toString().trim().split('\n').at(-1) ?? String(error)}`,
    };
  }
}

interface MeasureRequest {
  readonly peer: string;
  readonly expression: string;
  readonly matches: number;
  readonly millis: number;
}

class PeerProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  readonly #reader: Interface;
  #errors = '';

  constructor(command: string, args: readonly string[]) {
    this.#child = spawn(command, args);
    this.#child.stderr.on('data', (chunk: Buffer) => (this.#errors += chunk.toString()));
    this.#reader = createInterface({ input: this.#child.stdout });
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  async measure(request: MeasureRequest): Promise<Rate> {
    this.#child.stdin.write(`${JSON.stringify(request)}\n`);
    const line = await this.#lines.next();
    if (line.done === true) throw new Error(`${request.peer} ended: ${this.#errors}`);
    const { objects, nanos } = JSON.parse(line.value) as { objects: number; nanos: number };
    return rateOf(objects, nanos / 1e6, request.matches);
  }

  close(): void {
    this.#reader.close();
    this.#child.stdin.end();
    this.#child.kill();
  }
}
