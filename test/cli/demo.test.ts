/** The list of samples that `demo --once` prints. */

import { expect, test } from 'vitest';
import { listSamples } from '../../src/cli/demo.ts';
import type { KubeObject } from '../../src/kube/object.ts';

test('the samples are listed with their copies, and why one has none', () => {
  const endpoints = (name: string): KubeObject => ({ metadata: { namespace: 'shop', name } });
  const ports = [{ port: 1 }];
  const copy: KubeObject = {
    metadata: { namespace: 'team-demo', name: 'db-x-shop-x-demo' },
    subsets: [
      { addresses: [{ ip: '10.0.0.1' }], ports },
      { addresses: [{ ip: '10.0.0.2' }], ports },
    ],
  };
  const none = { copy: undefined, notSynced: undefined, latencyMs: undefined };
  const { rows } = listSamples([
    { ...none, endpoints: endpoints('db'), copy, latencyMs: 2 },
    { ...none, endpoints: endpoints('legacy-mainframe') },
    { ...none, endpoints: endpoints('web'), notSynced: 'its Service has a selector' },
  ]);
  expect(rows.map(({ cells }) => cells)).toEqual([
    ['shop/db', 'team-demo/db-x-shop-x-demo', '10.0.0.1,10.0.0.2', 'synced in 2.0 ms'],
    ['shop/legacy-mainframe', '-', '-', 'skipped: no copy on the host'],
    ['shop/web', '-', '-', 'skipped: its Service has a selector'],
  ]);
  expect(rows.map(({ json }) => [json['state'], json['latencyMs']])).toEqual([
    ['synced', 2],
    ['skipped', null],
    ['skipped', null],
  ]);
});
