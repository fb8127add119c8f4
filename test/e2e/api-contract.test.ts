/**
 * The recorded responses still equal those of a real kube-apiserver of that version. `UPDATE_GOLDEN=1` records them again.
 */

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { golden, minorVersion, writeGolden } from '../contract/golden.ts';
import { RawClient, type ServerAddress } from '../contract/raw-client.ts';
import { STEPS } from '../contract/steps.ts';
import { record } from '../contract/transcript.ts';
import { watchContract } from '../contract/watch-contract.ts';
import { suiteClusters } from './suite-clusters.ts';

function realServer(): ServerAddress {
  // The virtual cluster: no controllers run there that would change the objects.
  const { url, token, caFile } = suiteClusters().virtual;
  return { url, token, ca: readFileSync(caFile, 'utf8') };
}

describe('a kube-apiserver', () => {
  test('sends the recorded responses', async () => {
    await using client = new RawClient(realServer());
    const { json } = await client.send({ method: 'GET', path: '/version' });
    const version = minorVersion(json ?? {});
    const transcript = await record(client, STEPS, `contract-${randomBytes(4).toString('hex')}`);
    if (process.env['UPDATE_GOLDEN']) writeGolden(version, transcript);
    expect(transcript).toEqual(golden(version));
  });
});

watchContract('a kube-apiserver', async () => realServer());
