/** Opens the store: first the rights, so that a missing one is named before anything depends on it. */

import { missingRights, type WantedRight } from '../cluster/access-review.ts';
import { TransportError } from '../cluster/types.ts';
import { TerminalError } from '../kube/errors.ts';
import { StatusError } from '../kube/status-error.ts';
import { sleep } from '../lib/clock.ts';
import { backoffDelayMs } from '../queue/backoff.ts';
import { StoreError } from '../store/types.ts';
import { KubernetesStore, type KubernetesStoreOptions } from './kubernetes-store.ts';

const VERBS = ['get', 'list', 'watch', 'create', 'patch', 'delete'];
const WAIT_BASE_MS = 500;
const WAIT_MAX_MS = 15_000;

/**
 * Resolves when the store can be used. Waits for a host that does not answer, saying so in the log, until `signal` aborts; then it
 * rejects with `StoreError` `closed`. Rejects with a `TerminalError` that names every missing right.
 */
export async function openKubernetesStore(
  options: KubernetesStoreOptions,
  signal: AbortSignal = new AbortController().signal,
): Promise<KubernetesStore> {
  await checkRights(options, signal);
  const store = new KubernetesStore(options);
  await store.start(signal);
  return store;
}

async function checkRights(options: KubernetesStoreOptions, signal: AbortSignal): Promise<void> {
  const { client, namespace } = options;
  const wanted = VERBS.map((verb): WantedRight => ({ verb, group: '', resource: 'secrets', namespace }));
  const missing = await untilAnswered(options, signal, () => missingRights(client, wanted, { signal }));
  if (missing.length === 0) return;
  const verbs = missing.map(({ verb }) => verb).join(', ');
  throw new TerminalError(
    `managementApi.store: the kubernetes driver keeps its objects as Secrets, and the user of the host cluster may not ${verbs} ` +
      `secrets in namespace ${JSON.stringify(namespace)}. Grant these verbs by a Role in that namespace ` +
      '(docs/management-store.md has it), or choose another driver.',
  );
}

async function untilAnswered<T>(
  { clock, random, logger }: KubernetesStoreOptions,
  signal: AbortSignal,
  ask: () => Promise<T>,
): Promise<T> {
  for (let failures = 0; ; failures++) {
    if (signal.aborted) throw new StoreError('closed', 'the store was closed before it was open');
    try {
      return await ask();
    } catch (error) {
      if (signal.aborted) continue;
      const isPassing =
        error instanceof TransportError ||
        (error instanceof StatusError && (error.code === 429 || error.code >= 500));
      if (!isPassing) throw error;
      const capMs = backoffDelayMs(failures, WAIT_BASE_MS, WAIT_MAX_MS);
      const delayMs = Math.round(capMs / 2 + (random() * capMs) / 2);
      logger.warn({ error: error.message, delayMs }, 'the host cluster of the store does not answer yet');
      await sleep(clock, delayMs, signal);
    }
  }
}
