/** What taking over vCluster's sync means for its values: the files, the table of who syncs what, and what would be lost. Pure. */

import { basename } from 'node:path';
import { isAlias, isMap, isScalar } from 'yaml';
import { ConfigError, type ConfigProblem } from '../base/errors.ts';
import { jsonEquals, type JsonObject } from '../base/json.ts';
import { editableYaml, writeYaml } from '../base/yaml/write.ts';
import type { Config } from '../syncer/config/config.ts';
import type { ConfigFlags } from './config/command-line.ts';
import { readDocument } from '../config-file/document.ts';
import type { ConfigText } from '../shared-config/layers.ts';
import { parseConfig, type ParseResult } from './config/parse.ts';
import { syntaxProblems } from '../config-file/source-file.ts';
import { takeoverOf, type Takeover } from '../syncer/config/values-in-force.ts';
import { mergeConfig, withoutEmptyKeys } from '../config-file/merge.ts';
import { valuesFindings } from '../shared-config/vcluster-values.ts';

export const US = 'endpoint-syncer';
const VCLUSTER = 'vCluster';
const NOT_SYNCED = 'not synced';
export const BY_HAND =
  'no edit leaves everything else as it is, because of an anchor, an alias, a merge key or a second document';

export interface MigrationInput {
  readonly text: string;
  readonly file: string;
  /** What vCluster runs with, by which everything is decided. Absent: `text`. */
  readonly inForce?: ConfigText | undefined;
  /** '' where it is not known. */
  readonly name: string;
  readonly hostNamespace: string;
  /** Win over both files. */
  readonly flags?: ConfigFlags;
}

export interface Migration extends MigrationInput, Takeover {
  /** Name of the virtual cluster, or what stands for it. */
  readonly release: string;
  /** Our configuration file, also as text. */
  readonly ours: JsonObject;
  readonly config: string;
  /** What is in use with both files; undefined if they have errors. */
  readonly effective: Config | undefined;
  /** vCluster's values without what this program takes over; undefined: no edit leaves everything else as it is. */
  readonly values: string | undefined;
  /** The keys of the kinds that vCluster syncs. */
  readonly synced: readonly string[];
  /** Of the values in force. */
  readonly problems: readonly ConfigProblem[];
  /** The errors among them, for want of which this program would not start. */
  readonly lost: readonly ConfigProblem[];
}

/** Throws `ConfigError` for text that is not vCluster's values. */
export function planMigration(input: MigrationInput): Migration {
  const { text, file, inForce, name, hostNamespace, flags = {} } = input;
  const unreadable = problemsOf(file, text);
  if (unreadable.length > 0) throw new ConfigError(unreadable);
  const takeover = takeoverOf(
    readDocument(file, text).value,
    inForce && readDocument(inForce.file, inForce.text).value,
  );
  const keys = takeover.kinds.map(({ key }) => key);
  const synced = takeover.kinds.flatMap(({ key, isSynced }) => (isSynced ? [key] : []));
  const release = name === '' ? 'my-vcluster' : name;
  const endpointSyncer = {
    name: release,
    // vCluster's file stays the source of the patches, the namespaces and `context.vcluster.config`.
    vclusterConfig: basename(file),
    virtual: { secret: `vc-${release}` },
    ...(hostNamespace === '' ? {} : { host: { namespace: hostNamespace } }),
  };
  const parsed = (ours: JsonObject, values: ConfigText): ParseResult =>
    parseConfig(
      { text: writeYaml(ours), file: 'config.yaml' },
      { env: {}, flags: { ...flags, vclusterConfig: '' } },
      values,
    );
  // With what is synced left to the values, whose errors our own settings would hide. Positions are those in the file as it is.
  const problems = parsed({ endpointSyncer }, inForce ?? { text, file }).problems.filter(
    ({ path }) => !keys.some((key) => path === `sync.toHost.${key}.enabled`),
  );
  const lost = problems.filter(({ severity }) => severity === 'error');
  // Such as `endpoints: true`: these are no values of vCluster, whatever is made of them.
  const aboveEnabled = ['sync', 'sync.toHost', ...keys.map((key) => `sync.toHost.${key}`)];
  const misshapen = lost.filter(({ path }) => aboveEnabled.includes(path));
  if (misshapen.length > 0) throw new ConfigError(misshapen);
  const toHost = Object.fromEntries(takeover.kinds.map(({ key, isSynced }) => [key, { enabled: isSynced }]));
  const ours = { sync: { toHost }, endpointSyncer };
  const values = editedByMeaning(text, synced);
  const { config: effective } = parsed(ours, { text: values ?? text, file });
  const config = writeYaml(ours);
  return { ...input, ...takeover, release, ours, config, effective, values, synced, problems, lost };
}

function problemsOf(file: string, text: string): readonly ConfigProblem[] {
  const document = readDocument(file, text);
  const syntax = syntaxProblems(document).filter(({ severity }) => severity === 'error');
  if (syntax.length > 0) return syntax;
  const findings = valuesFindings(withoutEmptyKeys(document.value));
  return findings
    .map((finding) => document.problemOf(finding))
    .filter(({ severity }) => severity === 'error');
}

