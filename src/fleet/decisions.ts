/**
 * What the texts of each vCluster decide. Each version of them is read once: a replica that was not live for a moment decides about all vClusters again,
 * most of which have not changed.
 */

import type { Clock } from '../base/clock.ts';
import { jsonEquals } from '../base/json.ts';
import { TokenBuckets, type Rate } from '../base/token-bucket.ts';
import { keyOf, type KubeObject, type ObjectKey } from '../kube/object.ts';
import {
  decideByAccess,
  decideByConfig,
  decideByPresence,
  memberTexts,
  type TextDecision,
} from './decide-member.ts';
import type { FleetDiscovery } from './discovery.ts';
import type { MemberRules } from './member-config.ts';
import type { VclusterObjects } from './vcluster.ts';
import { UnreadableError, type ValuesReader } from './values-reader.ts';

export interface DecisionsOptions {
  readonly discovery: Pick<FleetDiscovery, 'readAccess' | 'readValues'>;
  readonly reader: Pick<ValuesReader, 'memberConfig'>;
  readonly rules: MemberRules;
  /** It is to be asked about the vCluster again, after so long. */
  readonly again: (vcluster: ObjectKey, afterMs: number) => void;
  /** The host did not respond. */
  readonly failed: (vcluster: ObjectKey, error: unknown) => void;
  readonly clock: Clock;
}

/** The versions, as the caches have them, and what they decide. */
interface Kept {
  readonly access: KubeObject | undefined;
  readonly values: KubeObject | undefined;
  readonly overlay: KubeObject | undefined;
  readonly rules: MemberRules;
  readonly ofAccess: TextDecision | undefined;
  readonly ofValues: TextDecision;
  /** Monotonic: it is read again afterwards. */
  readonly untilMs: number;
}

/** Of one namespace, whose objects may be long and change all the time: more than its members change. */
const READS: Rate = { burst: 100, perSecond: 2 };
/** What could not be read in time is read again, because the machine may have been slow. */
const UNREADABLE_MS = 10 * 60_000;

export class Decisions {
  readonly #options: DecisionsOptions;
  readonly #kept = new Map<ObjectKey, Kept>();
  readonly #reading = new Set<ObjectKey>();
  readonly #reads: TokenBuckets;
  #rules: MemberRules;

  constructor(options: DecisionsOptions) {
    this.#options = options;
    this.#rules = options.rules;
    this.#reads = new TokenBuckets(READS, options.clock);
  }

  get isReading(): boolean {
    return this.#reading.size > 0;
  }

  /** What is kept stays valid if the members have the same in common as before. */
  use(rules: MemberRules): void {
    const { defaults, host } = this.#rules;
    if (!jsonEquals(defaults, rules.defaults) || host.namespace !== rules.host.namespace) this.#rules = rules;
  }

  /** `known`: as the caches have it. Undefined: it is being read, and is asked for again afterwards. */
  of(known: VclusterObjects): TextDecision | undefined {
    const decided = decideByPresence(known);
    if (decided !== undefined) return decided;
    const key = keyOf(known);
    const kept = this.#kept.get(key);
    if (kept !== undefined && this.#hasAccess(kept, known) && this.#hasValues(kept, known))
      return kept.ofAccess ?? kept.ofValues;
    void this.#read(key, known, kept);
    return undefined;
  }

  forget(key: ObjectKey): void {
    this.#kept.delete(key);
  }

  #hasAccess(kept: Kept, { access }: VclusterObjects): boolean {
    return kept.access === access;
  }

  #hasValues(kept: Kept, { values, overlay }: VclusterObjects): boolean {
    return (
      kept.values === values &&
      kept.overlay === overlay &&
      kept.rules === this.#rules &&
      this.#options.clock.monotonicMs() < kept.untilMs
    );
  }

  async #read(key: ObjectKey, known: VclusterObjects, kept: Kept | undefined): Promise<void> {
    const { again, failed } = this.#options;
    if (this.#reading.has(key)) return;
    const waitMs = this.#reads.take(known.namespace);
    if (waitMs > 0) {
      again(key, Math.ceil(waitMs));
      return;
    }
    this.#reading.add(key);
    try {
      this.#kept.set(key, await this.#decide(known, kept));
    } catch (error) {
      failed(key, error);
      return;
    } finally {
      this.#reading.delete(key);
    }
    again(key, 0);
  }

  async #decide(known: VclusterObjects, kept: Kept | undefined): Promise<Kept> {
    const { discovery } = this.#options;
    const rules = this.#rules;
    const isAccessKept = kept !== undefined && this.#hasAccess(kept, known);
    const ofAccess = isAccessKept ? kept.ofAccess : decideByAccess(known, await discovery.readAccess(known));
    const ofValues =
      kept !== undefined && this.#hasValues(kept, known) ? kept : await this.#readValues(known, rules);
    const { access, values, overlay } = known;
    return { access, values, overlay, rules, ofAccess, ...pick(ofValues) };
  }

  async #readValues(known: VclusterObjects, rules: MemberRules): Promise<Pick<Kept, 'ofValues' | 'untilMs'>> {
    const { clock, discovery, reader } = this.#options;
    const { namespace, name } = known;
    const texts = memberTexts(known, await discovery.readValues(known));
    if ('kind' in texts) return { ofValues: texts, untilMs: Infinity };
    const { defaults, host, commandLine } = rules;
    const sources = { defaults, host, commandLine, ...texts, vcluster: { namespace, name } };
    try {
      return { ofValues: decideByConfig(await reader.memberConfig(sources)), untilMs: Infinity };
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      const reason = `Secret and ConfigMap of vCluster ${keyOf(known)}: ${error.message}`;
      return { ofValues: { kind: 'invalid', reason }, untilMs: clock.monotonicMs() + UNREADABLE_MS };
    }
  }
}

function pick({ ofValues, untilMs }: Pick<Kept, 'ofValues' | 'untilMs'>): Pick<Kept, 'ofValues' | 'untilMs'> {
  return { ofValues, untilMs };
}
