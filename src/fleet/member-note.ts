/** Why a member is not synced, or not as configured, as a note on its Lease: only the process knows it, and commands read only the host. */

import { sleep, type Clock } from '../base/clock.ts';
import { LEASES, leaseWith } from '../kube/lease.ts';
import type { KubeObject, NamespacedName, StringMap } from '../kube/object.ts';
import { ignoreNotFound, isAlreadyExists, isConflict, isTransient } from '../kube/status-error.ts';
import type { ClusterClient } from '../kube/types.ts';
import { FIELD_MANAGER } from '../syncer/translate/bookkeeping.ts';
import type { MemberStatus } from './member.ts';
import type { Replicas } from './replicas.ts';

/** Annotation of the Lease of a member: `REPLICA STATE: REASON`; '' for none. */
const NOTE = 'endpoint-syncer/state';
const REASON_CHARS_MAX = 2048;
const RETRY_MS = 2000;

/** Holds for as long as the replica that wrote it is live and no other process holds the Lease: one that has crashed cannot remove it. */
export interface Note {
  readonly replica: string;
  readonly state: string;
  readonly reason: string;
}

export function noteOf(lease: KubeObject | undefined): Note | undefined {
  const [, replica, state, reason] =
    /^(\S+) (\w+): (.*)$/su.exec(lease?.metadata.annotations?.[NOTE] ?? '') ?? [];
  return replica && state && reason ? { replica, state, reason } : undefined;
}

/** What the holder of the Lease adds to its annotations, so that no note of another replica, which it has replaced, is left. */
export function withoutNotes(lease: KubeObject | undefined, holder: string): StringMap {
  const note = noteOf(lease);
  return note === undefined || note.replica === holder ? {} : { [NOTE]: '' };
}

export interface MemberNoteOptions {
  readonly client: ClusterClient;
  readonly lease: NamespacedName;
  /** Those of every Lease of a member. */
  readonly annotations: () => StringMap;
  readonly replicas: Pick<Replicas, 'identity' | 'signal'>;
  readonly clock: Clock;
}

export class MemberNote {
  readonly #options: MemberNoteOptions;
  #wanted = '';
  /** Undefined: the outcome of the last write is unknown. */
  #stored: string | undefined = '';
  #isWriting = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: MemberNoteOptions) {
    this.#options = options;
  }

  /** What every command finds out by itself has no note. */
  show({ state, reason }: MemberStatus): void {
    if (state === 'limited' || state === 'failed')
      this.#want(`${this.#options.replicas.identity} ${state}: ${reason.slice(0, REASON_CHARS_MAX)}`);
    // An attempt that has only begun changes nothing about it.
    else if (state !== 'starting' || reason !== '') this.#want('');
  }

  /** Resolves when the note is removed, or this replica leaves, after which no note of it holds. */
  async remove(): Promise<void> {
    this.#want('');
    await this.#writing;
  }

  #want(text: string): void {
    this.#wanted = text;
    if (!this.#isWriting) this.#writing = this.#write();
  }

  async #write(): Promise<void> {
    const { clock, replicas } = this.#options;
    this.#isWriting = true;
    while (this.#stored !== this.#wanted && !replicas.signal.aborted) {
      const text = this.#wanted;
      try {
        this.#stored = undefined;
        await this.#put(text);
        this.#stored = text;
      } catch (error) {
        // Without the right, there is only the Event.
        if (isTransient(error) || isConflict(error) || isAlreadyExists(error))
          await sleep(clock, RETRY_MS, replicas.signal);
        else this.#stored = text;
      }
    }
    this.#isWriting = false;
  }

  async #put(text: string): Promise<void> {
    const { annotations, client, lease, replicas } = this.#options;
    const { signal } = replicas;
    const current = await ignoreNotFound(client.get(LEASES, lease, { signal }));
    // The note of another replica, which syncs the member now, stays.
    if (text === '' && noteOf(current)?.replica !== replicas.identity) return;
    const noted = leaseWith(current, lease, { ...annotations(), [NOTE]: text });
    const options = { fieldManager: FIELD_MANAGER, signal };
    if (current === undefined) await client.create(LEASES, noted, options);
    else await client.update(LEASES, noted, options);
  }
}
