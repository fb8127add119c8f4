/**
 * The three-way merge of one annotation or label: which side follows which. Pure, and decided from the two objects alone, the sync
 * record being part of the host's, so a restart forgets nothing.
 *
 * | flow     | virtual changed | only host changed      | neither                             | host only, never recorded |
 * |----------|-----------------|------------------------|-------------------------------------|---------------------------|
 * | both     | host follows    | virtual follows        | host follows (patches changed)      | virtual follows           |
 * | toHost   | host follows    | host is put right      | host follows                        | stays, does not flow      |
 * | toVirtual| each keeps its  | virtual follows        | each keeps its                      | virtual follows           |
 * | none     | each keeps its  | each keeps its         | each keeps its                      | stays, does not flow      |
 *
 * Without a record the virtual side counts as changed; what only the host has is up to {@link KeyState.unrecorded}.
 */

import type { SyncedEntry } from './last-synced.ts';
import { shortHash } from './last-synced.ts';
import type { Flow } from './types.ts';

/** Everything known about one key. Undefined: not there. */
export interface KeyState {
  readonly virtual: string | undefined;
  readonly host: string | undefined;
  /** What the virtual object translates and patches to. */
  readonly forward: string | undefined;
  readonly flow: Flow;
  readonly base: KeyBase;
}

export type KeyBase =
  /** There is no host copy yet: nothing of the host counts. */
  | { readonly kind: 'fresh' }
  | { readonly kind: 'recorded'; readonly entry: SyncedEntry | undefined }
  | {
      readonly kind: 'lost';
      /** What to do with a key that only the host has. */
      readonly hostOnly: 'remove' | 'keep' | 'take';
      /** The virtual key is on the host, but not by our doing. */
      readonly isFromHost: boolean;
    };

export type KeyPlan =
  /** The host gets the forward value, which may be none. */
  | { readonly kind: 'push' }
  /** The virtual side gets the reverse of the host's value, and the host keeps what it has. */
  | { readonly kind: 'take' }
  /** Neither side changes. */
  | { readonly kind: 'leave'; readonly isRecorded: boolean };

/** What both sides should hold, and what the record will say about it. */
export interface KeyOutcome {
  readonly virtual: string | undefined;
  readonly host: string | undefined;
  /** Undefined: nothing to remember. */
  readonly entry: SyncedEntry | undefined;
}

const PUSH: KeyPlan = { kind: 'push' };
const TAKE: KeyPlan = { kind: 'take' };
const LEAVE: KeyPlan = { kind: 'leave', isRecorded: true };
const LEAVE_ALONE: KeyPlan = { kind: 'leave', isRecorded: false };

export function planKey(state: KeyState): KeyPlan {
  const { virtual, forward, flow, base } = state;
  if (flow === 'toVirtual' || flow === 'none') return planHostOwned(state);
  if (virtual === undefined && forward === undefined) return planHostOnly(state);
  // A key that a patch made has no virtual original that could follow.
  if (flow === 'toHost' || virtual === undefined || base.kind !== 'recorded') return PUSH;
  if (state.host === forward) return PUSH; // nothing to carry either way, and no hash to be computed
  return isHostAhead(state, base.entry) ? TAKE : PUSH;
}

function planHostOwned({ virtual, host, flow, base }: KeyState): KeyPlan {
  if (flow === 'none' || base.kind === 'fresh') return LEAVE;
  if (base.kind === 'lost') return virtual === undefined && host !== undefined ? TAKE : LEAVE;
  return isHostAhead({ virtual, host }, base.entry) ? TAKE : LEAVE;
}

function planHostOnly(state: KeyState): KeyPlan {
  const { host, flow, base } = state;
  if (host === undefined || base.kind === 'fresh') return PUSH;
  if (base.kind === 'lost') {
    return base.hostOnly === 'remove' ? PUSH : base.hostOnly === 'take' ? TAKE : LEAVE_ALONE;
  }
  const { entry } = base;
  if (entry === undefined) return flow === 'both' ? TAKE : LEAVE_ALONE;
  // Ours once: copied and removed on the virtual side since, or made by a patch that is gone.
  if (entry.virtual !== undefined || !entry.isFromHost) return PUSH;
  return flow === 'both' && isHostAhead(state, entry) ? TAKE : LEAVE;
}

/** Only the host changed since the record was written. */
function isHostAhead(state: Pick<KeyState, 'virtual' | 'host'>, entry: SyncedEntry | undefined): boolean {
  return hashOf(state.virtual) === entry?.virtual && hashOf(state.host) !== entry?.host;
}

/** `reversed` is the host's value translated and patched back; it is only looked at where the plan is to take it. */
export function resolveKey(state: KeyState, plan: KeyPlan, reversed: string | undefined): KeyOutcome {
  const { virtual, host, forward } = state;
  switch (plan.kind) {
    case 'push':
      return outcome(virtual, forward, isFromHost(state, forward));
    case 'leave':
      return plan.isRecorded ? outcome(virtual, host, true) : { virtual, host, entry: undefined };
    case 'take': {
      const isHostOwned = state.flow === 'toVirtual';
      // The host's change means nothing to the virtual side: then it is drift.
      if (reversed === virtual && virtual !== undefined && !isHostOwned) {
        return outcome(virtual, forward, isFromHost(state, forward));
      }
      const staysForeign = isHostOwned || reversed === undefined || isFromHost(state, host);
      return outcome(reversed, host, staysForeign);
    }
  }
}

function outcome(virtual: string | undefined, host: string | undefined, fromHost: boolean): KeyOutcome {
  const isAnywhere = virtual !== undefined || host !== undefined;
  const virtualHash = hashOf(virtual);
  const hostHash = host === virtual ? virtualHash : hashOf(host);
  const entry = { virtual: virtualHash, host: hostHash, isFromHost: fromHost };
  return { virtual, host, entry: isAnywhere ? entry : undefined };
}

/** Would `wanted` be on the host by somebody else's doing? Not when we write it, and not when the record says we did. */
function isFromHost({ virtual, host, base, forward }: KeyState, wanted: string | undefined): boolean {
  if (host === undefined || wanted !== host || base.kind === 'fresh') return false;
  if (base.kind === 'recorded') return base.entry?.host === undefined || base.entry.isFromHost;
  return virtual === undefined ? forward === undefined : base.isFromHost;
}

function hashOf(value: string | undefined): string | undefined {
  return value === undefined ? undefined : shortHash(value);
}
