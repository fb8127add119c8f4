/** What the host's controllers delete now or in a while: no user has deleted that. */

import type { Clock } from '../../base/clock.ts';
import { Expiring } from '../../base/expiring.ts';
import type { ObjectKey } from '../../kube/object.ts';

/** Longer than an endpoints controller is behind. */
const KEPT_MS = 10 * 60_000;

export class ExpectedDeletions {
  /** Host Services, there or not, whose Endpoints they may still delete: the Service was deleted lately, or a copy while there was no Service. API
   * servers before 1.37 delete at once, the endpoints controller once it has worked through the deletions before that one. */
  readonly ofServices: Expiring<ObjectKey, true>;
  /** Host namespaces that ended lately, created again or not. */
  readonly ofNamespaces: Expiring<string, true>;

  constructor(clock: Clock) {
    this.ofServices = new Expiring(clock, () => KEPT_MS);
    this.ofNamespaces = new Expiring(clock, () => KEPT_MS);
  }
}
