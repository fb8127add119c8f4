/** What the simulated API server does that a real one does. */

import { expect, test } from 'vitest';
import { simClock } from './process-clock.ts';
import { SimCluster } from './sim-cluster.ts';

test('a restored backup has the namespaces whose deletion it does not know', () => {
  const cluster = new SimCluster('virtual', simClock());
  const create = (name: string): void =>
    void cluster.create('secrets', { metadata: { namespace: 'shop', name } }, { manager: 'user' });
  create('a');
  cluster.setNamespace('old', 'terminating');
  create('b');
  create('c');
  cluster.setNamespace('shop', 'terminating');
  cluster.setNamespace('shop', 'gone');
  cluster.restore(1, 'refused');
  expect(['old', 'shop'].map((name) => cluster.hasNamespace(name))).toEqual([false, true]);
  create('d');
});
