/** Why one object is, or is not, synced, and what each stage of a sync does with it. */

import { systemClock } from '../../base/clock.ts';
import { TerminalError } from '../../base/errors.ts';
import { missingRights } from '../../kube/access-review.ts';
import type { KubeObject } from '../../kube/object.ts';
import { describeRight, requiredRights } from '../rights.ts';
import { type Connection, reaching } from './connection.ts';
import { findTarget, type TargetName } from './find-target.ts';
import { factsOf } from './object-status.ts';
import type { LeaseState, ReportedEvent } from './sync-status.ts';
import { readEvents } from './reported-events.ts';
import { rehearseSnapshot, takeSnapshot, type CommandParts, type Snapshot } from './snapshot.ts';
import { StageRecorder, writesOf, type Stages } from './stages.ts';
import { rowOf, type ObjectRow, type ReportingParts } from './status-rows.ts';

export interface Explanation extends ObjectRow {
  /** Undefined for an object that is imported, or is no copy. */
  readonly stages: Stages | undefined;
  readonly write: Stages['write'];
  /** Of the daemon about the object, the latest first. */
  readonly events: readonly ReportedEvent[];
  readonly lease: LeaseState | undefined;
  /** When it was read. */
  readonly nowMs: number;
}

export interface Explained {
  /** Undefined: no object has the name, or nothing could be read. */
  readonly explanation: Explanation | undefined;
  /** The rights, described, for want of which nothing could be read. */
  readonly unreadableWithout: readonly string[] | undefined;
}

/** Rejects with `TerminalError` where a cluster does not respond, and where objects of several groups have this kind and name. */
export async function explainObject(
  connection: Connection,
  name: TargetName,
  { readDaemon, ...parts }: ReportingParts,
): Promise<Explained> {
  const missing = await missingOf(connection);
  const snapshot = await snapshotOrMissing(connection, missing, parts);
  if (snapshot === undefined) return { explanation: undefined, unreadableWithout: missing };
  const { config } = snapshot;
  await using recorder = new StageRecorder();
  const { sandbox, createPipeline } = recorder;
  const plan = await rehearseSnapshot(snapshot, { ...parts, sandbox, createPipeline });
  const target = findTarget(plan, name);
  if (target === undefined) return { explanation: undefined, unreadableWithout: undefined };
  const virtual = target.kind === 'object' ? target.plan.seen.virtual : undefined;
  const nowMs = systemClock.now();
  const daemon = await readDaemon(config, connection.clusters.host, nowMs);
  const events = await eventsAbout(virtual, connection);
  const facts = { ...factsOf(plan, { ...daemon, nowMs }), events, missingRights: missing };
  const explanation = {
    ...rowOf(target, facts, config),
    stages: target.kind === 'object' ? await recorder.stagesOf(target.plan) : undefined,
    write: target.kind === 'other' ? [] : writesOf(target.plan.changes),
    events,
    lease: daemon.lease,
    nowMs,
  };
  return { explanation, unreadableWithout: undefined };
}

async function eventsAbout(
  object: KubeObject | undefined,
  { clusters }: Connection,
): Promise<readonly ReportedEvent[]> {
  const { uid, namespace } = object?.metadata ?? {};
  if (uid === undefined) return [];
  return (await readEvents(clusters.virtual, namespace)).get(uid) ?? [];
}

/** Rights that the daemon needs and that the user of this command does not have. */
async function missingOf({ config, clusters }: Connection): Promise<string[]> {
  const rights = requiredRights(config, { isDryRun: false });
  const reviews = (['virtual', 'host'] as const).map((cluster) => {
    const needed = rights.filter((right) => right.cluster === cluster);
    return reaching(cluster, () => missingRights(clusters[cluster], needed));
  });
  return (await Promise.all(reviews)).flat().map(describeRight);
}

/** Undefined where the clusters may not be read. */
async function snapshotOrMissing(
  connection: Connection,
  missing: readonly string[],
  parts: CommandParts,
): Promise<Snapshot | undefined> {
  try {
    return await takeSnapshot(connection, { ...parts, everyKind: true });
  } catch (error) {
    if (error instanceof TerminalError && missing.length > 0) return undefined;
    throw error;
  }
}
