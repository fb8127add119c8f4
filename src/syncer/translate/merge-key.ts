/** The three-way merge of one annotation or label: which side follows which. Pure: the two objects, one of which contains the sync record,
 * are the only inputs, so a restart loses nothing.
 *
 * | flow     | virtual changed | only host changed      | neither                             | host only, never recorded |
 * |----------|-----------------|------------------------|-------------------------------------|---------------------------|
 * | both     | host follows    | virtual follows        | host follows (patches changed)      | virtual follows           |
 * | toHost   | host follows    | host is corrected      | host follows                        | stays, does not flow      |
 * | toVirtual| each keeps its  | virtual follows        | each keeps its                      | virtual follows           |
 * | none     | each keeps its  | each keeps its         | each keeps its                      | stays, does not flow      |
 *
 * Without a record the virtual side counts as changed; what only the host has is up to {@link KeyBase}. Values that another syncer has copied back
 * from the host never come here: see `echoes.ts`. */

import { arrivedEntry, entryWith, type Arrival, shortHash, type SyncedEntry } from './last-synced.ts';
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
  | {
      readonly kind: 'recorded';
      readonly entry: SyncedEntry | undefined;
      readonly arrival: Arrival;
    }
  | {
      readonly kind: 'lost';
      readonly hostOnly: 'remove' | 'keep' | 'take';
      /** The virtual key is on the host, but was not copied by this program. */
      readonly isFromHost: boolean;
    };

export type KeyPlan =
  /** The host gets the forward value, which may be none. */
  | { readonly kind: 'push' }
  /** The virtual side gets the reverse of the host's value; the host keeps what it has, or, if `isSettled`, gets what that translates to again. */
  | { readonly kind: 'take'; readonly isSettled?: boolean }
  /** Both sides stay as they are, and so does the record. */
  | { readonly kind: 'hold' }
  /** Neither side changes. */
  | { readonly kind: 'leave'; readonly isRecorded: boolean };

export interface KeyOutcome {
  readonly virtual: string | undefined;
  readonly host: string | undefined;
  readonly entry: SyncedEntry | undefined;
}

export const HOLD: KeyPlan = { kind: 'hold' };
const PUSH: KeyPlan = { kind: 'push' };
const TAKE: KeyPlan = { kind: 'take' };
const LEAVE: KeyPlan = { kind: 'leave', isRecorded: true };
const LEAVE_ALONE: KeyPlan = { kind: 'leave', isRecorded: false };

export function planKey(state: KeyState): KeyPlan {
  const { virtual, forward, flow, base } = state;
  if (flow === 'toVirtual' || flow === 'none') return planHostOwned(state);
  if (virtual === undefined && forward === undefined) return planHostOnly(state);
  const isMadeByPatch = virtual === undefined;
  if (flow === 'toHost' || isMadeByPatch || base.kind !== 'recorded') return PUSH;
  if (state.host === forward) return PUSH; // nothing to carry either way, and no hash to be computed
  return isHostAhead(state, base) ? TAKE : PUSH;
}

function planHostOwned({ virtual, host, flow, base }: KeyState): KeyPlan {
  if (flow === 'none' || base.kind === 'fresh') return LEAVE;
  if (base.kind === 'lost') return virtual === undefined && host !== undefined ? TAKE : LEAVE;
  return isHostAhead({ virtual, host }, base) ? TAKE : LEAVE;
}

function planHostOnly(state: KeyState): KeyPlan {
  const { host, flow, base } = state;
  if (host === undefined || base.kind === 'fresh') return PUSH;
  if (base.kind === 'lost') {
    return base.hostOnly === 'remove' ? PUSH : base.hostOnly === 'take' ? TAKE : LEAVE_ALONE;
  }
  const { entry, isDue } = arrivedEntry(base.entry, undefined, base.arrival);
  if (isDue && flow === 'both') return TAKE;
  if (entry === undefined) return flow === 'both' ? TAKE : LEAVE_ALONE;
  const [wasCopied, wasMadeByPatch] = [entry.virtual !== undefined, !entry.isFromHost];
  if (wasCopied || wasMadeByPatch) return PUSH;
  return flow === 'both' && isHostAhead(state, base) ? TAKE : LEAVE;
}

/** Only the host changed since the record was written, or what it changed then has not arrived on the virtual side. */
function isHostAhead(
  state: Pick<KeyState, 'virtual' | 'host'>,
  base: KeyBase & { readonly kind: 'recorded' },
): boolean {
  const virtual = hashOf(state.virtual);
  const { entry, isDue } = arrivedEntry(base.entry, virtual, base.arrival);
  return isDue || (virtual === entry?.virtual && hashOf(state.host) !== entry?.host);
}

