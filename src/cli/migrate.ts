/** `migrate`: what to change so that this program syncs what vCluster syncs today, and what will differ. */

import { basename } from 'node:path';
import { type Command, Option } from 'commander';
import { isAlias, isMap, isScalar, parseDocument, stringify } from 'yaml';
import { ConfigError, type ConfigProblem } from '../base/errors.ts';
import { isJsonObject, jsonEquals, type JsonObject, type JsonValue } from '../base/json.ts';
import { unifiedHunks } from '../base/unified-diff.ts';
import { readDocument } from '../config/document.ts';
import { PATCHED_KEYS } from '../config/layers.ts';
import { readConfigText } from '../config/load.ts';
import { parseConfig, type ParseResult } from '../config/parse.ts';
import { patchesIn } from '../config/patch-rules.ts';
import {
  mergeConfig,
  vclusterDefaults,
  withoutEmptyKeys,
  valuesFindings,
  withoutHeading,
} from '../config/vcluster-values.ts';
import { Fields } from '../config/finding.ts';
import { syntaxProblems } from '../config/source-file.ts';
import type { Config } from '../config/config.ts';
import { syncedByVcluster } from '../config/warnings.ts';
import { keyOf } from '../kube/object.ts';
import type { ObjectPlan } from '../syncer/rehearsal.ts';
import { addConfigOptions, CONFIG_CHECKS, loaderInput } from './config-options.ts';
import { addVclusterOption, hostedValues } from './live/hosted.ts';
import { planSnapshot } from './live/session.ts';
import { connect, readSnapshot } from './live/snapshot.ts';
import { describeFailure, guarded, reportProblems } from './output/error-report.ts';
import { formatTable } from './output/listing.ts';

const FILE_FLAG = 'vclusterConfig';
const CONNECTION_FLAGS = ['virtual.kubeconfig', 'virtual.context', 'host.kubeconfig', 'host.context'];
const KINDS = { endpoints: 'Endpoints', endpointSlices: 'EndpointSlices' } as const;
const US = 'endpoint-syncer';
const VCLUSTER = 'vCluster';
const NOBODY = 'nobody';

export function define(command: Command, exit: (code: number) => void): void {
  command.addOption(
    new Option('-o, --output <format>', "text, json, or helm: values of this program's chart")
      .choices(['text', 'json', 'helm'])
      .default('text'),
  );
  addConfigOptions(command, [FILE_FLAG, 'name', 'host.namespace', ...CONNECTION_FLAGS]);
  addVclusterOption(command);
  command.action(async (options: { output: string }) =>
    exit(await guarded(() => migrate(command, options.output), 2)),
  );
}

async function migrate(command: Command, output: string): Promise<number> {
  const { flags, env } = loaderInput(command);
  const hosted = await hostedValues(command);
  const given = flags[FILE_FLAG] ?? '';
  if (given === '' && hosted === undefined) {
    process.stderr.write(
      "error: --vcluster-config is required, the values file of vCluster's release, or --vcluster, its name\n",
    );
    return 2;
  }
  const text = hosted?.text ?? withoutHeading(await readConfigText(given));
  const file = hosted !== undefined || given === '-' ? 'vcluster.yaml' : given;
  const unreadable = problemsOf(file, text);
  if (unreadable.length > 0) throw new ConfigError(unreadable);
  const name = hosted?.name ?? flags['name'] ?? env['VCLUSTER_NAME'] ?? '';
  const hostNamespace = hosted?.namespace ?? flags['host.namespace'] ?? '';
  const migration = plan({ text, file, name, hostNamespace });
  const parsed = (values: string, ours = migration.config): ParseResult =>
    parseConfig(
      { text: ours, file: 'config.yaml' },
      { env: {}, flags: { ...flags, [FILE_FLAG]: '' }, checks: CONFIG_CHECKS },
      { text: values, file },
    );
  const { config } = parsed(migration.values ?? text);
  // Positions are those in the file as it is.
  const taken = PATCHED_KEYS.map((key) => `sync.toHost.${key}.enabled`);
  // With what is synced left to the values, whose errors our own settings would hide.
  const unsynced = stringify({ endpointSyncer: migration.endpointSyncer });
  const problems = parsed(text, unsynced).problems.filter(({ path }) => !taken.includes(path));
  // Such as `endpoints: true`: these are no values of vCluster, whatever is made of them.
  const misshapen = problems.filter(
    ({ path, severity }) => severity === 'error' && ABOVE_ENABLED.includes(path),
  );
  if (misshapen.length > 0) throw new ConfigError(misshapen);
  const isLive = hosted === undefined && CONNECTION_FLAGS.some((flag) => flags[flag] !== undefined);
  const objects = isLive && config !== undefined ? await objectsOf(config) : [];
  const lost = problems.filter(({ severity }) => severity === 'error');
  const rows = rowsOf(migration, lost);
  if (output === 'json')
    process.stdout.write(`${JSON.stringify(asJson(migration, rows, objects), null, 2)}\n`);
  else if (output === 'helm') process.stdout.write(helmValues(migration));
  else process.stdout.write(asText(migration, rows, isLive ? objects : undefined));
  reportProblems(problems);
  if (migration.values === undefined)
    process.stderr.write(`error: ${file}: ${BY_HAND}: change it by hand, as the output says\n`);
  if (name === '')
    process.stderr.write('note: --name sets the name of the virtual cluster, that of its release\n');
  const isIncomplete = lost.length > 0 || migration.values === undefined;
  return isIncomplete || objects.some(({ isLost }) => isLost) ? 1 : 0;
}

