/** Compares the daemon's patch pipeline with its sandbox process to goja, isolated-vm and a plain function, on the same objects and in the
 * same run.
 *
 *   npm run bench -- patch [--millis 300] [--rounds 5] [--shapes 1,10,100,1000]
 */

import { cpus, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import type { SandboxLimits, Sandbox } from '../src/expressions/types.ts';
import { systemClock } from '../src/base/clock.ts';
import { silentLogger } from '../src/base/logger.ts';
import { compilePatches } from '../src/syncer/patch/compile.ts';
import { createPatchPipeline } from '../src/syncer/patch/pipeline.ts';
import type { PatchContext, PatchPipeline } from '../src/syncer/patch/types.ts';
import { createSandbox } from '../src/expressions/sandbox.ts';
import { isCopiedByKind } from '../src/syncer/kinds/synced-kinds.ts';
import { createLabelTranslator } from '../src/syncer/translate/labels.ts';
import { createNameTranslator } from '../src/syncer/translate/names.ts';
import { startPeers, type PeerName, type Peers } from './patch-peers.ts';
import { report, type Row } from './patch-report.ts';
import { checkPatched, EXPRESSION, PATH, poolOf, rateOf, VCLUSTER_NAME, type Rate } from './patch-work.ts';
import type { WriteResult } from './results.ts';
import { median, ratioOf } from './statistics.ts';

const LIMITS = { expressionTimeoutMs: 100, batchTimeoutMs: 1000, memoryBytes: 128 * 1024 * 1024 };
const MEMO_BYTES = 64 * 1024 * 1024;
/** Pending matches with a full queue, and the maximum number of objects that they are in. */
const PENDING = { matches: 32_768, objects: 1024 };

interface Settings {
  readonly millis: number;
  readonly rounds: number;
  readonly shapes: readonly number[];
}

export async function run(args: readonly string[], writeResult: WriteResult): Promise<void> {
  const settings = settingsOf(args);
  using peers = startPeers();
  const rows: Row[] = [];
  for (const matches of settings.shapes) {
    process.stderr.write(`${matches} matches per object\n`);
    rows.push(...(await measureShape(matches, settings, peers)));
  }
  const machine = {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    node: process.version,
    load: Number(loadavg()[0]?.toFixed(1)),
  };
  const date = new Date().toISOString().slice(0, 10);
  const result = {
    expression: EXPRESSION,
    path: PATH,
    date,
    machine,
    settings,
    missing: peers.missing,
    rows,
  };
  writeResult(result);
  process.stdout.write(`${report(rows, peers.missing)}\n`);
}

function settingsOf(args: readonly string[]): Settings {
  const { values } = parseArgs({
    args: [...args],
    options: {
      millis: { type: 'string', default: '300' },
      rounds: { type: 'string', default: '5' },
      shapes: { type: 'string', default: '1,10,100,1000' },
    },
  });
  return {
    millis: Number(values.millis),
    rounds: Number(values.rounds),
    shapes: values.shapes.split(',').map(Number),
  };
}

type Mode = Row['mode'];

type Variant = Pick<Row, 'place' | 'memo' | 'mode'>;

const VARIANTS: readonly Variant[] = [
  { place: 'daemon', memo: false, mode: 'queue full' },
  { place: 'daemon', memo: false, mode: 'single' },
  { place: 'sandbox', memo: false, mode: 'queue full' },
  { place: 'sandbox', memo: true, mode: 'queue full' },
  { place: 'sandbox', memo: false, mode: 'single' },
  { place: 'sandbox', memo: true, mode: 'single' },
];

/** All peers run in every round, so that other load on the machine affects all of them. Ratios are computed per round. */
async function measureShape(matches: number, { millis, rounds }: Settings, peers: Peers): Promise<Row[]> {
  const ours = VARIANTS.map((): Rate[] => []);
  const theirs = new Map<PeerName, Rate[]>(peers.names.map((name) => [name, []]));
  await using local = await createOurs(0, true);
  await using plain = await createOurs(0, false);
  await using remembering = await createOurs(MEMO_BYTES, false);
  const job = createJob(matches);
  for (let round = -1; round < rounds; round++) {
    for (const [at, { place, memo, mode }] of VARIANTS.entries()) {
      const { pipeline } = place === 'daemon' ? local : memo ? remembering : plain;
      const rate = await job.measure(pipeline, mode, millis);
      // The first round is for warming up.
      if (round >= 0) ours[at]?.push(rate);
    }
    for (const name of peers.names) {
      const rate = await peers.measure(name, matches, millis);
      if (round >= 0 && rate !== undefined) theirs.get(name)?.push(rate);
    }
  }
  return VARIANTS.map((variant, at) => rowOf({ shape: matches, ...variant }, ours[at] ?? [], theirs));
}

function rowOf(
  head: Pick<Row, 'shape' | 'place' | 'memo' | 'mode'>,
  ours: readonly Rate[],
  theirs: ReadonlyMap<PeerName, readonly Rate[]>,
): Row {
  const measured = [...theirs].filter(([, rates]) => rates.length > 0);
  return {
    ...head,
    ours: medianRate(ours),
    peers: Object.fromEntries(measured.map(([name, rates]) => [name, medianRate(rates)])),
    ratio: Object.fromEntries(
      measured.map(([name, rates]) => [name, ratioOf(ours.map(objectsOf), rates.map(objectsOf))]),
    ),
  };
}

function objectsOf({ objectsPerSecond }: Rate): number {
  return objectsPerSecond;
}

function medianRate(rates: readonly Rate[]): Rate {
  return {
    objectsPerSecond: Math.round(median(rates.map(objectsOf))),
    matchesPerSecond: Math.round(median(rates.map((rate) => rate.matchesPerSecond))),
  };
}

interface Ours extends AsyncDisposable {
  readonly pipeline: PatchPipeline;
}

async function createOurs(memoBytes: number, localEvaluation: boolean): Promise<Ours> {
  const compiled = compilePatches([{ path: PATH, expression: EXPRESSION }]);
  const limits: SandboxLimits = { ...LIMITS, memoBytes };
  const mode = { kind: 'single' } as const;
  const hostNamespace = 'my-namespace';
  const sandbox: Sandbox = await createSandbox({
    programs: compiled.programs,
    vcluster: { name: VCLUSTER_NAME, namespace: hostNamespace, config: {} },
    limits,
    localEvaluation,
    clock: systemClock,
    logger: silentLogger,
  });
  const names = createNameTranslator({
    vcluster: VCLUSTER_NAME,
    hostNamespace,
    mode,
    isCopiedByKind,
    referenceNaming: 'short',
  });
  const pipeline = createPatchPipeline({
    compiled,
    contentMembers: ['subsets'],
    vcluster: { name: VCLUSTER_NAME, namespace: hostNamespace, config: {} },
    evaluator: sandbox,
    labels: createLabelTranslator(VCLUSTER_NAME, mode),
    references: { names, lookup: () => undefined, isKindAllowed: () => true, skipPodTargetRefs: true },
  });
  return { pipeline, [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose]() };
}

interface Job {
  measure(pipeline: PatchPipeline, mode: Mode, millis: number): Promise<Rate>;
}

function createJob(matches: number): Job {
  const pool = poolOf(matches);
  const contexts = pool.map((object): PatchContext => ({
    hostObject: null,
    virtualObject: object,
    objectNamespace: 'default',
  }));
  const waiting = Math.max(8, Math.min(PENDING.objects, Math.floor(PENDING.matches / matches)));
  return {
    async measure(pipeline, mode, millis) {
      const [first, context] = [pool[0], contexts[0]];
      if (first === undefined || context === undefined) throw new Error('no objects');
      checkPatched((await pipeline.apply('toHost', first, context)).object, matches);
      let started = 0;
      let done = 0;
      let elapsedMs = 0;
      const start = performance.now();
      // Each worker keeps one object in flight.
      const worker = async (): Promise<void> => {
        while (elapsedMs < millis) {
          const at = started++ % pool.length;
          const patched = pipeline.apply('toHost', pool[at] ?? first, contexts[at] ?? context);
          if (patched instanceof Promise) await patched;
          // Reading the clock is as expensive as some of the measured work. The peers read it once in 200 matches.
          if (++done % 16 === 0 || matches >= 100) elapsedMs = performance.now() - start;
        }
      };
      await Promise.all(Array.from({ length: mode === 'single' ? 1 : waiting }, worker));
      return rateOf(done, performance.now() - start, matches);
    },
  };
}
