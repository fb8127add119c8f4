/** `cleanup`: removes from both clusters what the syncer of this virtual cluster created. */

import { plainText } from '../../base/excerpt.ts';
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { keyOf, objectKey } from '../../kube/object.ts';
import type { ClusterName } from '../../kube/types.ts';
import { keysOfVcluster } from '../../fleet/hosted/hosted-vcluster.ts';
import { addConfigOptions } from '../config-options.ts';
import { addVclusterOption, withConnection } from './hosted.ts';
import { type ExitWith, tell, usageError } from '../output/terminal.ts';
import { formatListing, outputOption, resourceName } from '../output/listing.ts';
import type { LiveSync } from '../../syncer/rehearsal/live-sync.ts';

type DaemonState = Awaited<ReturnType<LiveSync['readDaemon']>>;
type CreatedObject = Parameters<LiveSync['delete']>[0][number][number];

interface CleanupFlags {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly kind?: string;
  readonly unused?: boolean;
  readonly output: string;
}

export function define(command: Command, exitWith: ExitWith): void {
  command
    .option('-y, --yes', 'do not ask for confirmation')
    .option('--dry-run', 'only list the objects that would be deleted')
    .option('-k, --kind <kind>', 'only objects of this kind')
    .option(
      '--unused',
      'only what this configuration does not keep: copies of kinds that it does not sync or in namespaces that it does not map, and imports that no object references',
    )
    .addOption(outputOption());
  addConfigOptions(command);
  addVclusterOption(command);
  command.action((flags: CleanupFlags) =>
    exitWith(() => withConnection(command, (sync) => cleanup(sync, flags))),
  );
}

async function cleanup(sync: LiveSync, flags: CleanupFlags): Promise<number> {
  const { unused: isUnused = false, kind } = flags;
  const daemon = await sync.readDaemon();
  if (!(isUnused ? isSameConfiguration(daemon) : reportDaemon(daemon, flags))) return 1;
  const plan = await sync.planCleanup({ isUnused, kind, lease: daemon.object });
  for (const problem of plan.unreadable)
    tell(`warning: copies may remain, because they cannot be listed: ${problem}`);
  if (plan.objection !== undefined)
    tell(`warning: copies of objects that are gone are left: ${plan.objection}`);
  if (plan.kindProblem !== undefined) return usageError(plan.kindProblem);
  const { groups, keptLease } = plan;
  const deletable = groups.flat();
  for (const { one, why } of plan.left) tell(`left ${nameOf(one)}: ${why}`);
  // Nothing says that no other client uses one by now.
  for (const { metadata } of plan.namespaces)
    tell(
      `left Namespace "${metadata.name}" in the host cluster: createNamespaces made it for a virtual cluster of this name; if nothing else uses it, run kubectl delete namespace ${metadata.name}`,
    );
  if (keptLease !== undefined)
    tell(
      `left Lease "${objectKey(keptLease)}", by which --vcluster finds the configuration: delete it with kubectl after the last cleanup`,
    );
  if (deletable.length === 0) tell('nothing to delete');
  if (!(await leavesVclusters(deletable, sync, flags))) return 1;
  if (flags.dryRun === true) {
    process.stdout.write(listingOf(deletable, flags.output));
    return 0;
  }
  if (deletable.length === 0) return 0;
  if (flags.yes !== true && !(await isConfirmed(deletable))) return 2;
  return deleteAll(groups, sync);
}

/** False after an error: a running daemon would create the copies again. */
function reportDaemon({ lease, isOfFleet }: DaemonState, { dryRun = false }: CleanupFlags): boolean {
  if (lease === undefined)
    tell(
      'warning: leader election is off, so a running daemon cannot be detected; it would create the copies again, so stop it first',
    );
  if (lease === undefined || lease.holder === '') return true;
  const held = `replica "${lease.holder}" holds Lease "${lease.key}" and would create the copies again`;
  const what = isOfFleet
    ? 'remove the label that selects this vCluster for the fleet first'
    : 'stop all replicas first';
  tell(`${dryRun ? 'warning' : 'error'}: ${held}; ${what}`);
  return dryRun;
}

/** False after an error: vCluster deletes the virtual object of a copy that another client deletes, while it syncs the kind. */
async function leavesVclusters(
  deletable: readonly CreatedObject[],
  { config, host }: LiveSync,
  { dryRun = false }: CleanupFlags,
): Promise<boolean> {
  const shared = await keysOfVcluster(config, host);
  const copied = new Set(deletable.flatMap(({ key }) => key ?? []));
  const keys = [...copied].filter((key) => shared.keys.includes(key)).map((key) => `sync.toHost.${key}`);
  if (keys.length === 0) return true;
  tell(
    `${dryRun ? 'warning' : 'error'}: ${shared.file} enables ${keys.join(' and ')}, so vCluster would delete the objects of the virtual cluster together with these copies; disable that in vCluster's values first, or leave the copies to vCluster`,
  );
  return dryRun;
}

/** False after an error: what this configuration does not keep may be in use. */
function isSameConfiguration({ runsOther }: DaemonState): boolean {
  if (runsOther)
    tell(
      'error: the daemon runs another configuration, which may keep what this one does not; use its configuration',
    );
  return !runsOther;
}

function listingOf(objects: readonly CreatedObject[], output: string): string {
  return formatListing(
    {
      heading: ['CLUSTER', 'KIND', 'NAMESPACE', 'NAME', 'OF'],
      rows: objects.map(({ cluster, resource, object, of }) => {
        const { namespace = '', name } = object.metadata;
        const { kind, group } = resource;
        return {
          cells: [cluster, kind, namespace, name, of === undefined ? '-' : keyOf(of)],
          name: resourceName(kind, group, name),
          json: { cluster, kind, namespace, name, of: of === undefined ? null : { ...of } },
        };
      }),
    },
    output,
  );
}

/** False if standard input is not a terminal: a script has to use --yes. */
async function isConfirmed(objects: readonly CreatedObject[]): Promise<boolean> {
  const count = (cluster: ClusterName): number => objects.filter((one) => one.cluster === cluster).length;
  const what = `${count('host')} objects in the host cluster and ${count('virtual')} in the virtual cluster`;
  if (!process.stdin.isTTY) {
    tell(`error: ${what} would be deleted; use --yes to delete them, or --dry-run to list them`);
    return false;
  }
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await prompt.question(`Delete ${what}? [y/N] `);
  prompt.close();
  return /^y(es)?$/iu.test(answer.trim());
}

async function deleteAll(groups: readonly (readonly CreatedObject[])[], sync: LiveSync): Promise<number> {
  const left: string[] = [];
  await sync.delete(groups, (step) => {
    const { one } = step;
    if (step.kind === 'deleted') process.stdout.write(`deleted ${plainText(nameOf(one))}\n`);
    else if (step.kind === 'left') left.push(`left ${nameOf(one)}: ${step.why}`);
    else if (one.of !== undefined)
      process.stdout.write(
        `cleared the status of ${one.resource.kind} "${plainText(keyOf(one.of))}" in the virtual cluster\n`,
      );
  });
  for (const line of left) tell(line);
  return left.length > 0 ? 1 : 0;
}

function nameOf({ cluster, resource, object }: CreatedObject): string {
  return `${resource.kind} "${objectKey(object)}" in the ${cluster} cluster`;
}
