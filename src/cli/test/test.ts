/** `test`: declarative cases for patches, run offline. */

import { formatOption } from '../output/listing.ts';
import { stat, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { ConfigError } from '../../base/errors.ts';
import { loadConfig } from '../../config/load.ts';
import { withHostNamespace, CONFIG_CHECKS } from '../config-options.ts';
import { type ExitWith, reportProblems, paintFor, showProgress } from '../output/terminal.ts';
import { KeptSandbox } from '../offline/rehearsal-parts.ts';
import type { OfflineOptions } from '../offline/offline-sync.ts';
import { CoverageRun } from './coverage.ts';
import { formatReport, type CaseResult, type FileCoverage, type TestFormat } from './report.ts';
import { runCase, type CaseRun } from './run-case.ts';
import { findTestFiles, readTestFile, type TestFile } from './test-file.ts';
import { updatedText } from './update.ts';

interface TestFlags {
  readonly output: TestFormat;
  readonly coverage?: boolean;
  readonly update?: boolean;
  readonly watch?: boolean;
}

export function define(command: Command, exitWith: ExitWith): void {
  command
    .argument('[paths...]', 'test files, or folders that are searched for *endpoint-syncer-test.yaml', ['.'])
    .addOption(formatOption(['table', 'json', 'junit']))
    .option('--coverage', 'show the patches, directions and branches that no case covers')
    .option('--update', 'replace the expectations in the files with the actual results')
    .option('--watch', 'run again when a test file, its configuration or its objects change')
    .action((paths: string[], flags: TestFlags) =>
      exitWith(async () =>
        flags.watch === true ? await runAgain(paths, flags) : (await runOnce(paths, flags)).code,
      ),
    );
}

interface Round {
  readonly code: number;
  /** Every file that was read. */
  readonly reads: readonly string[];
}

async function runOnce(paths: readonly string[], flags: TestFlags): Promise<Round> {
  const reads: string[] = [];
  try {
    const files: TestFile[] = [];
    for (const path of await findTestFiles(paths)) {
      reads.push(path);
      const file = await readTestFile(path);
      reads.push(...file.reads);
      files.push(file);
    }
    if (files.length === 0) {
      process.stderr.write(`error: no *endpoint-syncer-test.yaml at or below ${paths.join(', ')}\n`);
      return { code: 2, reads };
    }
    return { code: await runFiles(files, flags), reads };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    reportProblems(error.problems);
    return { code: 2, reads };
  }
}

async function runFiles(files: readonly TestFile[], flags: TestFlags): Promise<number> {
  const monotonicMs = (): number => systemClock.monotonicMs();
  const results: CaseResult[] = [];
  const notes: string[] = [];
  const coverage: FileCoverage[] = [];
  const total = files.reduce((sum, { cases }) => sum + cases.length, 0);
  using progress = showProgress('testing');
  for (const [config, of] of Map.groupBy(files, (file) => file.config)) {
    const { config: given } = await loadConfig({ file: config, env: {}, flags: {}, checks: CONFIG_CHECKS });
    const loaded = withHostNamespace(given);
    await using sandbox = new KeptSandbox();
    const covered = flags.coverage === true ? new CoverageRun() : undefined;
    const options: OfflineOptions = {
      createSandbox: (given) => sandbox.open(given),
      ...(covered && { createPipeline: covered.createPipeline }),
    };
    for (const file of of) {
      const runs: CaseRun[] = [];
      for (const test of file.cases) {
        const startMs = monotonicMs();
        const run = await runCase(test, loaded, options);
        runs.push(run);
        const durationMs = monotonicMs() - startMs;
        const wrong = flags.update === true ? [] : run.mismatches;
        const mismatches = [...wrong, ...run.brokenRoundTrip];
        results.push({ file: file.path, name: test.name, mismatches, durationMs });
        notes.push(...run.missing.map((object) => `${file.path}: ${test.name}: ${object} ${IN_NO_FILE}`));
        progress.update(results.length, total);
      }
      if (flags.update === true) await update(file, runs);
    }
    if (covered !== undefined) coverage.push({ config, patches: await covered.report(loaded) });
  }
  const report = { cases: results, coverage: flags.coverage === true ? coverage : undefined };
  progress[Symbol.dispose]();
  process.stdout.write(formatReport(report, flags.output, paintFor(process.stdout)));
  for (const note of notes) process.stderr.write(`note: ${note}\n`);
  return results.some(({ mismatches }) => mismatches.length > 0) ? 1 : 0;
}

const IN_NO_FILE =
  'is referenced and in no file of the case, so nothing is imported: add it, or expect the Event ReferenceNotFound';

async function update(file: TestFile, runs: readonly CaseRun[]): Promise<void> {
  const text = updatedText(file, runs);
  if (text === file.text) return;
  await writeFile(file.path, text);
  process.stderr.write(`updated ${file.path}\n`);
}

/** Runs until interrupted; the signal determines the exit code. */
async function runAgain(paths: readonly string[], flags: TestFlags): Promise<number> {
  for (;;) {
    // A change while the cases run counts, too.
    const sinceMs = Date.now() - TICK_MS;
    const { reads } = await runOnce(paths, flags);
    process.stderr.write(`\nwatching ${reads.length} files, press Ctrl-C to stop\n`);
    await changeSince([...paths, ...reads], sinceMs);
  }
}

/** Times of files are those of the last tick of the system. */
const TICK_MS = 10;
const POLL_MS = 100;

/** Resolves after a change of these files, or of what is in their folders, once nothing more changes: editors write, rename and touch. */
export async function changeSince(paths: readonly string[], sinceMs: number): Promise<void> {
  const watched = [...new Set(paths.map((path) => resolve(path)).flatMap((path) => [dirname(path), path]))];
  const lastChange = async (): Promise<number> => {
    const times = watched.map((path) => stat(path).then(({ ctimeMs }) => ctimeMs));
    return Math.max(
      ...(await Promise.allSettled(times)).map((one) => (one.status === 'fulfilled' ? one.value : 0)),
    );
  };
  for (let [known, last] = [sinceMs, await lastChange()]; last < sinceMs || last !== known;) {
    await sleep(POLL_MS);
    [known, last] = [last, await lastChange()];
  }
}
