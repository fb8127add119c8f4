/** The state of one object in one word, one reason and one sentence, and what running daemons say that decides about it. */

import { keyOf, type KubeObject } from '../../kube/object.ts';

/** One word for each state, in `status`, the log and the page of the demo. */
export const STATES = [
  'synced',
  'pending',
  'terminating',
  'skipped',
  'refused',
  'failed',
  'contested',
] as const;

export type State = (typeof STATES)[number];

export interface SyncStatus {
  readonly state: State;
  /** The reason of the Event where there is one; '' for an object in sync. */
  readonly reason: string;
  readonly sentence: string;
}

/** An Event of the daemon. */
export interface ReportedEvent {
  readonly type: string;
  readonly reason: string;
  readonly note: string;
  /** Of the last occurrence. */
  readonly lastMs: number;
}

export interface LeaseState {
  /** `namespace/name`. */
  readonly key: string;
  /** '' when no replica holds it. */
  readonly holder: string;
}

/** What running daemons say of the whole sync. */
export interface DaemonFacts {
  /** Undefined: leader election is off, and no replica holds the Lease either. */
  readonly lease: LeaseState | undefined;
  /** The daemon in charge runs another configuration than this one. */
  readonly runsOther: boolean;
  /** The state of the vCluster in its fleet, if it is not synced, or not as configured. */
  readonly fleetNote?: string | undefined;
}

export function statusAs(state: State, reason: string, sentence: string): SyncStatus {
  return { state, reason, sentence };
}

export function held(what: string, copy: string, objection: string): SyncStatus {
  const sentence = `${what} is gone, and its host copy ${copy} stays: ${objection}`;
  return statusAs('pending', 'DeletionsHeld', sentence);
}

export interface DaemonState extends DaemonFacts {
  /** A replica of a fleet holds the Lease. */
  readonly isOfFleet: boolean;
  /** The Lease; undefined: no daemon has created it, or this user may not read it. */
  readonly object: KubeObject | undefined;
}

/** The daemon does not write what this configuration would. */
function otherConfiguration(what: string): SyncStatus {
  const sentence = `${what} is not in sync with this configuration: the daemon runs another configuration`;
  return statusAs('pending', 'another configuration', sentence);
}

function ofFleet(what: string, note: string): SyncStatus {
  return statusAs('failed', 'NotJoined', `${what} is not in sync: its vCluster is in the state ${note}`);
}

/** No daemon does what the engine would. */
export function heldBack(
  { fleetNote, runsOther }: Pick<DaemonFacts, 'fleetNote' | 'runsOther'>,
  what: string,
): SyncStatus | undefined {
  if (fleetNote !== undefined) return ofFleet(what, fleetNote);
  return runsOther ? otherConfiguration(what) : undefined;
}

/** Notes of Events are sentences; inside another sentence they have no full stop and no capital. */
export function sentenceOf(note: string): string {
  const [first = ''] = note.split('\n');
  const text = first.replace(/\.$/u, '');
  return /^[A-Z][a-z]/u.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

export function quotedKey({ namespace = '', name }: { namespace?: string; name: string }): string {
  return `"${keyOf({ namespace, name })}"`;
}
