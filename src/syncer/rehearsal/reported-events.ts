/** What the daemon reported of virtual objects, as Events. */

import { textAt, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import { asJson, EVENTS, type KubeObject } from '../../kube/object.ts';
import type { ClusterClient } from '../../kube/types.ts';
import { CONTROLLER } from '../clusters.ts';
import { listAll } from './connection.ts';
import type { ReportedEvent } from './sync-status.ts';

/** Events by uid of the object that they are about, the latest first. */
export type ReportedEvents = ReadonlyMap<string, readonly ReportedEvent[]>;

/** All that may be read; a user without the right to list Events sees none. */
export async function readEvents(virtual: ClusterClient, namespace = ''): Promise<ReportedEvents> {
  let events: KubeObject[];
  try {
    events = await listAll(virtual, EVENTS, [namespace]);
  } catch {
    return new Map();
  }
  const ours = events.map(asJson).filter((event) => textAt(event, 'reportingController') === CONTROLLER);
  const byUid = Map.groupBy(ours, (event) => textAt(event, 'regarding', 'uid'));
  return new Map(
    [...byUid].map(([uid, of]) => [uid, of.map(reportedEvent).toSorted((a, b) => b.lastMs - a.lastMs)]),
  );
}

function reportedEvent(event: JsonObject): ReportedEvent {
  const [type, reason, note] = [textAt(event, 'type'), textAt(event, 'reason'), textAt(event, 'note')];
  const times = [['series', 'lastObservedTime'], ['deprecatedLastTimestamp'], ['eventTime']];
  return { type, reason, note, lastMs: Math.max(...times.map((path) => timeOf(valueAt(event, path)))) };
}

function timeOf(value: JsonValue | undefined): number {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? 0 : ms;
}
