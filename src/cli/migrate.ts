/** `migrate`: what to change so that this program syncs what vCluster syncs today, and what will differ. */

import { basename } from 'node:path';
import { type Command, Option } from 'commander';
import { parseDocument, stringify } from 'yaml';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { unifiedHunks } from '../base/unified-diff.ts';
import { PATCHED_KEYS } from '../config/layers.ts';
import { readConfigText } from '../config/load.ts';
import { mergeConfig, withoutHeading } from '../config/vcluster-values.ts';
import { Fields } from '../config/finding.ts';
import type { Config } from '../config/config.ts';
import { keyOf } from '../kube/object.ts';
import type { ObjectPlan } from '../syncer/rehearsal.ts';
import { addConfigOptions, HELP_GROUP, loaderInput } from './config-options.ts';
import { addVclusterOption, hostedValues } from './live/hosted.ts';
import { planSnapshot } from './live/session.ts';
import { connect, readSnapshot } from './live/snapshot.ts';
import { migrateFleet } from './migrate-fleet.ts';
import {
  BY_HAND,
  disabling,
  planMigration,
  rowsOf,
  SLICE_RIGHTS,
  US,
  type Migration,
  type Row,
} from './migration.ts';
import { describeFailure, guarded, reportProblems } from './output/error-report.ts';
import { formatTable } from './output/listing.ts';

const FILE_FLAG = 'vclusterConfig';
const CONNECTION_FLAGS = ['virtual.kubeconfig', 'virtual.context', 'host.kubeconfig', 'host.context'];

export function define(command: Command, exit: (code: number) => void): void {
  command.addOption(
    new Option('-o, --output <format>', "text, json, or helm: values of this program's chart")
      .choices(['text', 'json', 'helm'])
      .default('text'),
  );
  addConfigOptions(command, [FILE_FLAG, 'name', 'host.namespace', ...CONNECTION_FLAGS]);
  addVclusterOption(command);
  const help =
    'print what every vCluster of the host, or with -n of one namespace, gains and loses as a member of a fleet';
  command.addOption(new Option('--fleet', help).helpGroup(HELP_GROUP));
  command.action(async ({ output, fleet }: { output: string; fleet?: boolean }) =>
    exit(await guarded(() => (fleet ? migrateFleet(command, output) : migrate(command, output)), 2)),
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
  const name = hosted?.name ?? flags['name'] ?? env['VCLUSTER_NAME'] ?? '';
  const hostNamespace = hosted?.namespace ?? flags['host.namespace'] ?? '';
  const migration = planMigration({ text, file, name, hostNamespace, flags });
  const { effective, problems, lost } = migration;
  const isLive = hosted === undefined && CONNECTION_FLAGS.some((flag) => flags[flag] !== undefined);
  const objects = isLive && effective !== undefined ? await objectsOf(effective) : [];
  const rows = rowsOf(migration);
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
  await using connection = await connect({ config });
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
  if (migration.synced.includes('endpointSlices'))
    sections.push(
      `# Add to vCluster's values, which keep this right only with the sync\n${stringify(SLICE_RIGHTS)}`,
    );
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
