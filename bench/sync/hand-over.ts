/** Replicas with leader election: which one leads, and the duration of a hand-over. */

import { once } from 'node:events';
import { eventually } from '../../test/support/eventually.ts';
import { killGroup } from '../../test/support/guardian.ts';
import { isReady, metric, whenIdle, type Running } from '../daemon-process.ts';
import { costOf } from '../process-cost.ts';
import { update, whenCopied, type Workload } from './phases.ts';

/**
 * Times in ms, sizes in bytes. A hand-over lasts from the signal to the host event of an update that was sent after the leader had ended, so
 * that only the next leader can have copied it.
 */
export interface HandOver {
  /** Of the larger of two. */
  readonly standbyRssBytes: number;
  readonly stopHandOverMs: number;
  readonly killHandOverMs: number;
}

const TIMEOUT_MS = 60_000;

/** The only process, or the one that leads. */
export async function writerOf(processes: readonly Running[]): Promise<Running> {
  const [only] = processes;
  if (only !== undefined && processes.length === 1) return only;
  const find = async (): Promise<Running | undefined> => {
    const states = processes.map(({ url }) => metric(url, 'leader_election_master_status'));
    const index = (await Promise.all(states)).indexOf(1);
    return processes[index];
  };
  const holds = (leader: Running | undefined): boolean => leader !== undefined;
  const leader = await eventually(find, holds, { timeoutMs: TIMEOUT_MS, what: 'a leader' });
  if (leader === undefined) throw new Error('no replica leads');
  return leader;
}

/** Stops the leader with SIGTERM, starts a new replica, then kills the next leader. No replica runs afterwards. */
export async function handOverPhase(
  workload: Workload,
  replicas: readonly Running[],
  startReplica: () => Promise<Running>,
): Promise<HandOver> {
  const leader = await writerOf(replicas);
  const standbys = replicas.filter((replica) => replica !== leader);
  const standbyRssBytes = Math.max(...standbys.map(({ pid }) => costOf(pid).rssBytes));
  const stopHandOverMs = await handOver(workload, 'stopped', () => stop(leader));

  const added = await startReplica();
  const options = { timeoutMs: TIMEOUT_MS, what: 'a ready standby' };
  await eventually(
    () => isReady(added),
    (ready) => ready,
    options,
  );
  const next = await writerOf(standbys);
  await whenIdle(next);
  const killHandOverMs = await handOver(workload, 'killed', () => killGroup(next.child));
  await Promise.all([...standbys, added].map(({ child }) => killGroup(child)));
  return { standbyRssBytes, stopHandOverMs, killHandOverMs };
}

async function handOver(workload: Workload, node: string, end: () => Promise<void>): Promise<number> {
  const signalledMs = performance.now();
  await end();
  const seen = whenCopied(workload, 0, node);
  await update(workload, 0, node);
  return (await seen) - signalledMs;
}

async function stop({ child }: Running): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
  if (child.exitCode !== 0)
    throw new Error(`the leader ended with ${child.exitCode} after SIGTERM, not with 0`);
}