/** The text is read again: only the sync of these kinds may differ, whatever anchors, aliases and merge keys make of an edit. */
function editedByMeaning(text: string, kinds: readonly string[]): string | undefined {
  const meaning = (values: string): JsonObject | undefined => {
    const { isReadable, problems, value } = readDocument('', values);
    return isReadable && problems.length === 0 ? withoutEmptyKeys(value) : undefined;
  };
  const before = meaning(text);
  if (before === undefined) return undefined;
  const change = disabling(kinds);
  const written =
    Object.keys(readDocument('', text).value).length === 0
      ? text.replace(/^(?:null|~|\{\})$/mu, '').replace(/(?<=[^\n])$/u, '\n') + writeYaml(change)
      : kinds.toReversed().reduce(withDisabled, text);
  const edited = hasOnlyCrlf(text) ? written.replaceAll(/\r?\n/gu, '\r\n') : written;
  return jsonEquals(meaning(edited), mergeConfig(before, change)) ? edited : undefined;
}

/** Every line ends in CRLF, so an added one should too. */
function hasOnlyCrlf(text: string): boolean {
  return /\n/u.test(text) && !/(?<!\r)\n/u.test(text);
}

/** Values that keep the rights which vCluster's chart grants with the sync of these kinds only, and which vCluster needs without it, too. */
export function keptRights({ kinds }: Takeover): JsonObject {
  const extraRules = kinds.flatMap(({ isSynced, keptRules }) => (isSynced ? keptRules : []));
  return extraRules.length === 0 ? {} : { rbac: { role: { extraRules } } };
}

/** Values that switch vCluster's sync of these kinds off. */
export function disabling(kinds: readonly string[]): JsonObject {
  if (kinds.length === 0) return {};
  return { sync: { toHost: Object.fromEntries(kinds.map((kind) => [kind, { enabled: false }])) } };
}

/** The values with the sync of one kind disabled. Everything else stays as it is written, comments and style included. */
function withDisabled(text: string, kind: string): string {
  const path = ['sync', 'toHost', kind, 'enabled'];
  const document = editableYaml(text);
  const replace = ([start, end]: readonly [number, number], by: string): string =>
    text.slice(0, start) + by + text.slice(end);
  const written = document.getIn(path, true);
  if (isScalar(written) && written.range) {
    const [start, end] = written.range;
    // Without a value, the text ends at the colon.
    return replace([start, end], text[start - 1] === ':' ? ' false' : 'false');
  }
  if (path.some((_, at) => isAlias(document.getIn(path.slice(0, at + 1), true)))) return text;
  const depth = path.findLastIndex((_, at) =>
    isMap(at === 0 ? document.contents : document.getIn(path.slice(0, at), true)),
  );
  const map = depth === 0 ? document.contents : document.getIn(path.slice(0, depth), true);
  const missing = path.slice(depth);
  const first = isMap(map) && !map.has(missing[0]) ? map.items[0]?.key : undefined;
  if (!isMap(map) || !isScalar(first) || !first.range) {
    // A key without a value is no mapping that a key could be added to.
    const empty = path.findIndex((_, at) => document.getIn(path.slice(0, at + 1)) === null);
    if (empty >= 0) document.deleteIn(path.slice(0, empty + 1));
    document.setIn(path, false);
    return document.toString({ lineWidth: 0 });
  }
  const [at] = first.range;
  const indent = ' '.repeat(at - (text.lastIndexOf('\n', at - 1) + 1));
  const flow = `${missing.slice(0, -1).reduceRight((inner, key) => `${key}: {${inner}}`, 'enabled: false')}, `;
  const block = missing.map((key, level) => `${'  '.repeat(level)}${key}:`).join(`\n${indent}`);
  return replace([at, at], map.flow === true ? flow : `${block} false\n${indent}`);
}

export interface Row extends JsonObject {
  what: string;
  today: string;
  afterwards: string;
  differs: string;
  setting: string;
}

export function rowsOf({ kinds, file, lost }: Migration): Row[] {
  const rows = kinds.flatMap(({ key, objects: what, isSynced, ...kind }): Row[] => {
    const [today, afterwards] = isSynced ? [VCLUSTER, US] : [NOT_SYNCED, NOT_SYNCED];
    if (!isSynced) return [{ what, today, afterwards, differs: '', setting: '' }];
    const list = `sync.toHost.${key}.patches`;
    const patches = kind.patches.map(({ path }, index): Row => {
      const problem = lost.find((one) => one.path.startsWith(`${list}[${index}]`));
      const row = { what: `${list}[${index}] ${path}`, today };
      return problem === undefined
        ? { ...row, afterwards, ...PATCH_DIFFERENCE }
        : { ...row, afterwards: NOT_SYNCED, differs: problem.message, setting: `correct it in ${file}` };
    });
    const [first = { differs: '', setting: '' }, ...others] = kind.differences;
    return [
      { what, today, afterwards, ...first },
      ...others.map((difference) => ({ what: '', today: '', afterwards: '', ...difference })),
      ...patches,
    ];
  });
  const others = { today: VCLUSTER, afterwards: VCLUSTER, differs: '', setting: '' };
  return [...rows, { what: 'Services, Pods and all other kinds', ...others }];
}

type Difference = Pick<Row, 'differs' | 'setting'>;

const PATCH_DIFFERENCE: Difference = {
  differs:
    'a failing patch is reported, and what it would write stays as it is; a missing key is not patched',
  setting: 'endpointSyncer.patches.missingPaths: create',
};
