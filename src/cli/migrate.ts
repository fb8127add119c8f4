/** `migrate`: what to change so that this program syncs what vCluster syncs today, and what will differ. */

import { plainLines } from '../base/excerpt.ts';
import { basename } from 'node:path';
import { type Command, Option } from 'commander';
import { writeYaml } from '../base/yaml/write.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { unifiedHunks } from '../base/unified-diff.ts';
import { readConfigText } from './config/files.ts';
import { mergeConfig } from '../config-file/merge.ts';
import { withHeadingOf, withoutHeading } from '../shared-config/vcluster-values.ts';
import { Fields, formatPath } from '../config-file/finding.ts';
import type { Config } from '../syncer/config/config.ts';
import { keyOf } from '../kube/object.ts';
import { CONNECTION_FIELDS } from './config/flags.ts';
import { addConfigOptions, HELP_GROUP, loaderInput } from './config-options.ts';
import { addVclusterOption, eachVcluster, hostedValues } from './live/hosted.ts';
import { commandParts } from './live/command-parts.ts';
import { withLiveSync } from '../syncer/rehearsal/live-sync.ts';
import { MEMBER_VALUES, type HostedVcluster } from '../fleet/hosted/hosted-vcluster.ts';
import {
  BY_HAND,
  disabling,
  keptRights,
  planMigration,
  rowsOf,
  US,
  type Migration,
  type Row,
} from './migration.ts';
import { type ExitWith, reportProblems, usageError, tell } from './output/terminal.ts';
import { formatJson, formatTable, formatOption } from './output/listing.ts';
import { ConfigError, messageOf, TerminalError } from '../base/errors.ts';

const FILE_FLAG = 'vclusterConfig';

export function define(command: Command, exitWith: ExitWith): void {
  command.addOption(
    formatOption(['text', 'json', 'helm'], "text, json, or helm: values of this program's chart"),
  );
  addConfigOptions(command, [FILE_FLAG, 'name', 'host.namespace', ...CONNECTION_FIELDS]);
  addVclusterOption(command);
  const help =
    'print what every vCluster of the host, or with -n of one namespace, gains and loses as a member of a fleet';
  command.addOption(new Option('--fleet', help).helpGroup(HELP_GROUP));
  command.action(({ output, fleet }: { output: string; fleet?: boolean }) =>
    exitWith(() => (fleet ? migrateFleet(command, output) : migrate(command, output)), 2),
  );
}

async function migrate(command: Command, output: string): Promise<number> {
  const { flags, env } = loaderInput(command);
  const given = flags[FILE_FLAG] ?? '';
  const ownText = given === '' ? undefined : await readConfigText(given);
  const hosted = await hostedValues(command, ownText);
  const original = hosted?.text ?? ownText;
  if (original === undefined)
    return usageError(
      "--vcluster-config is required, the values file of vCluster's release, or --vcluster, its name",
    );
  const text = withoutHeading(original);
  const file = given === '' || given === '-' ? 'vcluster.yaml' : given;
  const name = hosted?.name ?? flags['name'] ?? env['VCLUSTER_NAME'] ?? '';
  const hostNamespace = hosted?.namespace ?? flags['host.namespace'] ?? '';
  const migration = planMigration({ text, file, inForce: hosted?.inForce, name, hostNamespace, flags });
  const { effective, problems, lost } = migration;
  // With --vcluster, the flags of the host say where the values are, and not that its objects are wanted.
  const asksForObjects = (field: string): boolean => hosted === undefined || field.startsWith('virtual.');
  const isLive = CONNECTION_FIELDS.some((field) => flags[field] !== undefined && asksForObjects(field));
  const objects = isLive && effective !== undefined ? await objectsOf(effective) : [];
  const rows = rowsOf(migration);
  if (output === 'json') process.stdout.write(formatJson(asJson(migration, rows, objects), 'json'));
  else if (output === 'helm') process.stdout.write(helmValues(migration));
  else {
    const text = asText(migration, rows, { original, objects: isLive ? objects : undefined });
    // Into a file, the change can be applied to values that hold such characters.
    process.stdout.write(process.stdout.isTTY ? plainLines(text) : text);
  }
  reportProblems(problems);
  if (migration.values === undefined)
    tell(`error: ${file}: ${BY_HAND}: change it by hand, as the output says`);
  for (const note of [...(hosted?.notes ?? []), ...differenceNotes(migration)]) tell(`note: ${note}`);
  if (name === '') tell('note: --name sets the name of the virtual cluster, that of its release');
  const isIncomplete = lost.length > 0 || migration.values === undefined;
  return isIncomplete || objects.some(({ isLost }) => isLost) ? 1 : 0;
}

function differenceNotes({ differences }: Migration): string[] {
  if (differences.length === 0) return [];
  const paths = differences.map(({ path }) => formatPath(path)).join(', ');
  return [`vCluster does not run with what its release says at ${paths}`];
}

