/** The rights to grant to a daemon or a fleet, also those that no start checks. For `rbac`, and never loaded by the daemon. Pure. */

import type { Config } from '../syncer/config/config.ts';
import { allRights } from '../syncer/rehearsal/all-rights.ts';
import { companionRights, type Right } from '../syncer/rights.ts';
import { fleetRights, memberRights } from './rights.ts';

/** Of a fleet without those on the kinds of which its members import objects. */
export function rightsToGrant(config: Config): readonly Right[] {
  return config.fleet.enabled
    ? [...fleetRights(config), ...memberRights(config), ...companionRights(config, false)]
    : allRights(config);
}
