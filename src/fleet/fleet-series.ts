/** How many members are in which state. */

import type { SeriesRegistry } from '../base/metrics/series.ts';
import { MEMBER_STATES, type MemberState } from './member.ts';

/** `states` is read at each scrape. */
export function fleetSeries(registry: SeriesRegistry, states: () => readonly MemberState[]): void {
  const members = registry.gauge(
    {
      name: 'endpoint_syncer_fleet_members',
      help: 'Members of the fleet by state; joined ones are synced.',
      labels: ['state'],
    },
    () => {
      const all = states();
      for (const state of MEMBER_STATES) byState.get(state)?.(all.filter((one) => one === state).length);
    },
  );
  const byState = new Map(MEMBER_STATES.map((state) => [state, members.of({ state })]));
}
