/** Waiting for API servers: what is retried, what ends the start, and the advice. */

import { describe, expect, test } from 'vitest';
import { TerminalError } from '../../src/base/errors.ts';
import { silentLogger, type Logger } from '../../src/base/logger.ts';
import { untilResponse } from '../../src/syncer/clusters.ts';
import { MissingSecretError } from '../../src/kube/credentials/kubeconfig.ts';
import { failure } from '../../src/kube/status-error.ts';
import { TransportError, type ClusterName } from '../../src/kube/types.ts';
import { validConfig } from '../cli/config/setup.ts';
import { FakeClock } from '../support/fake-clock.ts';

interface Case {
  readonly error: Error;
  readonly cluster?: ClusterName;
  readonly isDryRun?: boolean;
  readonly isManaged?: boolean;
  readonly virtualHint?: string;
  readonly giveUpMs?: number;
}

/** Fails twice, then responds. */
async function connect({
  error,
  cluster = 'virtual',
  isDryRun = false,
  isManaged = false,
  virtualHint,
  giveUpMs,
}: Case) {
  const clock = new FakeClock();
  const stopping = new AbortController();
  const waits: string[] = [];
  const warnings: unknown[] = [];
  let attempts = 0;
  const config = validConfig('endpointSyncer: {name: vc, host: {namespace: team}}');
  const outcome = untilResponse(
    {
      config: { ...config, companion: { ...config.companion, isServed: isManaged } },
      clock,
      random: () => 0.5,
      logger: {
        ...silentLogger,
        warn: (fields, message) => void warnings.push({ ...fields, message }),
      } as Logger,
      signal: stopping.signal,
      isDryRun,
      giveUpMs,
      onWait: (reason) => void waits.push(reason),
      ...(virtualHint !== undefined && { virtualHint }),
    },
    cluster,
    async () => {
      attempts += 1;
      if (attempts < 3) throw error;
      return 'connected';
    },
  ).catch((thrown: unknown) => thrown);
  await clock.advanceAsync(60_000);
  return { outcome: await outcome, attempts, waits, warnings };
}

const away = new TransportError('no response');
const forbidden = failure(403, 'Forbidden', 'pods is forbidden');

describe('a cluster that does not respond yet', () => {
  test.each<[string, Case]>([
    ['no connection', { error: away }],
    ['no connection of a dry run', { error: away, isDryRun: true }],
    ['a server that is overloaded', { error: failure(503, 'ServiceUnavailable', 'later') }],
    [
      'what a virtual cluster refuses, while the key and token API is served',
      { error: forbidden, isManaged: true },
    ],
  ])('is waited for: %s', async (_, one) => {
    const { outcome, attempts, waits, warnings } = await connect(one);
    expect([outcome, attempts]).toEqual(['connected', 3]);
    expect(waits).toEqual([one.error.message, one.error.message]);
    expect(warnings[0]).toMatchObject({ message: 'cluster cannot be reached, waiting for it' });
  });

  test('ends a command that gives up before, with the reason', async () => {
    const { outcome, attempts } = await connect({ error: away, cluster: 'host', giveUpMs: 100 });
    expect([String(outcome), attempts]).toEqual([
      'TerminalError: cannot connect to the host cluster: no response',
      2,
    ]);
  });

  test('is reported with the hint for the virtual cluster only', async () => {
    const hints = async (cluster: ClusterName): Promise<unknown> =>
      (await connect({ error: away, cluster, virtualHint: 'set the server' })).warnings[0];
    expect(await hints('virtual')).toMatchObject({ hint: 'set the server' });
    expect(await hints('host')).not.toHaveProperty('hint');
  });
});

describe('a kubeconfig Secret that does not exist yet', () => {
  const error = new MissingSecretError('Secret team/vc-vc', failure(404, 'NotFound', 'no'));

  test('is waited for', async () => {
    const { outcome, warnings } = await connect({ error, cluster: 'host' });
    expect(outcome).toBe('connected');
    expect(warnings[0]).toMatchObject({ message: 'kubeconfig Secret does not exist, waiting for it' });
  });

  test('ends a dry run immediately', async () => {
    expect(await connect({ error, cluster: 'host', isDryRun: true })).toMatchObject({
      outcome: error,
      attempts: 1,
    });
  });
});

test.each<[string, Case, string]>([
  ['a refusal', { error: forbidden }, 'The virtual cluster refused: '],
  [
    'a refusal of the host, while the API is served',
    { error: forbidden, cluster: 'host', isManaged: true },
    'The host cluster refused: ',
  ],
  [
    'an expired token',
    { error: failure(401, 'Unauthorized', 'no'), cluster: 'host' },
    'Renew the token or certificate there.',
  ],
  [
    'a request without a credential',
    { error: failure(403, 'Forbidden', 'User "system:anonymous" cannot get path') },
    'No credential reached it',
  ],
  [
    'an error of the configuration',
    { error: new TerminalError('is not set'), isManaged: true },
    'is not set',
  ],
])('%s ends the start', async (_, one, message) => {
  const { outcome, attempts } = await connect(one);
  expect(outcome).toBeInstanceOf(TerminalError);
  expect([String(outcome).includes(message), attempts]).toEqual([true, 1]);
});
