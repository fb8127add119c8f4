/**
 * A key neither creates a key that outlives it nor extends the life of a key beyond its own, itself included. For an old secret of a rotated key
 * its overlap is the end: otherwise it would live on in the keys that it creates. Pure.
 */

import { metadataOf, objectField, text } from '../../../apiserver/metadata.ts';
import type { JsonObject } from '../../../base/json.ts';

/** The field by which the written key would outlive the key of the caller. */
export interface LongerLife {
  readonly field: 'spec.ttl' | 'spec.ttlAfterLastActivity';
  readonly detail: string;
}

export interface CallerEnd {
  /** When the key of the caller expires or the overlap of its secret ends, in epoch milliseconds. */
  readonly endMs: number;
  readonly isOldSecret: boolean;
}

export interface LifetimeWrite {
  readonly next: JsonObject;
  /** Undefined: a create. */
  readonly previous: JsonObject | undefined;
  readonly callerEnd: CallerEnd;
  readonly nowMs: number;
}

const OLD_SECRET_RULE =
  'an old secret cannot create or extend a key beyond the end of its overlap: use the new secret';
const RULE = 'an access key cannot create a key that outlives it or extend a key beyond its own end';

/** Undefined: the written key ends no later than the key of the caller, or no later than before. */
export function longerLife({ next, previous, callerEnd, nowMs }: LifetimeWrite): LongerLife | undefined {
  const [after, before] = [lifeOf(next, nowMs), previous && lifeOf(previous, nowMs)];
  if (isWithin(after, callerEnd.endMs) || (before && isNoLonger(after, before))) return undefined;
  const rule = callerEnd.isOldSecret ? OLD_SECRET_RULE : RULE;
  if (after.isExtendedByUse) {
    return {
      field: 'spec.ttlAfterLastActivity',
      detail: `each use would extend the life of the key: ${rule}`,
    };
  }
  const most = Math.max(0, Math.floor((callerEnd.endMs - after.startMs) / 1000));
  return { field: 'spec.ttl', detail: `must be from 1 to ${most} (seconds): ${rule}` };
}

interface Life {
  readonly startMs: number;
  /** Infinity: never. */
  readonly endMs: number;
  readonly isExtendedByUse: boolean;
}

function lifeOf(key: JsonObject, nowMs: number): Life {
  const spec = objectField(key, 'spec');
  const ttl = Number(spec['ttl'] ?? 0);
  const created = text(metadataOf(key), 'creationTimestamp');
  const startMs = created === '' ? nowMs : Date.parse(created);
  return {
    startMs,
    endMs: ttl === 0 ? Number.POSITIVE_INFINITY : startMs + ttl * 1000,
    isExtendedByUse: ttl > 0 && spec['ttlAfterLastActivity'] === true,
  };
}

function isWithin(life: Life, endMs: number): boolean {
  return !life.isExtendedByUse && life.endMs <= endMs;
}

function isNoLonger(after: Life, before: Life): boolean {
  if (before.endMs === Number.POSITIVE_INFINITY) return true;
  if (after.isExtendedByUse && !before.isExtendedByUse) return false;
  return after.endMs <= before.endMs;
}
