/** What the simulated API server does that a real one does. */

import { expect, test } from 'vitest';
import { startControllers } from './host-controllers.ts';
import { simClock, Steps } from './process-clock.ts';
import { SimCluster } from './sim-cluster.ts';

/** What a namespace is in the backup of each revision; a Secret in another one is written after each change of it. */
const NAMESPACE_STATES = [
  { revision: 101, isTerminating: false, accepts: true },
  { revision: 102, isTerminating: true, accepts: false },
  { revision: 103, isTerminating: false, accepts: false },
  { revision: 104, isTerminating: false, accepts: true },
];

test.each(NAMESPACE_STATES)(
  'a restored backup of revision $revision has the namespaces as they were',
  ({ revision, isTerminating, accepts }) => {
    const cluster = new SimCluster('virtual', simClock());
    const create = (namespace: string, name: string): void =>
      void cluster.create('secrets', { metadata: { namespace, name } }, { manager: 'user' });
    create('other', 'a');
    for (const state of ['terminating', 'gone', 'active'] as const) {
      cluster.setNamespace('shop', state);
      create('other', state);
    }
    cluster.restore(104 - revision, 'refused');
    expect(cluster.terminatingNamespaces).toEqual(isTerminating ? ['shop'] : []);
    expect(cluster.hasNamespace('shop')).toBe(accepts);
    // Afterwards, too.
    cluster.setNamespace('shop', 'terminating');
    create('other', 'b');
    cluster.restore(0, 'refused');
    expect(cluster.terminatingNamespaces).toEqual(['shop']);
  },
);

test.each([1, 2])(
  'the deletion of a namespace goes on after the restore of a backup, %i revisions back',
  async (revisions) => {
    const clock = simClock();
    const cluster = new SimCluster('virtual', clock);
    const controllers = startControllers(cluster, clock);
    for (const name of ['a', 'b', 'c'])
      cluster.create('secrets', { metadata: { namespace: 'shop', name } }, { manager: 'user' });
    controllers.deleteNamespace('shop');
    const steps = new Steps(clock);
    await steps.run(clock.nowMs + 1000);
    cluster.restore(revisions, 'refused');
    controllers.restart();
    expect(cluster.list('secrets')).toHaveLength(revisions);
    await steps.run(clock.nowMs + 1000);
    expect(cluster.list('secrets')).toEqual([]);
    controllers.createNamespace('shop');
    expect(cluster.hasNamespace('shop')).toBe(true);
  },
);
