/** The source of the child, as text instead of a file: a Node process that strips types is 20 MiB larger and starts 50 ms later, and this child needs
 * to read no file except the addon. */

import { execFileSync } from 'node:child_process';
import { hash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire, getCompileCacheDir } from 'node:module';
import { dirname, join } from 'node:path';
import type { IsolateMessage, SetupMessage } from './protocol.ts';
import type { NamingRules, SandboxLimits, VclusterContext } from './types.ts';

export interface GuestSource {
  readonly main: string;
  /** The only file that the child may read. */
  readonly addon: string;
  /** Of one match, before V8 runs the expression in its breadth-first engine, whose time is linear in the text. Those with the flags i, u or v,
   * back-references or large counted repetitions always use the backtracking engine. */
  readonly regexpBacktracksMax: number;
  readonly setup: SetupMessage;
}

/** Share of its time limit that an expression must have had the processor to count as timed out: on a busy machine, it might not have run at all. */
export const PROCESSOR_SHARE = 0.7;
/** After this multiple of its limit, an expression counts as timed out in any case. */
export const STARVED_FACTOR = 10;

/** The child's program `main`, and the modules of its realm, of which `realm` is the entry. A bundle has these two only. */
const GUEST = new URL('./guest/', import.meta.url);
const MIB = 1024 * 1024;
const HEAP_MIB_MIN = 16;
const SHARE_MS_MAX = 20;
const TURN_MS_MAX = 100;
/** Corresponds to at most a millisecond. */
const REGEXP_BACKTRACKS_MAX = 50_000;

export function readGuestSource(isolates: readonly IsolateMessage[] = []): GuestSource {
  const addon = addonPath();
  // V8 accepts about thirty characters.
  const collectorName = `gc${randomBytes(12).toString('hex')}`;
  const { main = '', ...modules } = readGuest();
  return {
    // TypeScript marks a module without imports, but the program is a script.
    main: main.replace(/^export \{\};$/m, ''),
    addon,
    regexpBacktracksMax: REGEXP_BACKTRACKS_MAX,
    setup: {
      addon,
      collectorName,
      modules,
      processorShare: PROCESSOR_SHARE,
      starvedFactor: STARVED_FACTOR,
      isolates,
    },
  };
}

/** What {@link isolateMessage} needs of a configuration. */
export interface IsolateOptions {
  readonly vcluster: VclusterContext;
  readonly names: NamingRules;
  readonly limits: Pick<SandboxLimits, 'expressionTimeoutMs' | 'batchTimeoutMs' | 'memoryBytes'>;
}

export function isolateMessage(id: number, { vcluster, names, limits }: IsolateOptions): IsolateMessage {
  const { name, namespace, config } = vcluster;
  return {
    id,
    settings: {
      shareMs: Math.min(SHARE_MS_MAX, limits.expressionTimeoutMs / 4),
      vcluster: { name, namespace, config },
      names,
    },
    // The rest of the process's memory limit is for messages.
    heapMiB: Math.max(HEAP_MIB_MIN, Math.floor(limits.memoryBytes / MIB / 2)),
    expressionTimeoutMs: limits.expressionTimeoutMs,
    batchTimeoutMs: limits.batchTimeoutMs,
    turnMs: Math.min(TURN_MS_MAX, limits.batchTimeoutMs),
  };
}

/** The files of the guest by name, without types. */
function readGuest(): Record<string, string> {
  const files = readdirSync(GUEST);
  const texts = files.map((file) => readFileSync(new URL(file, GUEST), 'utf8'));
  const scripts = files.some((file) => file.endsWith('.ts')) ? stripTypes(texts) : texts;
  return Object.fromEntries(files.map((file, i) => [file.replace(/\.[jt]s$/, ''), scripts[i] ?? '']));
}

/** Finds the prebuilt addon for this Node version as isolated-vm does. */
function addonPath(): string {
  const here = createRequire(import.meta.url);
  const folder = dirname(here.resolve('isolated-vm/package.json'));
  const find = createRequire(`${folder}/package.json`)('node-gyp-build') as { path(folder: string): string };
  return find.path(folder);
}

const STRIPPED_BYTES_MAX = 16 * 1024 * 1024;
const STRIP_TIMEOUT_MS = 30_000;

const STRIP = `
const { readFileSync } = require('node:fs');
const { stripTypeScriptTypes } = require('node:module');
const texts = JSON.parse(readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify(texts.map((text) => stripTypeScriptTypes(text, { mode: 'strip' }))));
`;

/** As Node does, but in a separate process, because the converter would keep 17 MiB in this one. It needs 100 ms of processor time, so the output is
 * cached in `folder`, which is trusted as code is. */
export function stripTypes(texts: readonly string[], folder = getCompileCacheDir()): string[] {
  const input = JSON.stringify(texts);
  if (folder === undefined) return parsed(strip(input));
  // Another version of Node may strip differently.
  const file = join(folder, `stripped-${hash('sha256', `${process.version} ${input}`, 'hex')}`);
  const kept = read(file);
  if (kept !== undefined) return parsed(kept);
  const output = strip(input);
  keep(file, output);
  return parsed(output);
}

function strip(input: string): string {
  return execFileSync(process.execPath, ['--no-warnings', '-e', STRIP], {
    input,
    encoding: 'utf8',
    env: {},
    maxBuffer: STRIPPED_BYTES_MAX,
    timeout: STRIP_TIMEOUT_MS,
  });
}

function parsed(output: string): string[] {
  return JSON.parse(output) as string[]; // what the script above writes
}

/** Undefined if there is none, or it is incomplete after a full disk or a power failure. */
function read(file: string): string | undefined {
  try {
    const [sum = '', output = ''] = readFileSync(file, 'utf8').split('\n', 2);
    return hash('sha256', output, 'hex') === sum ? output : undefined;
  } catch {
    return undefined;
  }
}

/** Atomic. A read-only folder is not an error. */
function keep(file: string, output: string): void {
  const unfinished = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    writeFileSync(unfinished, `${hash('sha256', output, 'hex')}\n${output}`, { mode: 0o600, flag: 'wx' });
    renameSync(unfinished, file);
  } catch {
    rmSync(unfinished, { force: true });
  }
}
