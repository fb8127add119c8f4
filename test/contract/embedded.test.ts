/** The responses of the embedded server equal those of a kube-apiserver. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startEmbeddedCluster, type EmbeddedCluster } from '../../src/embedded-cluster/embedded-cluster.ts';
import { expectedOf, golden } from './golden.ts';
import { RawClient } from './raw-client.ts';
import { STEPS } from './steps.ts';
import { record, type Transcript } from './transcript.ts';
import { watchContract } from './watch-contract.ts';

let cluster: EmbeddedCluster;
let answers: Transcript;

beforeAll(async () => {
  cluster = await startEmbeddedCluster({ name: 'contract' });
  await using client = new RawClient({ url: cluster.url });
  answers = await record(client, STEPS, 'contract-embedded');
});

afterAll(() => cluster[Symbol.asyncDispose]());

describe('the embedded server responds like a kube-apiserver', () => {
  const recorded = golden();

  test('every recorded response belongs to a step', () => {
    expect(Object.keys(recorded).toSorted()).toEqual(STEPS.map(({ id }) => id).toSorted());
  });

  test.each(STEPS.map((step) => [step.id, step] as const))('%s', (id, step) => {
    const expected = expectedOf(step, recorded);
    expect(answers[id]).toEqual(expected);
  });
});

watchContract('the embedded server', async () => ({ url: cluster.url }));
