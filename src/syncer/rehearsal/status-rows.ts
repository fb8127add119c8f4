/** What a list of the state of a sync says of each object: its names on both sides, its state, its address, its last change. */

import { keyOf, parseKey, type KubeObject, type NamespacedName, type StringMap } from '../../kube/object.ts';
import type { Config } from '../config/config.ts';
import type { CopyAddress } from '../kinds/kind.ts';
import { describeReference } from '../references/referenced-kind.ts';
import { FIELD_MANAGER } from '../translate/bookkeeping.ts';
import { statusOfImport, statusOfOther, type ImportFacts, type OtherObject } from './import-status.ts';
import { addressOf, factsOf, statusOf, type StatusFacts } from './object-status.ts';
import type { DaemonFacts, ReportedEvent, SyncStatus } from './sync-status.ts';
import type { ObjectPlan, ReferencePlan } from './rehearsal.ts';
import type { ReportedEvents } from './reported-events.ts';
import type { WorldPlan } from './snapshot.ts';

export interface StatusRow {
  readonly kind: string;
  /** API group of the kind; '' is the core group. */
  readonly group: string;
  readonly virtual: NamespacedName;
  /** Empty names where the namespace is not mapped. */
  readonly host: NamespacedName;
  readonly status: SyncStatus;
  /** Only of a copy that the host serves at an address. */
  readonly address: CopyAddress | undefined;
  readonly labels: StringMap;
  /** RFC 3339; '' where it is not known. */
  readonly lastChange: string;
}

export type ObjectRow = Pick<StatusRow, 'kind' | 'virtual' | 'host' | 'status' | 'address'>;

export type Target =
  | { readonly kind: 'object'; readonly plan: ObjectPlan }
  | { readonly kind: 'import'; readonly plan: ReferencePlan }
  | ({ readonly kind: 'other' } & OtherObject);

export interface StatusReports extends DaemonFacts {
  readonly events: ReportedEvents;
  readonly nowMs: number;
}

/** Synced objects first, then referenced objects. */
export function rowsOf(plan: WorldPlan, reports: StatusReports): StatusRow[] {
  const facts = factsOf(plan, reports);
  const eventsOf = (uid = ''): StatusFacts['events'] => reports.events.get(uid) ?? [];
  const objects = plan.objects.map((one) =>
    objectRow(one, { ...facts, events: eventsOf(one.seen.virtual?.metadata.uid) }),
  );
  const referrers = referrersIn(plan);
  const imports = plan.references.map((one) => {
    const events = referrers(one).flatMap(({ metadata }) => eventsOf(metadata.uid));
    return importRow(one, { ...facts, events: eventsOfImport(one, events) });
  });
  return [...objects, ...imports];
}

/** The virtual objects that name an import: the daemon reports there what becomes of it. */
export function referrersIn({ objects }: WorldPlan): (plan: ReferencePlan) => readonly KubeObject[] {
  const byReference = new Map<string, KubeObject[]>();
  for (const {
    references,
    seen: { virtual },
  } of objects) {
    if (virtual === undefined) continue;
    for (const one of references)
      byReference.getOrInsertComputed(`${one.kind} ${keyOf(one)}`, () => []).push(virtual);
  }
  return ({ seen: { kind, virtual } }) => byReference.get(`${kind.virtual.kind} ${keyOf(virtual)}`) ?? [];
}

/** Of the Events on its referrers those that name it, on one of the two sides. */
export function eventsOfImport(
  { seen: { kind, virtual }, decision: { name = virtual } }: ReferencePlan,
  events: readonly ReportedEvent[],
): readonly ReportedEvent[] {
  const names = [describeReference(kind, virtual), JSON.stringify(name.name)];
  const own = events.filter(({ note }) => names.some((text) => note.includes(text)));
  return own.toSorted((a, b) => b.lastMs - a.lastMs);
}

function objectRow(plan: ObjectPlan, facts: StatusFacts): StatusRow {
  const { virtual, host, target } = plan.seen;
  return {
    kind: plan.kind.resource.kind,
    group: plan.kind.resource.group,
    virtual: parseKey(plan.key),
    host: target ?? { namespace: '', name: '' },
    status: statusOf(plan, facts),
    address: addressOf(plan),
    labels: virtual?.metadata.labels ?? {},
    lastChange: lastChangeOf(virtual, host),
  };
}

function importRow(plan: ReferencePlan, facts: ImportFacts): StatusRow {
  const { seen, decision } = plan;
  const { kind, virtual } = seen;
  const there = seen.object ?? seen.imported;
  return {
    kind: kind.virtual.kind,
    group: kind.virtual.group,
    virtual,
    host: decision.name ?? seen.target ?? { namespace: '', name: '' },
    status: statusOfImport(plan, facts),
    address: undefined,
    labels: there?.metadata.labels ?? {},
    lastChange: lastChangeOf(there, seen.ours[0] ?? seen.source),
  };
}

/** The last write of this program to either side, else the last write to the virtual object. */
function lastChangeOf(virtual: KubeObject | undefined, host: KubeObject | undefined): string {
  const times = (object: KubeObject | undefined, isOurs: boolean): string[] =>
    (object?.metadata.managedFields ?? []).flatMap(({ manager, time }) =>
      time !== undefined && (!isOurs || manager === FIELD_MANAGER) ? [time] : [],
    );
  const ours = [...times(virtual, true), ...times(host, true)].toSorted().at(-1);
  return ours ?? times(virtual, false).toSorted().at(-1) ?? virtual?.metadata.creationTimestamp ?? '';
}

/** Of one object, by any of its names. */
export function rowOf(target: Target, facts: StatusFacts, config: Config): ObjectRow {
  if (target.kind === 'object') return objectRow(target.plan, facts);
  if (target.kind === 'import') return importRow(target.plan, facts);
  const { resource, object, cluster, virtual = NO_NAME } = target;
  const { namespace = '', name } = object.metadata;
  return {
    kind: resource.kind,
    virtual,
    host: cluster === 'host' ? { namespace, name } : NO_NAME,
    status: statusOfOther(target, config),
    address: undefined,
  };
}

const NO_NAME: NamespacedName = { namespace: '', name: '' };
