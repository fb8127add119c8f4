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
 * Without a record the virtual side counts as changed; what only the host has is up to {@link KeyBase}. */

import { arrivedEntry, entryWith, type Arrival, shortHash, type SyncedEntry } from './last-synced.ts';
import { UNPROVABLE, type Flow } from './types.ts';

/** Everything known about one key. Undefined: not there. */
export interface KeyState {
  readonly virtual: string | undefined;
  readonly host: string | undefined;
  /** What the virtual object translates and patches to. */
  readonly forward: string | undefined;
  readonly flow: Flow;
  /** See {@link FlowRules.rulesOf}. */
  readonly rules: string | undefined;
  readonly base: KeyBase;
  /** The values of both sides when they were in step last, as this process remembers them; undefined: it does not. */
  readonly agreed?: SidedValues | undefined;
  /** The entries of the last records that this process saw on the copy or wrote, the latest first; none, if they are not needed. */
  readonly remembered?: readonly SyncedEntry[];
  /** The entry of an earlier record that this process wrote and that has come back to the virtual object; undefined: none has. */
  readonly former?: SyncedEntry | undefined;
  /** The virtual object has the record of its copy: another syncer copies the host's annotations back. */
  readonly isRecordEchoed?: boolean;
  readonly restoresEcho?: boolean;
}

export interface SidedValues {
  readonly virtual: string | undefined;
  readonly host: string | undefined;
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
  | { readonly kind: 'leave'; readonly isRecorded: boolean }
  /** The virtual side holds what this program wrote on the host: another syncer has copied it back. Translated again, it would grow. The host and
   * the record stay as they are; the virtual side gets back the value that it had (`entry`), if that is known. */
  | { readonly kind: 'echo'; readonly entry: SyncedEntry };

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
  const echoed = echoedEntry(state);
  if (echoed !== undefined) return { kind: 'echo', entry: echoed };
  if (flow === 'toVirtual' || flow === 'none') return planHostOwned(state);
  if (virtual === undefined && forward === undefined) return planHostOnly(state);
  const isMadeByPatch = virtual === undefined;
  if (flow === 'toHost' || isMadeByPatch || base.kind !== 'recorded') return PUSH;
  if (state.host === forward) return PUSH; // nothing to carry either way, and no hash to be computed
  return isHostAhead(state, base) ? TAKE : PUSH;
}

