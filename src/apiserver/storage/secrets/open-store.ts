/** Opens the store after checking its permissions, so that a missing one is reported at the start. */

import { missingRights, type WantedRight } from '../../../kube/access-review.ts';
import { TerminalError, messageOf } from '../../../base/errors.ts';
import { isTransient } from '../../../kube/status-error.ts';
import { retry, type BackoffLimits } from '../../../base/retry.ts';
import { StoreError, type StoreVerdict } from '../store.ts';
import { KubernetesStore, type KubernetesStoreOptions } from './kubernetes-store.ts';
import type { KubeObject } from '../../../kube/object.ts';
import { HostSecrets, type HostSecretsOptions } from './host-secrets.ts';
import { decodeSecret, OBJECT_TYPE, SecretNames } from './secret-codec.ts';
import { NOTES_TYPE, readNotes } from './sharded-notes.ts';

const VERBS = ['get', 'list', 'watch', 'create', 'patch', 'delete'];
const CONNECT_DELAYS: BackoffLimits = { baseMs: 500, maxMs: 15_000 };

/**
 * Resolves when the store can be used. Logs and retries while the host does not respond, until `signal` aborts; then it rejects with
 * `StoreError` `closed`. Rejects with a `TerminalError` that names every missing permission.
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
    `managementApi.store: the kubernetes driver stores objects as Secrets, and the user of the host cluster cannot ${verbs} ` +
      `secrets in namespace ${JSON.stringify(namespace)}. Grant these verbs by a Role in that namespace, ` +
      'which endpoint-syncer rbac prints, or choose another driver.',
  );
}

async function untilAnswered<T>(
  { clock, random, logger }: KubernetesStoreOptions,
  signal: AbortSignal,
  ask: () => Promise<T>,
): Promise<T> {
  try {
    return await retry(ask, {
      ...CONNECT_DELAYS,
      clock,
      random,
      signal,
      isRetryable: isTransient,
      onRetry(error, delayMs) {
        const message = messageOf(error);
        const fields = { error: message, delayMs: Math.round(delayMs) };
        logger.warn(fields, 'the host cluster of the store does not respond yet');
      },
    });
  } catch (error) {
    if (signal.aborted) throw new StoreError('closed', 'the store was closed before it was open');
    throw error;
  }
}

// Verifies the Secrets of a store: each is readable, has the right name and the right labels.

export interface VerifySecretsOptions extends HostSecretsOptions {
  /** Of the store. */
  readonly name: string;
}

/** Read-only, so the API may run meanwhile. Rejects with `StoreError` when the host does not respond or denies access. */
export async function verifySecrets(options: VerifySecretsOptions): Promise<StoreVerdict> {
  const names = new SecretNames(options.name);
  const secrets = new HostSecrets(options, new AbortController().signal);
  const budget = secrets.budget();
  // By type, which is immutable: the labels may be damaged.
  const objects = await budget.read((request) => secrets.listOfType(OBJECT_TYPE, request));
  const notes = await budget.read((request) => secrets.listOfType(NOTES_TYPE, request));
  const ours = (all: readonly KubeObject[]): KubeObject[] =>
    all.filter(({ metadata }) => names.mayBeOurs(metadata.name, metadata.labels ?? {}));
  const found = ours(objects.secrets);
  const problems = [
    ...found.flatMap((secret) => problemOf(secret, objectProblem(names, secret))),
    ...ours(notes.secrets).flatMap((secret) =>
      problemOf(
        secret,
        readNotes(secret) === undefined ? 'its notes cannot be read and are lost' : undefined,
      ),
    ),
  ];
  const sound = found.filter((secret) => objectProblem(names, secret) === undefined);
  return { problems, objects: sound.length, revision: objects.revision };
}

function objectProblem(names: SecretNames, secret: KubeObject): string | undefined {
  const decoded = decodeSecret(names, secret);
  switch (decoded.state) {
    case 'held':
      return undefined;
    case 'damaged':
      return decoded.why;
    case 'terminating':
      return 'it is being deleted but has a finalizer: remove the finalizer';
  }
}

function problemOf({ metadata }: KubeObject, problem: string | undefined): string[] {
  return problem === undefined ? [] : [`Secret ${metadata.name}: ${problem}`];
}