export function isUncertain({ virtual, base }: KeyState): boolean {
  if (base.kind !== 'recorded' || base.entry?.incoming === undefined) return false;
  return arrivedEntry(base.entry, hashOf(virtual), base.arrival).isUncertain;
}

/** `reversed` is the host's value translated and patched back; it is only looked at where the plan is to take it. */
export function resolveKey(state: KeyState, plan: KeyPlan, reversed: string | undefined): KeyOutcome {
  const { virtual, host, forward } = state;
  switch (plan.kind) {
    case 'push':
      return outcome(state, [virtual, forward], isFromHost(state, forward));
    case 'hold':
      return { virtual, host, entry: heldEntry(state) };
    case 'leave':
      return plan.isRecorded ? outcome(state, [virtual, host], true) : { virtual, host, entry: undefined };
    case 'take': {
      const isHostOwned = state.flow === 'toVirtual';
      // The host's change means nothing to the virtual side: then it is drift.
      const isNothingThere = virtual === undefined && host === undefined;
      if (isTranslatedOtherwise(state, reversed)) return outcome(state, [virtual, forward], false);
      if (reversed === virtual && (virtual !== undefined || isNothingThere) && !isHostOwned) {
        return outcome(state, [virtual, forward], isFromHost(state, forward));
      }
      const isKept = isHostOwned || (reversed === undefined && forward === undefined);
      const settled = plan.isSettled === true && !isKept ? forward : host;
      const staysForeign = isHostOwned || reversed === undefined || isFromHost(state, settled);
      return outcome(state, [reversed, settled], staysForeign);
    }
  }
}

/** Without a record, what this program wrote on the host stays its own: once the virtual object has no such key, it would flow back. */
function heldEntry(state: KeyState): SyncedEntry | undefined {
  const { virtual, host, base } = state;
  if (base.kind === 'recorded') return base.entry;
  if (base.kind === 'fresh' || host === undefined) return undefined;
  const isOwn = virtual === undefined ? base.hostOnly === 'remove' : !base.isFromHost;
  return isOwn ? outcome(state, [virtual, host], false).entry : undefined;
}

/** The host holds what was recorded as incoming, but the patches have changed since: what it was is not known, so nothing may flow back. */
function isTranslatedOtherwise({ host, base }: KeyState, reversed: string | undefined): boolean {
  const entry = base.kind === 'recorded' ? base.entry : undefined;
  if (entry?.incoming === undefined || hashOf(host) !== entry.host) return false;
  return hashOf(reversed) !== entry.incoming.virtual;
}

export function followingSide(
  { virtual, host, base }: KeyState,
  plan: KeyPlan,
  result: KeyOutcome,
): 'host' | 'virtual' | undefined {
  if (base.kind !== 'recorded') return undefined;
  if (plan.kind === 'take' && result.virtual !== virtual) return 'virtual';
  if (plan.kind !== 'push' || result.host === host) return undefined;
  const value = hashOf(virtual);
  const { entry } = arrivedEntry(base.entry, value, base.arrival);
  return value === entry?.virtual ? undefined : 'host';
}

function outcome(
  state: KeyState,
  [virtual, host]: readonly [string | undefined, string | undefined],
  fromHost: boolean,
): KeyOutcome {
  const virtualHash = hashOf(virtual);
  const hostHash = host === virtual ? virtualHash : hashOf(host);
  const before = virtual === state.virtual ? virtualHash : hashOf(state.virtual);
  const wanted = { virtual: virtualHash, host: hostHash, isFromHost: fromHost };
  const recorded = state.base.kind === 'recorded' ? state.base.entry : undefined;
  return { virtual, host, entry: entryWith(wanted, before, recorded) };
}

/** Did another client put `wanted` on the host? Not when this program writes it, and not when the record says it did. */
function isFromHost({ virtual, host, base, forward }: KeyState, wanted: string | undefined): boolean {
  if (host === undefined || wanted !== host || base.kind === 'fresh') return false;
  if (base.kind === 'recorded') return base.entry?.host === undefined || base.entry.isFromHost;
  return virtual === undefined ? forward === undefined : base.isFromHost;
}

export function hashOf(value: string | undefined): string | undefined {
  return value === undefined ? undefined : shortHash(value);
}
