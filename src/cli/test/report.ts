/** The report of a test run: a table with the differences below it, JSON, or JUnit XML. */

import { stringify } from 'yaml';
import type { JsonValue } from '../../base/json.ts';
import { formatTable } from '../output/listing.ts';
import { type Paint, paintFor } from '../output/terminal.ts';
import type { Mismatch } from './run-case.ts';
import { missed, type PatchCoverage } from './coverage.ts';

export interface CaseResult {
  readonly file: string;
  readonly name: string;
  readonly mismatches: readonly Mismatch[];
  readonly durationMs: number;
}

export interface FileCoverage {
  /** Path of the configuration. */
  readonly config: string;
  readonly patches: readonly PatchCoverage[];
}

export interface TestReport {
  readonly cases: readonly CaseResult[];
  /** Undefined: not requested. */
  readonly coverage: readonly FileCoverage[] | undefined;
}

export type TestFormat = 'table' | 'json' | 'junit';

export function formatReport(report: TestReport, format: TestFormat, paint: Paint): string {
  switch (format) {
    case 'table':
      return asTable(report, paint);
    case 'json':
      return `${JSON.stringify(asJson(report), null, 2)}\n`;
    case 'junit':
      return asJunit(report);
  }
}

function isPassed({ mismatches }: CaseResult): boolean {
  return mismatches.length === 0;
}

function asTable({ cases, coverage }: TestReport, paint: Paint): string {
  const rows = cases.map(({ file, name, durationMs, mismatches }) => [
    file,
    name,
    `${durationMs.toFixed(0)}ms`,
    mismatches.length === 0 ? 'pass' : 'FAIL',
  ]);
  const table = formatTable([['FILE', 'CASE', 'TIME', 'RESULT'], ...rows])
    .replaceAll(/ pass$/gmu, ` ${paint.green('pass')}`)
    .replaceAll(/ FAIL$/gmu, ` ${paint.red('FAIL')}`);
  const failed = cases.filter((one) => !isPassed(one));
  const details = failed.map(
    ({ file, name, mismatches }) =>
      `\n${paint.red('FAIL')} ${file}: ${name}\n${mismatches.map((one) => formatMismatch(one, paint)).join('')}`,
  );
  const summary = `\n${cases.length - failed.length} of ${cases.length} cases passed\n`;
  return `${table}${details.join('')}${summary}${coverage === undefined ? '' : coverageText(coverage)}`;
}

/** Always shows expected and actual values, so that no second run is needed to see them. */
function formatMismatch({ subject, path, expected, actual }: Mismatch, paint: Paint): string {
  const place = path === '' ? subject : `${subject}: ${path}`;
  return `  ${place}\n${side('- expected: ', expected, paint.red)}${side('+ actual:   ', actual, paint.green)}`;
}

function side(label: string, value: JsonValue | undefined, paint: (text: string) => string): string {
  if (value === undefined) return `    ${paint(`${label}nothing`)}\n`;
  if (typeof value !== 'object' || value === null) return `    ${paint(label + JSON.stringify(value))}\n`;
  const lines = stringify(value, { lineWidth: 0 }).trimEnd().split('\n');
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
    patches.flatMap((patch) => missed(patch, isKindNamed).map((line) => `  ${config}: ${line}\n`)),
  );
  const kindColumn = isKindNamed ? ['KIND'] : [];
  const heading = ['CONFIG', ...kindColumn, 'ENTRY', 'TO HOST', 'TO VIRTUAL', 'BRANCHES', 'PATH'];
  const verdict =
    gaps.length === 0 ? 'every entry and branch was exercised\n' : `not exercised:\n${gaps.join('')}`;
  return `\n${formatTable([heading, ...rows])}${verdict}`;
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
      mismatches: one.mismatches.map(({ subject, path, expected, actual }) => ({
        subject,
        path,
        expected: expected ?? null,
        actual: actual ?? null,
      })),
    })),
    ...(coverage === undefined
      ? {}
      : {
          coverage: coverage.map(({ config, patches }) => ({
            config,
            patches,
            missed: patches.flatMap((patch) => missed(patch, hasSeveralKinds(coverage))),
          })),
        }),
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
