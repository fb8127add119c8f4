/** The operations of a history: edits by users and other clients on both sides, faults, crashes. They are data, so that a history can be shrunk. */

import type { Settings } from '../daemon/sim-config.ts';
import type { FaultRates } from '../world/faults.ts';
import type { BesidePlural } from '../world/vcluster-syncer.ts';

export type Side = 'virtual' | 'host';
/** The kinds that are synced as a whole. */
export type SyncedPlural = 'endpoints' | 'endpointslices' | 'services';
export const SYNCED_PLURALS: readonly SyncedPlural[] = ['endpoints', 'endpointslices', 'services'];
/** The kinds that references lead to. */
export const REFERENCED_PLURALS = ['secrets', 'configmaps'] as const;
export type ReferencedPlural = (typeof REFERENCED_PLURALS)[number];
export type StringMap = Readonly<Record<string, string>>;

/** One object that is synced: `object` is the index of its name. */
interface OnSynced {
  readonly plural: SyncedPlural;
  readonly object: number;
}

interface OnSide extends OnSynced {
  readonly side: Side;
}

interface KeyEdit {
  readonly key: string;
  /** Null removes the key. */
  readonly value: string | null;
}

export type ObjectForm = 'plain' | 'immutable' | 'forbidden' | 'absent';

/** A user edits a synced object, or its copy. */
export type EditOperation =
  | ({
      readonly kind: 'put';
      readonly ips: number;
      readonly annotations: StringMap;
      readonly labels: StringMap;
    } & OnSynced)
  /** A Service without a selector is synced where it has Endpoints or slices; replaced, it takes its Endpoints along. */
  | {
      readonly kind: 'putService';
      readonly plural: 'services';
      readonly object: number;
      readonly form: ServiceType;
      readonly ports: number;
      readonly annotations: StringMap;
      readonly labels: StringMap;
    }
  | ({ readonly kind: 'annotate' } & OnSide & KeyEdit)
  | ({ readonly kind: 'label' } & OnSide & KeyEdit)
  | ({ readonly kind: 'addresses'; readonly ips: number } & OnSide)
  | ({ readonly kind: 'delete' } & OnSide);

export type UserOperation =
  | EditOperation
  | { readonly kind: 'service'; readonly side: Side; readonly object: number; readonly form: ServiceForm }
  /** An object of another client takes the place of a copy, or of a copy that it deletes. */
  | ({ readonly kind: 'foreign'; readonly isReplacing: boolean } & OnSynced)
  /** Another client applies a copy's text under another name: that of the copy of `at`, or one of its own. */
  | ({ readonly kind: 'clone'; readonly at: number | null } & OnSynced)
  | ({ readonly kind: 'damage' } & OnSynced & KeyEdit)
  /** A tenant writes the bookkeeping of a copy on its own object, with a record by which its values seem to come from the host. */
  | ({ readonly kind: 'forge'; readonly annotations: StringMap; readonly isCreated: boolean } & OnSynced)
  | ({ readonly kind: 'optOut'; readonly isOut: boolean } & OnSide)
  | ({ readonly kind: 'finalizer'; readonly isSet: boolean } & OnSide)
  /** A Secret or ConfigMap; `place`: under its own name, or where the copy of the virtual one belongs. */
  | {
      readonly kind: 'object';
      readonly side: Side;
      readonly plural: ReferencedPlural;
      readonly namespace: string;
      readonly name: string;
      readonly place: 'name' | 'target';
      readonly form: ObjectForm;
      readonly value: string;
    }
  /** A finalizer on such an object, which keeps it when it is deleted. */
  | {
      readonly kind: 'holdObject';
      readonly side: Side;
      readonly plural: ReferencedPlural;
      readonly namespace: string;
      readonly name: string;
      readonly place: 'name' | 'target';
      readonly isSet: boolean;
    }
  | { readonly kind: 'recreateOwner' }
  | { readonly kind: 'deleteLease' };

/** `unmarked`: on the host, without the bookkeeping of a copy. */
export type ServiceForm = 'selector' | 'plain' | 'unmarked' | 'absent';
export const SERVICE_TYPES = [
  'plain',
  'headless',
  'nodePort',
  'balanced',
  'balanced',
  'classed',
  'classed',
  'external',
  'selector',
] as const;
export type ServiceType = (typeof SERVICE_TYPES)[number];

export const ADMISSION_FORMS = ['annotates', 'stamps', 'strips', 'setsPort'] as const;
export type AdmissionForm = (typeof ADMISSION_FORMS)[number];

export type Operation = { readonly atMs: number } & (
  | UserOperation
  | { readonly kind: 'trouble'; readonly forMs: number; readonly rates: FaultRates }
  /** Another writer of a copy, so many times in a row. */
  | ({ readonly kind: 'fight'; readonly times: number } & OnSynced)
  /** Two agents rewrite an annotation, one in each cluster. */
  | ({ readonly kind: 'agents'; readonly forMs: number } & OnSynced)
  /** A webhook of the host changes the copies of a kind that are written. */
  | {
      readonly kind: 'admission';
      readonly plural: 'endpoints' | 'endpointslices';
      readonly form: AdmissionForm;
      readonly forMs: number;
    }
  /** vCluster starts again beside the daemon, with its own sync of these kinds on; none: its syncs are off. */
  | { readonly kind: 'vcluster'; readonly plurals: readonly BesidePlural[] }
  | { readonly kind: 'compact'; readonly side: Side }
  /** etcd is restored from a backup. `passes`: when the server is back, it has passed the revision that it had before. */
  | {
      readonly kind: 'restore';
      readonly side: Side;
      readonly revisions: number;
      readonly downMs: number;
      readonly outage: 'refused' | 'proxied';
      readonly passes: boolean;
    }
  | { readonly kind: 'restartController'; readonly side: Side }
  | { readonly kind: 'namespace'; readonly side: Side; readonly name: string; readonly forMs: number }
  | { readonly kind: 'crash'; readonly daemon: number; readonly afterWrites: number; readonly downMs: number }
  | { readonly kind: 'restart'; readonly daemon: number; readonly downMs: number }
  | { readonly kind: 'pause'; readonly daemon: number; readonly forMs: number }
  | { readonly kind: 'clockJump'; readonly daemon: number; readonly byMs: number }
  | { readonly kind: 'configure'; readonly settings: Partial<Settings>; readonly isRestart: boolean }
);

/** An operation without its time. */
export type Action = Operation extends infer O ? (O extends Operation ? Omit<O, 'atMs'> : never) : never;
