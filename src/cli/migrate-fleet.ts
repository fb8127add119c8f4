/** `migrate --fleet`: for every vCluster of a host, what a fleet would sync for it, what would be lost, and what to add to its values. */

import type { Command } from 'commander';
import { stringify } from 'yaml';
import { ConfigError, messageOf, TerminalError } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import { Fields } from '../config/finding.ts';
import { patchesIn } from '../config/patch-rules.ts';
import { MEMBER_LABEL } from '../fleet/decide-member.ts';
import type { KubeObject } from '../kube/object.ts';
import { eachVcluster, type HostedVcluster } from './live/hosted.ts';
import { disabling, KINDS, planMigration, SLICE_RIGHTS, type Migration } from './migration.ts';
import { formatTable } from './output/listing.ts';

/** One vCluster. */
interface FleetRow extends JsonObject {
  namespace: string;
  name: string;
  today: 'fleet' | 'sidecar' | 'vCluster' | 'none' | 'unknown';
  /** What a fleet would sync, and does not yet. */
  gains: string[];
  /** What would not be synced. */
  loses: string[];
  /** YAML that makes it a member; '' for a member, and for one that cannot be one. */
  values: string;
}

export async function migrateFleet(command: Command, output: string): Promise<number> {
  if (output === 'helm') {
    process.stderr.write('error: --fleet has no values of a chart: leave out -o helm\n');
    return 2;
  }
  const rows = await eachVcluster(command, rowOf);
  process.stdout.write(output === 'json' ? `${JSON.stringify(rows, null, 2)}\n` : asText(rows));
  return rows.some(({ loses }) => loses.length > 0) ? 1 : 0;
}

async function rowOf(vcluster: HostedVcluster, { metadata: { labels } }: KubeObject): Promise<FleetRow> {
  const { namespace, name } = vcluster;
  const row = { namespace, name, gains: [], loses: [], values: '' };
  if (labels?.[MEMBER_LABEL] === 'true') return { ...row, today: 'fleet' };
  try {
    const text = await vcluster.values();
    const migration = planMigration({ text, file: `values of ${name}`, name, hostNamespace: namespace });
    const { synced, lost } = migration;
    const sidecar = (await vcluster.configurations()).find((one) => one.name === name);
    return {
      ...row,
      today: sidecar !== undefined ? 'sidecar' : synced.length > 0 ? 'vCluster' : 'none',
      gains: synced.flatMap((key) => gainsOf(migration, key)),
      loses: [
        ...(sidecar === undefined ? [] : [`what ${sidecar.file} sets: move it to the values`]),
        ...lost.map(({ path, message }) => `${path}: ${message}`),
      ],
      values: valuesOf(synced),
    };
  } catch (error) {
    if (!(error instanceof TerminalError || error instanceof ConfigError)) throw error;
    return { ...row, today: 'unknown', loses: [messageOf(error).split('\n')[0] ?? ''] };
  }
}

/** vCluster runs patches only with a licence. */
function gainsOf({ theirs, lost }: Migration, key: keyof typeof KINDS): string[] {
  const list = `sync.toHost.${key}.patches`;
  const isLost = (index: number): boolean => lost.some(({ path }) => path.startsWith(`${list}[${index}]`));
  const patches = patchesIn(new Fields(theirs).value(list)).filter((_, index) => !isLost(index)).length;
  return [
    ...(key === 'endpoints' ? ['Endpoints without a Service'] : []),
    ...(patches === 0 ? [] : [`${patches} ${patches === 1 ? 'patch' : 'patches'} of ${KINDS[key]}`]),
  ];
}

/** A line each: the label, vCluster's own sync of the same kinds off, and the right that vCluster would lose with it. */
function valuesOf(synced: Migration['synced']): string {
  const label = { controlPlane: { statefulSet: { labels: { [MEMBER_LABEL]: 'true' } } } };
  const rights = synced.includes('endpointSlices') ? SLICE_RIGHTS : {};
  return Object.entries({ ...label, ...disabling(synced), ...rights })
    .map(([key, value]) => `${key}: ${stringify(value, { collectionStyle: 'flow', lineWidth: 0 })}`)
    .join('');
}

function asText(rows: readonly FleetRow[]): string {
  const list = (texts: readonly string[]): string => (texts.length === 0 ? '-' : texts.join('; '));
  const table = formatTable([
    ['NAMESPACE', 'NAME', 'SYNCED BY', 'GAINS', 'LOSES'],
    ...rows.map(({ namespace, name, today, gains, loses }) => [
      namespace,
      name,
      today,
      list(gains),
      list(loses),
    ]),
  ]);
  const byValues = Map.groupBy(
    rows.filter(({ values }) => values !== ''),
    ({ values }) => values,
  );
  const sections = [...byValues].map(([values, members]) => {
    const names = members.map(({ namespace, name }) => `${namespace}/${name}`).join(', ');
    return `# Add to vCluster's values of ${names}\n${values}`;
  });
  return [table, ...sections].join('\n');
}