const ABOVE_ENABLED = ['sync', 'sync.toHost', ...PATCHED_KEYS.map((key) => `sync.toHost.${key}`)];

const BY_HAND =
  'no edit leaves everything else as it is, because of an anchor, an alias, a merge key or a second document';

/** Why these are not values of vCluster that can be edited. */
function problemsOf(file: string, text: string): readonly ConfigProblem[] {
  const document = readDocument(file, text);
  const syntax = syntaxProblems(document).filter(({ severity }) => severity === 'error');
  if (syntax.length > 0) return syntax;
  const findings = valuesFindings(withoutEmptyKeys(document.value), vclusterDefaults());
  return findings
    .filter(({ severity }) => severity === 'error')
    .map((finding) => document.problemOf(finding));
}

interface MigrationInput {
  /** vCluster's values. */
  readonly text: string;
  readonly file: string;
  /** '' where it is not known. */
  readonly name: string;
  readonly hostNamespace: string;
}

interface Migration extends MigrationInput {
  /** Name of the virtual cluster, or what stands for it. */
  readonly release: string;
  /** Our configuration file, and its section of that name. */
  readonly config: string;
  readonly endpointSyncer: JsonObject;
  /** vCluster's values without what this program takes over; undefined: no edit leaves everything else as it is. */
  readonly values: string | undefined;
  /** vCluster's values as they are, without empty keys. */
  readonly theirs: JsonObject;
  readonly synced: readonly string[];
}

/** Pure: what the files become. */
function plan(input: MigrationInput): Migration {
  const { text, file, name, hostNamespace } = input;
  const theirs = withoutEmptyKeys(readDocument(file, text).value);
  const synced = syncedByVcluster(theirs);
  const release = name === '' ? 'my-vcluster' : name;
  const endpointSyncer = {
    name: release,
    // vCluster's file stays the source of the patches, the namespaces and `context.vcluster.config`.
    vclusterConfig: basename(file),
    virtual: { secret: `vc-${release}` },
    ...(hostNamespace === '' ? {} : { host: { namespace: hostNamespace } }),
  };
  const toHost = Object.fromEntries(PATCHED_KEYS.map((key) => [key, { enabled: synced.includes(key) }]));
  const config = stringify({ sync: { toHost }, endpointSyncer });
  const values = editedByMeaning(text, synced);
  return { ...input, release, config, endpointSyncer, values, theirs, synced };
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
  const edited =
    Object.keys(readDocument('', text).value).length === 0
      ? text.replace(/^(?:null|~|\{\})$/mu, '') + stringify(change)
      : kinds.toReversed().reduce(withDisabled, text);
  return jsonEquals(meaning(edited), mergeConfig(before, change)) ? edited : undefined;
}

function disabling(kinds: readonly string[]): JsonObject {
  if (kinds.length === 0) return {};
  return { sync: { toHost: Object.fromEntries(kinds.map((kind) => [kind, { enabled: false }])) } };
}

