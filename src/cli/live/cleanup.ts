/** `cleanup`: removes from both clusters what the syncer of this virtual cluster created. */

import { plainText } from '../../base/excerpt.ts';
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { keyOf, objectKey, SECRETS, type KubeObject } from '../../kube/object.ts';
import { LEASES } from '../../kube/lease.ts';
import { isConflict, isForbidden, isNotFound } from '../../kube/status-error.ts';
import type { ClusterClient, ClusterName } from '../../kube/types.ts';
import { readDocument } from '../../config-file/document.ts';
import { withoutEmptyKeys } from '../../config-file/merge.ts';
import { secretText, VALUES_KEY, valuesSecret } from '../../fleet/vcluster.ts';
import type { Config } from '../../syncer/config/config.ts';
import { syncedByVcluster } from '../../syncer/config/warnings.ts';
import { SYNCABLE_KINDS } from '../../syncer/kinds/synced-kinds.ts';
import { FIELD_MANAGER } from '../../syncer/translate/bookkeeping.ts';
import { addConfigOptions } from '../config-options.ts';
import { addVclusterOption, withConnection } from './hosted.ts';
import { type ExitWith, showProgress, tell } from '../output/terminal.ts';
import { formatKind, isOfKnownKind, knownKind, similarKind } from '../kind-scope.ts';
import { formatListing, outputOption, resourceName } from '../output/listing.ts';
import { type Connection, reaching, listAll } from '../../syncer/rehearsal/connection.ts';
import { readSnapshot, planSnapshot } from './snapshot.ts';
import type { Snapshot, WorldPlan } from '../../syncer/rehearsal/snapshot.ts';
import { readDaemon, type DaemonState } from './reports.ts';
import { isReplica } from '../../fleet/replicas.ts';
import { describeTermination } from '../../kube/termination.ts';
import {
  createdNamespaces,
  createdObjects,
  unusedIn,
  WHY_KEPT,
  type CreatedObject,
} from '../../syncer/rehearsal/created-objects.ts';

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
    exitWith(() => withConnection(command, (connection) => cleanup(connection, flags))),
  );
}

async function cleanup(connection: Connection, flags: CleanupFlags): Promise<number> {
  const { config, clusters, isHosted = false } = connection;
  const daemon = await reaching('host', () => readDaemon(config, clusters.host, systemClock.now()));
  if (!(flags.unused === true ? isSameConfiguration(daemon) : reportDaemon(daemon, flags))) return 1;
  const snapshot = await readSnapshot(connection, { isOwnerNeeded: false, everyKind: true });
  for (const problem of snapshot.unreadable)
    tell(`warning: copies may remain, because they cannot be listed: ${problem}`);
  const created = createdObjects(snapshot, connection);
  const isChosen = await chosenBy(flags, snapshot);
  if (!isKnownKind(flags, [...created.deletable, ...created.kept])) return 2;
  const isWhole = flags.unused !== true && flags.kind === undefined;
  const groups = [created.deletable.filter(isChosen), isWhole && !isHosted ? leaseOf(daemon) : []];
  const deletable = groups.flat();
  for (const one of created.unproven.filter(isChosen))
    tell(
      `left ${nameOf(one)}: its namespace is not mapped, and the virtual cluster does not have the object that it names; it may be the copy of another virtual cluster of this name: delete it with kubectl if it is not`,
    );
  for (const one of created.kept.filter(isChosen)) tell(`left ${nameOf(one)}: ${WHY_KEPT}`);
  if (isWhole) await nameNamespaces(connection);
  if (isWhole && isHosted && daemon.object !== undefined)
    tell(
      `left Lease "${objectKey(daemon.object)}", by which --vcluster finds the configuration: delete it with kubectl after the last cleanup`,
    );
  if (deletable.length === 0) tell('nothing to delete');
  if (!(await leavesVclusters(deletable, connection, flags))) return 1;
  if (flags.dryRun === true) {
    process.stdout.write(listingOf(deletable, flags.output));
    return 0;
  }
  if (deletable.length === 0) return 0;
  if (flags.yes !== true && !(await isConfirmed(deletable))) return 2;
  return deleteAll(groups, connection);
}