interface MigratedObject extends JsonObject {
  kind: string;
  virtual: string;
  host: string;
  afterwards: string;
  /** It has a copy today that this program would not update. */
  isLost: boolean;
}

function objectsOf(config: Config): Promise<MigratedObject[]> {
  return withLiveSync(config, commandParts(), async (sync) =>
    (await sync.outcomes()).map(({ kind, virtual, host, whyNot, change, isLost }) => ({
      kind,
      virtual,
      host: host === undefined ? '-' : keyOf(host),
      afterwards: whyNot ?? `${US}, ${change}`,
      isLost,
    })),
  );
}

/** What the two sections have to mean, with aliases and merge keys expanded. */
function byHand({ theirs, synced }: Migration): string {
  const changed = new Fields(mergeConfig(theirs, disabling(synced)));
  const toHost = Object.fromEntries(synced.map((kind) => [kind, changed.object(`sync.toHost.${kind}`)]));
  const anchors = 'Where other places use an anchor that stands here, they get what it stands for.';
  return `By hand: ${BY_HAND}. Write, in place of what is there:\n${writeYaml({ sync: { toHost } })}${anchors}\n`;
}

/**
 * Values of this program's chart. It derives rights from its values and cannot read vCluster's, so those of vCluster's that decide about rights stand
 * in them too.
 */
function helmValues({ theirs, kinds, release, hostNamespace, file }: Migration): string {
  const fields = new Fields(theirs);
  const toHost = fields.object('sync.toHost');
  const others = Object.entries(toHost).flatMap(([key, value]): [string, JsonValue][] => {
    if (kinds.some((kind) => kind.key === key)) return [];
    if (key === 'namespaces') return [[key, value]];
    if (key === 'customResources') return [[key, onlyEnabled(fields.object('sync.toHost.customResources'))]];
    return Object.entries(onlyEnabled({ [key]: value }));
  });
  const patched = kinds.map(({ key, isSynced }): [string, JsonValue] => {
    const patches = fields.value(`sync.toHost.${key}.patches`);
    const isPatched = isSynced && Array.isArray(patches) && patches.length > 0;
    return [key, { enabled: isSynced, ...(isPatched ? { patches } : {}) }];
  });
  const isLegacy = fields.isOn('experimental.multiNamespaceMode.enabled');
  const host = hostNamespace === '' ? {} : { host: { namespace: hostNamespace } };
  const values = {
    vclusterConfigSecret: `vc-config-${release}`,
    config: {
      sync: { toHost: Object.fromEntries([...patched, ...others]) },
      ...(isLegacy ? { experimental: { multiNamespaceMode: { enabled: true } } } : {}),
      endpointSyncer: { name: release, virtual: { secret: `vc-${release}` }, ...host },
    },
  };
  return `# Values of the chart of endpoint-syncer, from ${basename(file)}. vCluster's own values change too: see the output without -o helm.
${writeYaml(values)}`;
}

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
  { original, objects }: { original: string; objects: readonly MigratedObject[] | undefined },
): string {
  const { config, values, file, differences } = migration;
  const hunks = values === undefined ? '' : unifiedHunks(original, withHeadingOf(original, values));
  const diff = hunks === '' ? 'Nothing changes.\n' : `--- ${file}\n+++ ${file}\n${hunks}`;
  const change = values === undefined ? byHand(migration) : diff;
  const columns = ['what', 'today', 'afterwards', 'differs', 'setting'] as const;
  const table = formatTable([
    ['WHAT', 'TODAY', 'AFTERWARDS', 'DIFFERS', 'SETTING FOR THE SAME'],
    ...rows.map((row) => columns.map((column) => row[column])),
  ]);
  const sections = [
    `# config.yaml, beside ${basename(file)}\n${config}`,
    `# The change of ${basename(file)}\n${change}`,
    `# Who syncs what\n${table}`,
  ];
  if (differences.length > 0)
    sections.push(`# Where vCluster runs with other values\n${differenceTable(migration)}`);
  const rights = keptRights(migration);
  if (Object.keys(rights).length > 0)
    sections.push(
      `# Add to vCluster's values, which keep this right only with the sync\n${writeYaml(rights)}`,
    );
  if (objects !== undefined) sections.push(`# The objects\n${objectTable(objects)}`);
  return sections.join('\n');
}

function differenceTable({ differences, file }: Migration): string {
  const shown = (value: JsonValue | undefined): string =>
    value === undefined ? 'not set' : writeYaml(value, { isFlow: true }).trim();
  const table = formatTable([
    ['VALUE', 'RELEASE', 'IN FORCE'],
    ...differences.map(({ path, released, inForce }) => [formatPath(path), shown(released), shown(inForce)]),
  ]);
  return `${table}An upgrade with ${basename(file)} alone ends this. To keep a value that is in force, set it there.\n`;
}

function objectTable(objects: readonly MigratedObject[]): string {
  if (objects.length === 0) return 'There are none.\n';
  return formatTable([
    ['KIND', 'VIRTUAL', 'HOST', 'AFTERWARDS'],
    ...objects.map(({ kind, virtual, host, afterwards }) => [kind, virtual, host, afterwards]),
  ]);
}