/** The values with the sync of one kind disabled. Everything else stays as it is written, comments and style included. */
function withDisabled(text: string, kind: string): string {
  const path = ['sync', 'toHost', kind, 'enabled'];
  const document = parseDocument(text);
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
    else if (map === undefined || (path.length > depth + 1 && document.hasIn(path.slice(0, depth + 1))))
      return text;
    document.setIn(path, false);
    return document.toString({ lineWidth: 0 });
  }
  const [at] = first.range;
  const indent = ' '.repeat(at - (text.lastIndexOf('\n', at - 1) + 1));
  const flow = `${missing.slice(0, -1).reduceRight((inner, key) => `${key}: {${inner}}`, 'enabled: false')}, `;
  const block = missing.map((key, level) => `${'  '.repeat(level)}${key}:`).join(`\n${indent}`);
  return replace([at, at], map.flow === true ? flow : `${block} false\n${indent}`);
}

/** One line of the table. */
interface Row extends JsonObject {
  what: string;
  today: string;
  afterwards: string;
  differs: string;
  setting: string;
}

/** `lost`: errors of the new configuration, for want of which this program would not start. */
function rowsOf({ theirs, synced, file }: Migration, lost: readonly ConfigProblem[]): Row[] {
  const fields = new Fields(theirs);
  const rows = PATCHED_KEYS.flatMap((key): Row[] => {
    const [today, afterwards] = synced.includes(key) ? [VCLUSTER, US] : [NOBODY, NOBODY];
    if (today === NOBODY) return [{ what: KINDS[key], today, afterwards, differs: '', setting: '' }];
    const list = `sync.toHost.${key}.patches`;
    const patches = patchesIn(fields.value(list)).map(({ path }, index): Row => {
      const problem = lost.find((one) => one.path.startsWith(`${list}[${index}]`));
      const what = `${list}[${index}] ${path}`;
      return problem === undefined
        ? { what, today, afterwards, ...PATCH_DIFFERENCE }
        : { what, today, afterwards: NOBODY, differs: problem.message, setting: `correct it in ${file}` };
    });
    const [first = { differs: '', setting: '' }, ...others] = DIFFERENCES[key];
    return [
      { what: KINDS[key], today, afterwards, ...first },
      ...others.map((difference) => ({ what: '', today: '', afterwards: '', ...difference })),
      ...patches,
    ];
  });
  const others = { today: VCLUSTER, afterwards: VCLUSTER, differs: '', setting: '' };
  return [...rows, { what: 'Services, Pods and all other kinds', ...others }];
}

interface Difference extends JsonObject {
  differs: string;
  setting: string;
}

const DIFFERENCES: Readonly<Record<keyof typeof KINDS, readonly Difference[]>> = {
  endpoints: [
    { differs: 'those without a Service are synced too', setting: 'endpointSyncer.requireService: true' },
    {
      differs: 'a copy that is deleted on the host is created again',
      setting: 'endpointSyncer.onHostDelete: deleteVirtual',
    },
  ],
  endpointSlices: [
    { differs: "slices that controllers derive are left to the host's controllers", setting: '-' },
  ],
};

const PATCH_DIFFERENCE: Difference = {
  differs: 'a failing patch is reported and stops its object; a missing key is not patched',
  setting: 'endpointSyncer.patches: {onError: path, missingPaths: create}',
};

/** One virtual object, and what happens to its copy. */
interface MigratedObject extends JsonObject {
  kind: string;
  virtual: string;
  host: string;
  afterwards: string;
  /** It has a copy today that this program would not update. */
  isLost: boolean;
}

/** The objects of both clusters, if this program synced them now. */
async function objectsOf(config: Config): Promise<MigratedObject[]> {
  await using connection = await connect(config);
  const { objects } = await planSnapshot(await readSnapshot(connection, { isOwnerNeeded: false }));
  return objects.flatMap((object) => migratedObject(object));
}

function migratedObject({ kind, key, seen, decision, error, changes }: ObjectPlan): MigratedObject[] {
  if (seen.virtual === undefined) return [];
  const { target, host } = seen;
  const isCopied = host !== undefined;
  const isRefused = decision.kind === 'refuse' || error !== undefined;
  const afterwards =
    error !== undefined
      ? `fails: ${describeFailure(error).split('\n')[0] ?? ''}`
      : decision.kind === 'refuse'
        ? `refused: ${decision.reason}`
        : decision.kind === 'ignore'
          ? `not synced: ${decision.reason}`
          : `${US}, ${changes.length === 0 ? 'unchanged' : decision.kind}`;
  return [
    {
      kind: kind.resource.kind,
      virtual: key,
      host: target === undefined ? '-' : keyOf(target),
      afterwards,
      isLost: isCopied && isRefused,
    },
  ];
}

