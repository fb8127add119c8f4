/** Verifies the Secrets of a store: each is readable, has the right name and the right labels. */

import type { WatchClient } from '../../../kube/types.ts';
import type { KubeObject } from '../../../kube/object.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Random } from '../../../base/random.ts';
import type { StoreVerdict } from '../store.ts';
import { HostSecrets } from './host/host-secrets.ts';
import { RetryBudget } from './host/retry-budget.ts';
import { decodeSecret, OBJECT_TYPE } from './codec/secret-codec.ts';
import { SecretNames } from './codec/secret-names.ts';
import { NOTES_TYPE, readNotes } from './sharded-notes.ts';

export interface VerifySecretsOptions {
  readonly client: WatchClient;
  readonly namespace: string;
  /** Of the store. */
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
}

const TIMEOUT_MS = 10_000;

/** Read-only, so the API may run meanwhile. Rejects with `StoreError` when the host does not respond or denies access. */
export async function verifySecrets(options: VerifySecretsOptions): Promise<StoreVerdict> {
  const { client, namespace, clock, random } = options;
  const names = new SecretNames(options.name);
  const secrets = new HostSecrets(client, namespace);
  const { signal } = new AbortController();
  const budget = new RetryBudget({ namespace, clock, random, signal, timeoutMs: TIMEOUT_MS });
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
