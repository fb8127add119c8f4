/** Series of Events: counts the occurrences of one reason on one object. Does no I/O. */

import { type KubeObject, type Resource, apiVersionOf } from './object.ts';
import type { JsonObject } from '../base/json.ts';
import type { RecordedEvent } from './types.ts';

/** After this long without an occurrence the next one is a new Event. */
export const SERIES_LIFE_MS = 10 * 60_000;
/** Different notes of one series that become separate Events within its life. */
const NOTES_MAX = 10;
const NOTE_BYTES_MAX = 1024;
const NAME_CHARS_MAX = 220;

/** All occurrences of one reason on one object, as one Event in the API as long as it lives. */
export interface EventSeries {
  readonly key: string;
  readonly type: RecordedEvent['type'];
  readonly reason: string;
  readonly action: string;
  readonly namespace: string;
  /** The object's. */
  readonly name: string;
  readonly regarding: JsonObject;
  /** The newest note. */
  note: string;
  /** Occurrences so far under the Event that is stored or will be created. */
  count: number;
  lastObservedMs: number;
  /** The stored Event; undefined: none yet, or not for this note. */
  stored: { readonly name: string; readonly note: string; readonly count: number } | undefined;
  /** Creation times of the Events of this series, to limit Events with changing notes. */
  createdMs: number[];
}

export function seriesKey({ metadata }: KubeObject, resource: Resource, event: RecordedEvent): string {
  const { namespace = '', name, uid = '' } = metadata;
  return [event.type, event.reason, resource.group, resource.kind, namespace, name, uid].join('\n');
}

export function newSeries(regarding: KubeObject, resource: Resource, event: RecordedEvent): EventSeries {
  const { namespace = '', name, uid } = regarding.metadata;
  return {
    key: seriesKey(regarding, resource, event),
    type: event.type,
    reason: event.reason,
    action: event.action ?? 'Sync',
    // The API server requires Events about cluster-scoped objects to be in `default`.
    namespace: namespace === '' ? 'default' : namespace,
    name,
    regarding: {
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      ...(namespace === '' ? {} : { namespace }),
      name,
      ...(uid === undefined ? {} : { uid }),
    },
    note: '',
    count: 0,
    lastObservedMs: 0,
    stored: undefined,
    createdMs: [],
  };
}

/** The last occurrence gets an Event of its own; otherwise it is counted. Forgets creation times that are too old to matter. */
export function needsNewEvent(series: EventSeries, nowMs: number): boolean {
  const { stored, note, createdMs } = series;
  if (stored === undefined) return createdMs.length === 0;
  if (stored.note === note) return false;
  series.createdMs = createdMs.filter((ms) => ms > nowMs - SERIES_LIFE_MS);
  return series.createdMs.length < NOTES_MAX;
}

/** The Event of events.k8s.io/v1 for a series that has none in the API yet. */
export function newEvent(
  series: EventSeries,
  name: string,
  reporting: { controller: string; instance: string },
): KubeObject {
  const observed = microTime(series.lastObservedMs);
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace: series.namespace },
    eventTime: observed,
    reportingController: reporting.controller,
    reportingInstance: reporting.instance,
    action: series.action,
    reason: series.reason,
    type: series.type,
    regarding: series.regarding,
    note: series.note,
    ...(series.count < 2 ? {} : { series: seriesField(series) }),
  };
}

/** The mutable part of a stored Event. */
export function seriesField(series: EventSeries): JsonObject {
  return { count: Math.max(2, series.count), lastObservedTime: microTime(series.lastObservedMs) };
}

/** A name that no other Event has: the object's, the time and some randomness. */
export function eventName(series: EventSeries, nowMs: number, random: number): string {
  const base = series.name
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .slice(0, NAME_CHARS_MAX)
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '');
  const suffix = Math.floor(random * 2 ** 32)
    .toString(16)
    .padStart(8, '0');
  return `${base === '' ? 'object' : base}.${nowMs.toString(16)}${suffix}`;
}

/** At most 1024 bytes of UTF-8, never half a character. */
export function boundedNote(note: string): string {
  if (note.length * 3 <= NOTE_BYTES_MAX) return note;
  const bytes = Buffer.from(note, 'utf8');
  if (bytes.length <= NOTE_BYTES_MAX) return note;
  const ellipsis = '…';
  let end = NOTE_BYTES_MAX - Buffer.byteLength(ellipsis);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--; // not inside a character
  return bytes.toString('utf8', 0, end) + ellipsis;
}

/** Kubernetes' MicroTime. */
function microTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replace('Z', '000Z');
}
