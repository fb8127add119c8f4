/** `test`: declarative cases for patches, run offline. */

import { plainText, printableJson } from '../../base/excerpt.ts';
import { formatOption, formatTable } from '../output/listing.ts';
import { writeYaml } from '../../base/yaml/write.ts';
import type { JsonValue } from '../../base/json.ts';
import { stat, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { ConfigError } from '../../base/errors.ts';
import { loadConfig } from '../config/load.ts';
import { withHostNamespace } from '../config-options.ts';
import {
  type ExitWith,
  reportProblems,
  type Paint,
  paintFor,
  showProgress,
  tell,
} from '../output/terminal.ts';
import { apiDefaults } from '../offline/api-defaults.ts';
import { FileSync } from '../../syncer/rehearsal/files.ts';
import { runCase, type CaseRun, type Mismatch } from './run-case.ts';
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
      tell(`error: no *endpoint-syncer-test.yaml at or below ${paths.join(', ')}`);
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
    const { config: given } = await loadConfig({ file: config, env: {}, flags: {} });
    const loaded = withHostNamespace(given);
    const isCovered = flags.coverage === true;
    await using sync = new FileSync({ admit: apiDefaults(), isCovered });
    for (const file of of) {
      const runs: CaseRun[] = [];
      for (const test of file.cases) {
        const startMs = monotonicMs();
        const run = await runCase(test, loaded, sync);
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
    if (isCovered) coverage.push({ config, patches: await sync.coverage(loaded) });
  }
  const report = { cases: results, coverage: flags.coverage === true ? coverage : undefined };
  progress[Symbol.dispose]();
  process.stdout.write(formatReport(report, flags.output, paintFor(process.stdout)));
  for (const note of notes) tell(`note: ${note}`);
  return results.some(({ mismatches }) => mismatches.length > 0) ? 1 : 0;
}

const IN_NO_FILE =
  'is referenced and in no file of the case, so nothing is imported: add it, or expect the Event ReferenceNotFound';

async function update(file: TestFile, runs: readonly CaseRun[]): Promise<void> {
  const text = updatedText(file, runs);
  if (text === file.text) return;
  await writeFile(file.path, text);
  tell(`updated ${file.path}`);
}

/** Runs until interrupted; the signal determines the exit code. */
async function runAgain(paths: readonly string[], flags: TestFlags): Promise<number> {
  for (;;) {
    // A change while the cases run counts, too.
    const sinceMs = Date.now() - TICK_MS;
    const { reads } = await runOnce(paths, flags);
    tell(`\nwatching ${reads.length} files, press Ctrl-C to stop`);
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

// The report of a run: a table with the differences below it, JSON, or JUnit XML.

interface CaseResult {
  readonly file: string;
  readonly name: string;
  readonly mismatches: readonly Mismatch[];
  readonly durationMs: number;
}

type PatchCoverage = Awaited<ReturnType<FileSync['coverage']>>[number];

interface FileCoverage {
  readonly config: string;
  readonly patches: readonly PatchCoverage[];
}

interface TestReport {
  readonly cases: readonly CaseResult[];
  readonly coverage: readonly FileCoverage[] | undefined;
}

type TestFormat = 'table' | 'json' | 'junit';

function formatReport(report: TestReport, format: TestFormat, paint: Paint): string {
  switch (format) {
    case 'table':
      return asTable(report, paint);
    case 'json':
      return `${printableJson(asJson(report))}\n`;
    case 'junit':
      return asJunit(report);
  }
}

function isPassed({ mismatches }: CaseResult): boolean {
  return mismatches.length === 0;
}

function asTable({ cases, coverage }: TestReport, paint: Paint): string {
  const rows = cases.map((one) => [
    one.file,
    one.name,
    `${one.durationMs.toFixed(0)}ms`,
    isPassed(one) ? 'pass' : 'FAIL',
  ]);
  const table = formatTable([['FILE', 'CASE', 'TIME', 'RESULT'], ...rows])
    .replaceAll(/ pass$/gmu, ` ${paint.green('pass')}`)
    .replaceAll(/ FAIL$/gmu, ` ${paint.red('FAIL')}`);
  const failed = cases.filter((one) => !isPassed(one));
  const details = failed.map(
    ({ file, name, mismatches }) =>
      `\n${paint.red('FAIL')} ${plainText(`${file}: ${name}`)}\n${mismatches.map((one) => formatMismatch(one, paint)).join('')}`,
  );
  const summary = `\n${cases.length - failed.length} of ${cases.length} cases passed\n`;
  return `${table}${details.join('')}${summary}${coverage === undefined ? '' : coverageText(coverage)}`;
}

/** Always shows expected and actual values, so that no second run is needed to see them. */
function formatMismatch({ subject, path, expected, actual }: Mismatch, paint: Paint): string {
  const place = path === '' ? subject : `${subject}: ${path}`;
  return `  ${plainText(place)}\n${side('- expected: ', expected, paint.red)}${side('+ actual:   ', actual, paint.green)}`;
}

function side(label: string, value: JsonValue | undefined, paint: (text: string) => string): string {
  if (value === undefined) return `    ${paint(`${label}nothing`)}\n`;
  if (typeof value !== 'object' || value === null) return `    ${paint(label + printableJson(value, 0))}\n`;
  const lines = writeYaml(value).trimEnd().split('\n');
  const text = lines.map((line) => `    ${paint(`${label.charAt(0)}   ${line}`)}\n`).join('');
  return `    ${paint(label.trimEnd())}\n${text}`;
}

function coverageText(coverage: readonly FileCoverage[]): string {
  const isKindNamed = hasSeveralKinds(coverage);
  const rows = coverage.flatMap(({ config, patches }) =>
    patches.map(({ kind, index, path, directions, filterBranches }) => {
      const matchesOf = (wanted: string): string =>
        String(directions.find(({ direction }) => direction === wanted)?.matches ?? '-');
      const branches = [...filterBranches, ...directions.flatMap((one) => one.branches)];
      const taken = branches.filter(({ isTaken }) => isTaken).length;
      return [
        config,
        ...(isKindNamed ? [kind] : []),
        `patches[${index}]`,
        matchesOf('toHost'),
        matchesOf('toVirtual'),
        branches.length === 0 ? '-' : `${taken}/${branches.length}`,
        path === '' ? '(the whole object)' : path,
      ];
    }),
  );
  const gaps = coverage.flatMap(({ config, patches }) =>
    patches.flatMap((patch) =>
      missed(patch, isKindNamed).map((line) => `  ${plainText(`${config}: ${line}`)}\n`),
    ),
  );
  const kindColumn = isKindNamed ? ['KIND'] : [];
  const heading = ['CONFIG', ...kindColumn, 'ENTRY', 'TO HOST', 'TO VIRTUAL', 'BRANCHES', 'PATH'];
  const verdict =
    gaps.length === 0 ? 'every entry and branch was exercised\n' : `not exercised:\n${gaps.join('')}`;
  return `\n${formatTable([heading, ...rows])}${verdict}`;
}

/** One line for each patch, direction and branch that no case covers. `isKindNamed`: more than one kind has patches, so an index alone is ambiguous. */
function missed(
  { kind, index, path, directions, filterBranches }: PatchCoverage,
  isKindNamed: boolean,
): string[] {
  const entry = `${isKindNamed ? `${kind} ` : ''}patches[${index}]`;
  const name = `${entry} ${path === '' ? '(the whole object)' : path}`;
  if (directions.every(({ matches }) => matches === 0)) return [`${name}: never matched`];
  const ofFilters = filterBranches
    .filter(({ isTaken }) => !isTaken)
    .map(
      ({ line, column, text }) => `${name}: branch of the filter never taken at ${line}:${column}: ${text}`,
    );
  const ofDirections = directions.flatMap(({ direction, matches, branches }) => {
    const way = direction === 'toHost' ? 'virtual to host' : 'host to virtual';
    if (matches === 0) return [`${name}: never matched ${way}`];
    return branches
      .filter(({ isTaken }) => !isTaken)
      .map(({ line, column, text }) => `${name}: ${way}, branch never taken at ${line}:${column}: ${text}`);
  });
  return [...ofFilters, ...ofDirections];
}

/** The patches of all configurations are listed together, so one of them with several kinds is enough. */
function hasSeveralKinds(coverage: readonly FileCoverage[]): boolean {
  return new Set(coverage.flatMap(({ patches }) => patches.map(({ kind }) => kind))).size > 1;
}

function asJson({ cases, coverage }: TestReport): object {
  const failed = cases.filter((one) => !isPassed(one)).length;
  return {
    passed: cases.length - failed,
    failed,
    cases: cases.map((one) => ({
      file: one.file,
      name: one.name,
      result: isPassed(one) ? 'pass' : 'fail',
      durationMs: Math.round(one.durationMs),
      mismatches: one.mismatches.map(({ subject, path, expected = null, actual = null }) => ({
        subject,
        path,
        expected,
        actual,
      })),
    })),
    coverage: coverage?.map(({ config, patches }) => ({
      config,
      patches,
      missed: patches.flatMap((patch) => missed(patch, hasSeveralKinds(coverage))),
    })),
  };
}

function asJunit({ cases }: TestReport): string {
  const files = Map.groupBy(cases, ({ file }) => file);
  const suites = [...files].map(([file, of]) => {
    const failures = of.filter((one) => !isPassed(one)).length;
    const tests = of.map(junitCase).join('');
    const timeS = of.reduce((sum, { durationMs }) => sum + durationMs, 0) / 1000;
    return `  <testsuite name="${xml(file)}" tests="${of.length}" failures="${failures}" errors="0" time="${timeS.toFixed(3)}">\n${tests}  </testsuite>\n`;
  });
  const failures = cases.filter((one) => !isPassed(one)).length;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="endpoint-syncer test" tests="${cases.length}" failures="${failures}" errors="0">\n${suites.join('')}</testsuites>\n`;
}

function junitCase(one: CaseResult): string {
  const head = `    <testcase classname="${xml(one.file)}" name="${xml(one.name)}" time="${(one.durationMs / 1000).toFixed(3)}"`;
  if (isPassed(one)) return `${head}/>\n`;
  const { subject = '', path = '' } = one.mismatches[0] ?? {};
  const text = one.mismatches.map((mismatch) => formatMismatch(mismatch, paintFor({}))).join('');
  return `${head}>\n      <failure message="${xml(`${subject} ${path}`.trim())}">${xml(text)}</failure>\n    </testcase>\n`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** Characters that XML 1.0 cannot hold at all become U+FFFD. */
function xml(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\P{Cc}\t\n\r]/gu, '\u{fffd}')
    .replaceAll(/[&<>"]/gu, (character) => ENTITIES[character] ?? character);
}
