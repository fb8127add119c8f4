/** Which replica of a fleet syncs a member. Pure. */

import { createHash } from 'node:crypto';

/** Rendezvous hashing: when a replica comes or goes, only its own share of the members moves. Undefined without a replica. */
export function replicaOf(member: string, replicas: readonly string[]): string | undefined {
  const scored = replicas.map((replica) => ({ replica, score: scoreOf(replica, member) }));
  return scored.reduce<(typeof scored)[number] | undefined>(
    (best, one) => (best === undefined || one.score > best.score ? one : best),
    undefined,
  )?.replica;
}

function scoreOf(replica: string, member: string): string {
  return createHash('sha256')
    .update(JSON.stringify([replica, member]))
    .digest('hex');
}