function asJson(
  { ours, values, differences }: Migration,
  rows: readonly Row[],
  objects: readonly MigratedObject[],
): JsonObject {
  const differing = differences.map(({ path, released, inForce }) => ({
    path: formatPath(path),
    release: released ?? null,
    inForce: inForce ?? null,
  }));
  return {
    config: ours,
    values: values ?? null,
    table: [...rows],
    objects: [...objects],
    differences: differing,
  };
}

// `migrate --fleet`: for every vCluster of a host, what a fleet would sync for it, what would be lost, and what to add to its values.

interface FleetRow extends JsonObject {
  namespace: string;
  name: string;
  today: 'fleet' | 'sidecar' | 'vCluster' | 'none' | 'unknown';
  /** What a fleet would sync, and does not yet. */
  gains: string[];
  /** What would not be synced. */
  loses: string[];
  /** Where vCluster runs with other values than its release says. */
  differs: string[];
  /** YAML that makes it a member; '' for a member, and for one that cannot be one. */
  values: string;
}

async function migrateFleet(command: Command, output: string): Promise<number> {
  if (output === 'helm') return usageError('--fleet has no values of a chart: leave out -o helm');
  const rows = await eachVcluster(command, rowOf);
  process.stdout.write(output === 'json' ? formatJson(rows, 'json') : fleetText(rows));
  return rows.some(({ loses }) => loses.length > 0) ? 1 : 0;
}

async function rowOf(vcluster: HostedVcluster, isLabelled: boolean): Promise<FleetRow> {
  const { namespace, name } = vcluster;
  const row = { namespace, name, gains: [], loses: [], differs: [], values: '' };
  if (isLabelled) return { ...row, today: 'fleet' };
  try {
    const { text, inForce } = await vcluster.values();
    const migration = planMigration({
      text,
      inForce,
      file: `values of ${name}`,
      name,
      hostNamespace: namespace,
    });
    const { kinds, synced, lost, differences } = migration;
    const sidecar = await vcluster.sidecar();
    return {
      ...row,
      today: sidecar !== undefined ? 'sidecar' : synced.length > 0 ? 'vCluster' : 'none',
      gains: kinds.flatMap((kind) => (kind.isSynced ? gainsOf(kind, migration) : [])),
      loses: [
        ...(sidecar === undefined ? [] : [`what ${sidecar} sets: move it to the values`]),
        ...lost.map(({ path, message }) => `${path}: ${message}`),
      ],
      differs: differences.map(({ path }) => formatPath(path)),
      values: valuesOf(migration),
    };
  } catch (error) {
    if (!(error instanceof TerminalError || error instanceof ConfigError)) throw error;
    return { ...row, today: 'unknown', loses: [messageOf(error).split('\n')[0] ?? ''] };
  }
}

/** vCluster runs patches only with a licence. */
function gainsOf(
  { key, objects, gains, ...kind }: Migration['kinds'][number],
  { lost }: Migration,
): string[] {
  const list = `sync.toHost.${key}.patches`;
  const isLost = (index: number): boolean => lost.some(({ path }) => path.startsWith(`${list}[${index}]`));
  const patches = kind.patches.filter((_, index) => !isLost(index)).length;
  const patched = `${patches} ${patches === 1 ? 'patch' : 'patches'} of ${objects}`;
  return [...gains, ...(patches > 0 ? [patched] : [])];
}

/** A line each: the label, vCluster's own sync of the same kinds off, and the right that vCluster would lose with it. */
function valuesOf(migration: Migration): string {
  return Object.entries({ ...MEMBER_VALUES, ...disabling(migration.synced), ...keptRights(migration) })
    .map(([key, value]) => `${key}: ${writeYaml(value, { isFlow: true })}`)
    .join('');
}

function fleetText(rows: readonly FleetRow[]): string {
  const list = (texts: readonly string[]): string => (texts.length === 0 ? '-' : texts.join('; '));
  const table = formatTable([
    ['NAMESPACE', 'NAME', 'SYNCED BY', 'GAINS', 'LOSES'],
    ...rows.map((row) => [row.namespace, row.name, row.today, list(row.gains), list(row.loses)]),
  ]);
  const candidates = rows.filter(({ values }) => values !== '');
  const byValues = Map.groupBy(candidates, ({ values }) => values);
  const sections = [...byValues].map(([values, members]) => {
    const names = members.map(keyOf).join(', ');
    return `# Add to vCluster's values of ${names}\n${values}`;
  });
  const differing = rows.filter(({ differs }) => differs.length > 0);
  const differences = formatTable([
    ['NAMESPACE', 'NAME', 'VALUES'],
    ...differing.map(({ namespace, name, differs }) => [namespace, name, list(differs)]),
  ]);
  if (differing.length > 0)
    sections.push(`# Where vCluster runs with other values than its release\n${differences}`);
  return [table, ...sections].join('\n');
}