/** Host namespaces that `createNamespaces` made stay: nothing says that no other client uses one by now. */
async function nameNamespaces({ config, clusters }: Connection): Promise<void> {
  for (const { metadata } of await createdNamespaces(clusters.host, config))
    tell(
      `left Namespace "${metadata.name}" in the host cluster: createNamespaces made it for a virtual cluster of this name; if nothing else uses it, run kubectl delete namespace ${metadata.name}`,
    );
}

/** False after an error: a running daemon would create the copies again. */
function reportDaemon({ lease }: DaemonState, { dryRun = false }: CleanupFlags): boolean {
  if (lease === undefined)
    tell(
      'warning: leader election is off, so a running daemon cannot be detected; it would create the copies again, so stop it first',
    );
  if (lease === undefined || lease.holder === '') return true;
  const held = `replica "${lease.holder}" holds Lease "${lease.key}" and would create the copies again`;
  const what = isReplica(lease.holder)
    ? 'remove the label that selects this vCluster for the fleet first'
    : 'stop all replicas first';
  tell(`${dryRun ? 'warning' : 'error'}: ${held}; ${what}`);
  return dryRun;
}

/** False after an error: vCluster deletes the virtual object of a copy that another client deletes, while it syncs the kind. */
async function leavesVclusters(
  deletable: readonly CreatedObject[],
  { config, clusters }: Connection,
  { dryRun = false }: CleanupFlags,
): Promise<boolean> {
  const shared = await syncedByVclusterOf(config, clusters.host);
  const keys = SYNCABLE_KINDS.filter(
    ({ key, resource }) =>
      shared.keys.includes(key) &&
      deletable.some((one) => one.cluster === 'host' && one.resource.plural === resource.plural),
  ).map(({ key }) => `sync.toHost.${key}`);
  if (keys.length === 0) return true;
  tell(
    `${dryRun ? 'warning' : 'error'}: ${shared.file} enables ${keys.join(' and ')}, so vCluster would delete the objects of the virtual cluster together with these copies; disable that in vCluster's values first, or leave the copies to vCluster`,
  );
  return dryRun;
}

/** By the values that vCluster runs with, or where they cannot be read, by those of the configuration. */
async function syncedByVclusterOf(
  { name, host: { namespace }, sync, vclusterConfig }: Config,
  host: ClusterClient,
): Promise<{ readonly keys: readonly string[]; readonly file: string }> {
  const key = valuesSecret({ namespace, name });
  const secret = await reaching('host', () =>
    host.get(SECRETS, key).catch((error: unknown) => {
      if (isForbidden(error) || isNotFound(error)) return undefined;
      throw error;
    }),
  );
  if (secret === undefined) return { keys: sync.syncedByVcluster ?? [], file: vclusterConfig };
  const file = `Secret "${keyOf(key)}"`;
  const { value } = readDocument(file, secretText(secret, VALUES_KEY));
  return { keys: syncedByVcluster(withoutEmptyKeys(value)), file };
}

/** False after an error: what this configuration does not keep may be in use. */
function isSameConfiguration({ runsOther }: DaemonState): boolean {
  if (runsOther)
    tell(
      'error: the daemon runs another configuration, which may keep what this one does not; use its configuration',
    );
  return !runsOther;
}

async function chosenBy(flags: CleanupFlags, snapshot: Snapshot): Promise<(one: CreatedObject) => boolean> {
  const kind = flags.kind === undefined ? undefined : knownKind(flags.kind);
  const isUnused = flags.unused === true ? unusedIn(await planned(snapshot)) : () => true;
  return (one) => isOfKnownKind(one.resource, kind) && isUnused(one);
}

/** False after an error about a kind of which nothing was created: most likely a typo. */
function isKnownKind({ kind: text }: CleanupFlags, created: readonly CreatedObject[]): boolean {
  if (text === undefined) return true;
  const wanted = knownKind(text);
  if (wanted.scope !== 'unknown' || created.some(({ resource }) => isOfKnownKind(resource, wanted)))
    return true;
  tell(`error: --kind: unknown kind "${formatKind(wanted)}"${similarKind(wanted.kind)}`);
  return false;
}

