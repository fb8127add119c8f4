/** An explanation as text: the sentence that answers "why", then the stages. */

import type { JsonValue } from '../../../base/json.ts';
import type { ObjectKey } from '../../../kube/object.ts';
import { formatTable } from '../../output/table.ts';
import type { LeaseState, ReportedEvent } from '../reports.ts';
import type { MergeStage, PatchStage, Stages, WriteStage } from './stages.ts';
import type { SyncStatus } from './object-status.ts';

export interface Explanation {
  readonly kind: string;
  readonly virtual: ObjectKey;
  readonly host: ObjectKey;
  readonly status: SyncStatus;
  /** Undefined for an object that is imported, or is no copy. */
  readonly stages: Stages | undefined;
  readonly write: readonly WriteStage[];
  readonly events: readonly ReportedEvent[];
  readonly lease: LeaseState | undefined;
}

const EVENTS_MAX = 5;

export function formatExplanation(explanation: Explanation): string {
  const { status, stages, write, events, lease } = explanation;
  const rows: string[][] = [];
  const add = (stage: string, lines: readonly string[]): void => {
    for (const [at, line] of lines.entries()) rows.push([at === 0 ? stage : '', line]);
  };
  if (stages !== undefined) addStages(stages, add);
  add('write', write.length === 0 ? ['nothing to write'] : write.map(writeLine));
  if (lease !== undefined)
    add('leader', [lease.holder === '' ? `no replica holds Lease ${lease.key}` : lease.holder]);
  add(
    'events',
    events.slice(0, EVENTS_MAX).map(({ reason, note }) => `${reason}: ${note.split('\n')[0] ?? ''}`),
  );
  return `${capital(status.sentence)}.\n\n${formatTable(rows)}`;
}

function addStages(stages: Stages, add: (stage: string, lines: readonly string[]) => void): void {
  add('gate', [stages.gate.detail]);
  add('name', [stages.name.detail]);
  add('translation', stages.translation);
  for (const patch of stages.patches) add(`patches[${patch.index}]`, patchLines(patch));
  add('merge', stages.merge.map(mergeLine));
}

function patchLines({ direction, path, matches, nearest, error, action }: PatchStage): string[] {
  const back = direction === 'toVirtual' ? ' (host to virtual)' : '';
  if (error !== null) return error.split('\n');
  if (matches.length === 0) {
    const exists = nearest === null || nearest === '' ? '' : `; ${nearest} exists`;
    return [`${path}: no match${exists}${back}`];
  }
  if (action === 'keep') return matches.map((match) => `${match.path}: not synced in this direction${back}`);
  return matches.map((match) => `${match.path}: ${value(match.before)} -> ${value(match.after)}${back}`);
}

function mergeLine({ path, winner, before, after }: MergeStage): string {
  const other = winner === 'virtual' ? 'host' : 'virtual object';
  const side = winner === 'virtual' ? 'the virtual object' : 'the host';
  return `${path}: ${side} wins; on the ${other} ${value(before)} -> ${value(after)}`;
}

function writeLine({ cluster, verb, kind, object, reason }: WriteStage): string {
  return `${verb} ${kind} ${object} in the ${cluster} cluster: ${reason}`;
}

const VALUE_MAX = 100;

function value(json: JsonValue): string {
  const text = json === null ? 'nothing' : JSON.stringify(json);
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX - 1)}…` : text;
}

function capital(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