/** Not synced for now. Its echo stays known, or the copied value would count as the virtual side's own as soon as the key is synced again. */
export function planHeldKey(state: KeyState): KeyPlan {
  const echoed = echoedEntry(state);
  return echoed === undefined ? HOLD : { kind: 'echo', entry: echoed };
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

/** What was in step before another syncer copied the host's value back; undefined: the virtual value is no such copy. */
function echoedEntry(state: KeyState): SyncedEntry | undefined {
  const { virtual, forward, base, isRecordEchoed = false } = state;
  // A value that the patches do not change cannot grow, and a user may well have written it.
  if (virtual === forward && !isRecordEchoed) return undefined;
  const value = hashOf(virtual);
  const arrival = base.kind === 'recorded' ? base.arrival : 'unknown';
  const entries = lastEntries(state);
  return isEchoOf(entries, value, arrival) ?? lateEcho(state, entries, value);
}

/** What another syncer has copied back is older than the last sync, whose values both sides keep. */
function lateEcho(
  { former }: KeyState,
  entries: readonly (SyncedEntry | undefined)[],
  value: string | undefined,
): SyncedEntry | undefined {
  const last = entries.find((entry) => entry !== undefined);
  const isOfFormer = former !== undefined && value === former.host && value !== former.virtual;
  return isOfFormer && value !== last?.virtual ? last : undefined;
}

function isEchoOf(
  entries: readonly (SyncedEntry | undefined)[],
  value: string | undefined,
  arrival: Arrival,
): SyncedEntry | undefined {
  return entries
    .map((entry) => arrivedEntry(entry, value, arrival))
    .find(({ entry, isDue }) => !isDue && value === entry?.host && value !== entry?.virtual)?.entry;
}

/** The last sync, from the record of the copy, or from the memory of this process where the copy has none, or an older one after a restore from a
 * backup. INVARIANT: never from the record that the virtual object has, because a tenant can write any; `former` is one that this process wrote.
 * INVARIANT: only what the rules in use have made, or the value of an earlier rule could be kept on the host by writing it on the virtual side.
 * What this process remembers is made by them, because other rules make another engine. */
function lastEntries({
  base,
  agreed,
  remembered = [],
  rules,
  isRecordEchoed = false,
}: KeyState): readonly (SyncedEntry | undefined)[] {
  const inStep = agreed && entryOf(agreed, rules);
  if (base.kind === 'fresh') return [inStep];
  const held = base.kind === 'recorded' ? base.entry : undefined;
  const isMemoryNeeded = isRecordEchoed || base.kind === 'lost';
  const recorded = isMemoryNeeded ? [held, ...remembered] : [held];
  const made = recorded.filter((entry) => entry !== undefined && isMadeBy(rules, entry));
  const isByOtherRules = held !== undefined && !made.includes(held);
  return isMemoryNeeded || isByOtherRules ? [...made, inStep] : made;
}

/** A value that is the same on both sides is made by no rule. */
function isMadeBy(rules: string | undefined, { virtual, host, incoming, rules: by }: SyncedEntry): boolean {
  return by === rules || (incoming === undefined && virtual === host);
}

function entryOf({ virtual, host }: SidedValues, rules: string | undefined): SyncedEntry {
  return recordedBy(rules, { virtual: hashOf(virtual), host: hashOf(host), isFromHost: false });
}

function recordedBy(rules: string | undefined, entry: SyncedEntry): SyncedEntry {
  if (rules === undefined || rules === UNPROVABLE || entry.virtual === entry.host) return entry;
  return { ...entry, rules };
}

/** The value that the virtual side had, proven by its hash; undefined: it is to stay, or neither memory nor a reverse patch knows it. */
function valueBeforeEcho(
  { agreed, restoresEcho = false }: KeyState,
  { virtual }: SyncedEntry,
  reversed: string | undefined,
): { readonly value: string | undefined } | undefined {
  if (!restoresEcho) return undefined;
  if (virtual === undefined) return { value: undefined };
  const value = [agreed?.virtual, reversed].find((candidate) => hashOf(candidate) === virtual);
  return value === undefined ? undefined : { value };
}

export function isUncertain({ virtual, base }: KeyState): boolean {
  if (base.kind !== 'recorded' || base.entry?.incoming === undefined) return false;
  return arrivedEntry(base.entry, hashOf(virtual), base.arrival).isUncertain;
}

/** `reversed` is the host's value translated and patched back; it is only looked at where the plan is to take it. */
export function resolveKey(state: KeyState, plan: KeyPlan, reversed: string | undefined): KeyOutcome {
  const { virtual, host, forward, base } = state;
  switch (plan.kind) {
    case 'push':
      return outcome(state, [virtual, forward], isFromHost(state, forward));
    case 'hold':
      return { virtual, host, entry: base.kind === 'recorded' ? base.entry : undefined };
    case 'echo': {
      const before = valueBeforeEcho(state, plan.entry, reversed);
      const entry = (base.kind === 'recorded' ? base.entry : undefined) ?? plan.entry;
      // A copy that is created gets the value that the one before it had.
      const kept = base.kind === 'fresh' ? state.agreed?.host : host;
      return { virtual: before === undefined ? virtual : before.value, host: kept, entry };
    }
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
  return { virtual, host, entry: entryWith(recordedBy(state.rules, wanted), before, recorded) };
}

/** Did another client put `wanted` on the host? Not when this program writes it, and not when the record says it did. */
function isFromHost({ virtual, host, base, forward }: KeyState, wanted: string | undefined): boolean {
  if (host === undefined || wanted !== host || base.kind === 'fresh') return false;
  if (base.kind === 'recorded') return base.entry?.host === undefined || base.entry.isFromHost;
  return virtual === undefined ? forward === undefined : base.isFromHost;
}

function hashOf(value: string | undefined): string | undefined {
  return value === undefined ? undefined : shortHash(value);
}