/** What the two sections have to mean, with aliases and merge keys expanded. */
function byHand({ theirs, synced }: Migration): string {
  const changed = new Fields(mergeConfig(theirs, disabling(synced)));
  const toHost = Object.fromEntries(synced.map((kind) => [kind, changed.object(`sync.toHost.${kind}`)]));
  const anchors = 'Where other places use an anchor that stands here, they get what it stands for.';
  return `By hand: ${BY_HAND}. Write, in place of what is there:\n${stringify({ sync: { toHost } })}${anchors}\n`;
}

/**
 * Values of this program's chart. It derives rights from its values and cannot read vCluster's, so those of vCluster's that decide about rights stand
 * in them too.
 */
function helmValues({ theirs, synced, release, hostNamespace, file }: Migration): string {
  const fields = new Fields(theirs);
  const toHost = fields.object('sync.toHost');
  const others = Object.keys(toHost).flatMap((key): [string, JsonValue][] => {
    if (PATCHED_KEYS.some((patched) => patched === key)) return [];
    if (key === 'namespaces') return [[key, toHost[key] ?? null]];
    if (key === 'customResources') return [[key, onlyEnabled(fields.object('sync.toHost.customResources'))]];
    return Object.entries(onlyEnabled({ [key]: toHost[key] ?? null }));
  });
  const patched = PATCHED_KEYS.map((key): [string, JsonValue] => {
    const patches = fields.value(`sync.toHost.${key}.patches`);
    const isPatched = synced.includes(key) && Array.isArray(patches) && patches.length > 0;
    return [key, { enabled: synced.includes(key), ...(isPatched ? { patches } : {}) }];
  });
  const isLegacy = fields.isOn('experimental.multiNamespaceMode.enabled');
  const values = {
    vclusterConfigSecret: `vc-config-${release}`,
    config: {
      sync: { toHost: Object.fromEntries([...patched, ...others]) },
      ...(isLegacy ? { experimental: { multiNamespaceMode: { enabled: true } } } : {}),
      endpointSyncer: {
        name: release,
        virtual: { secret: `vc-${release}` },
        ...(hostNamespace === '' ? {} : { host: { namespace: hostNamespace } }),
      },
    },
  };
  return `# Values of the chart of endpoint-syncer, from ${basename(file)}. vCluster's own values change too: see the output without -o helm.
${stringify(values, { aliasDuplicateObjects: false, lineWidth: 0 })}`;
}

/** Of each section that has one, the switch. */
function onlyEnabled(sections: JsonObject): JsonObject {
  const switches = Object.entries(sections).flatMap(([key, section]): [string, JsonValue][] => {
    const enabled = isJsonObject(section) ? section['enabled'] : undefined;
    return enabled === undefined ? [] : [[key, { enabled }]];
  });
  return Object.fromEntries(switches);
}

function asText(
  migration: Migration,
  rows: readonly Row[],
  objects: readonly MigratedObject[] | undefined,
): string {
  const { config, values, text, file } = migration;
  const hunks = values === undefined ? '' : unifiedHunks(text, values);
  const diff = hunks === '' ? 'Nothing changes.\n' : `--- ${file}\n+++ ${file}\n${hunks}`;
  const change = values === undefined ? byHand(migration) : diff;
  const table = formatTable([
    ['WHAT', 'TODAY', 'AFTERWARDS', 'DIFFERS', 'SETTING FOR THE SAME'],
    ...rows.map(({ what, today, afterwards, differs, setting }) => [
      what,
      today,
      afterwards,
      differs,
      setting,
    ]),
  ]);
  const sections = [
    `# config.yaml, beside ${basename(file)}\n${config}`,
    `# The change of ${basename(file)}\n${change}`,
    `# Who syncs what\n${table}`,
  ];
  if (objects !== undefined) sections.push(`# The objects\n${objectTable(objects)}`);
  return sections.join('\n');
}

function objectTable(objects: readonly MigratedObject[]): string {
  if (objects.length === 0) return 'There are none.\n';
  return formatTable([
    ['KIND', 'VIRTUAL', 'HOST', 'AFTERWARDS'],
    ...objects.map(({ kind, virtual, host, afterwards }) => [kind, virtual, host, afterwards]),
  ]);
}

function asJson(
  { config, values }: Migration,
  rows: readonly Row[],
  objects: readonly MigratedObject[],
): JsonObject {
  const parsed: unknown = parseDocument(config).toJS();
  return {
    config: isJsonObject(parsed) ? parsed : {},
    values: values ?? null,
    table: [...rows],
    objects: [...objects],
  };
}