async function planned(snapshot: Snapshot): Promise<WorldPlan> {
  const plan = await planSnapshot(snapshot);
  if (plan.objection !== undefined)
    tell(`warning: copies of objects that are gone are left: ${plan.objection}`);
  return plan;
}

/** Deleted last: while copies exist, it names the syncer that created them. */
function leaseOf({ object }: DaemonState): CreatedObject[] {
  return object === undefined ? [] : [{ cluster: 'host', resource: LEASES, object, of: undefined }];
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

/** One group after the other, each with the same number of concurrent requests as the daemon. */
async function deleteAll(
  groups: readonly (readonly CreatedObject[])[],
  connection: Connection,
): Promise<number> {
  const { config } = connection;
  const count = groups.flat().length;
  using progress = showProgress('deleting');
  const left: string[] = [];
  let done = 0;
  const work = async (todo: Iterable<CreatedObject>, deleted: CreatedObject[]): Promise<void> => {
    for (const one of todo) {
      if (await isDeleted(one, connection)) {
        deleted.push(one);
        await clearStatus(one, connection);
      } else left.push(`left ${nameOf(one)}: another client has replaced it`);
      progress.update(++done, count);
    }
  };
  for (const group of groups) {
    const todo = group.values();
    const deleted: CreatedObject[] = [];
    await Promise.all(Array.from({ length: config.workers }, () => work(todo, deleted)));
    // A Lease has no finalizer, and the right to list Leases is not needed otherwise.
    const copies = deleted.filter(({ of }) => of !== undefined);
    const terminating = await terminatingOf(copies, connection);
    for (const one of deleted) {
      const there = terminating.get(one.object.metadata.uid);
      if (there === undefined) process.stdout.write(`deleted ${plainText(nameOf(one))}\n`);
      else left.push(`left ${nameOf(one)}: it ${describeTermination(there)}`);
    }
  }
  for (const line of left) tell(line);
  return left.length > 0 ? 1 : 0;
}

/** Those that finalizers keep there, by uid. A list for each kind and namespace, because nearly all objects are gone. */
async function terminatingOf(
  deleted: readonly CreatedObject[],
  { clusters }: Connection,
): Promise<ReadonlyMap<string | undefined, KubeObject>> {
  const uids = new Set(deleted.map(({ object }) => object.metadata.uid));
  const places = new Map(
    deleted.map((one) => [JSON.stringify([one.cluster, one.resource, one.object.metadata.namespace]), one]),
  );
  const terminating = new Map<string | undefined, KubeObject>();
  for (const { cluster, resource, object } of places.values())
    for (const there of await listAll(clusters[cluster], resource, [object.metadata.namespace ?? '']))
      if (uids.has(there.metadata.uid)) terminating.set(there.metadata.uid, there);
  return terminating;
}

/** Clears a status that came from the deleted copy; a virtual object that has changed in the meantime keeps its status. */
async function clearStatus({ resource, status }: CreatedObject, { clusters }: Connection): Promise<void> {
  if (status === undefined) return;
  const { namespace = '', name, resourceVersion = null } = status.virtual.metadata;
  const body = { ...status.patch, metadata: { resourceVersion } };
  const options = { subresource: 'status', fieldManager: FIELD_MANAGER } as const;
  await reaching('virtual', async () => {
    try {
      await clusters.virtual.patch(resource, { namespace, name }, { type: 'merge', body }, options);
      process.stdout.write(
        `cleared the status of ${resource.kind} "${plainText(`${namespace}/${name}`)}" in the virtual cluster\n`,
      );
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  });
}

/** Deletes only the object with the uid that was read. True if it no longer exists, false if another object has its name. */
function isDeleted({ cluster, resource, object }: CreatedObject, { clusters }: Connection): Promise<boolean> {
  const { namespace = '', name, uid = '' } = object.metadata;
  return reaching(cluster, async () => {
    try {
      await clusters[cluster].delete(resource, { namespace, name }, { uid });
      return true;
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return isNotFound(error);
      throw error;
    }
  });
}

function nameOf({ cluster, resource, object }: CreatedObject): string {
  return `${resource.kind} "${objectKey(object)}" in the ${cluster} cluster`;
}
