/** One history against two replicas of the key API on one host: keys are revoked while the host is restored, fails and lags behind. */

import { randomBytes } from 'node:crypto';
import { KeyDigests, isSameDigest } from '../../src/access-keys/credentials/access-key.ts';
import { MasterKey } from '../../src/access-keys/credentials/master-key.ts';
import type { Keys } from '../../src/access-keys/keys/keys.ts';
import { indexedKey } from '../../src/access-keys/keys/key-index.ts';
import { performAction } from '../../src/apiserver/objects/object-registry.ts';
import { patchObject } from '../../src/apiserver/objects/object-patch.ts';
import type { Written } from '../../src/apiserver/objects/object-writer.ts';
import type { Target } from '../../src/apiserver/objects/resource-definition.ts';
import { userNamed } from '../../src/apiserver/user.ts';
import { decodeSecret, SecretNames } from '../../src/apiserver/storage/secrets/secret-codec.ts';
import { KubernetesStore } from '../../src/apiserver/storage/secrets/kubernetes-store.ts';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { SECRETS } from '../../src/kube/object.ts';
import type { RequestOptions } from '../../src/kube/types.ts';
import { keyOf, makeKeys, MASTER_BYTES } from '../access-keys/keys/key-server.ts';
import { seededRandom } from '../support/random.ts';
import { CALM, Faults, type FaultRates } from './world/faults.ts';
import { SimClient } from './world/sim-client.ts';
import { ProcessClock, simClock } from './world/process-clock.ts';
import { SimCluster } from './world/sim-cluster.ts';

const NAMESPACE = 'keys';
const STORE = 'management';
const KEYS = 6;
/** After a disturbance, the other replica knows all revocations by then: an idle watch is checked after 60 s, a silent one ends after 150 s. */
const BOUND_MS = 165_000;
/** A restore takes longer than a broken connection that is resumed. */
const OUTAGE_MS_MIN = 6000;
const STEPS_MAX = 400_000;

/** What a host does to its clients. Its lists are never stale: a read without a resourceVersion is as recent as etcd. */
const TROUBLE: FaultRates = {
  ...CALM,
  refused: 0.2,
  lostAnswers: 0.1,
  garbled: 0.05,
  hung: 0.05,
  eventsTwice: 0.2,
  briefWatches: 0.5,
  stalledWatches: 0.2,
  latencyMaxMs: 400,
};

interface Replica {
  readonly name: string;
  readonly keys: Keys;
  readonly store: KubernetesStore;
}

/** A secret whose revocation was acknowledged, unless a restore has undone it. */
interface Dead {
  readonly by: Replica;
  readonly atMs: number;
}

/** Violations of: an acknowledged revocation is final, at once where it was acknowledged, and elsewhere after {@link BOUND_MS}. */
export async function runKeyHistory(seed: number, steps: number): Promise<string[]> {
  const run = new KeyRun(seed);
  return run.run(steps);
}

class KeyRun {
  readonly #random: () => number;
  readonly #clock = simClock();
  readonly #cluster = new SimCluster('host', this.#clock);
  readonly #faults: Faults;
  readonly #names = new SecretNames(STORE);
  readonly #digests = new KeyDigests(new MasterKey(MASTER_BYTES, randomBytes).pepper);
  /** By key name, the newest last. */
  readonly #secrets = new Map<string, string[]>();
  readonly #dead = new Map<string, Dead>();
  readonly #violations: string[] = [];
  #disturbedMs = 0;
  #made = 0;
  #steps = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.#faults = new Faults(seededRandom(seed ^ 0x5eed));
  }

  async run(steps: number): Promise<string[]> {
    const replicas = [this.#replica('a'), this.#replica('b')];
    for (const { store, keys } of replicas)
      await this.#until(store.start(new AbortController().signal).then(() => keys.start()));
    for (let i = 0; i < KEYS; i++) this.#create(this.#one(replicas));
    for (let step = 0; step < steps && this.#violations.length === 0; step++) {
      await this.#advance(this.#random() < 0.1 ? 90_000 : this.#random() * 4000);
      this.#act(this.#one(replicas));
      for (const replica of replicas) this.#probe(replica, this.#one([...this.#secrets.values()].flat()));
    }
    await this.#settle(replicas);
    for (const { keys, store } of replicas)
      await this.#until(keys.stop().then(() => store[Symbol.asyncDispose]()));
    return this.#violations;
  }

  #replica(name: string): Replica {
    const process = new ProcessClock(this.#clock);
    const client = new SecretsClient({
      cluster: this.#cluster,
      clock: this.#clock,
      process,
      faults: this.#faults,
      manager: 'endpoint-syncer',
      committed: () => undefined,
    });
    const parts = { namespace: NAMESPACE, name: STORE, clock: process, random: this.#random };
    const store = new KubernetesStore({ ...parts, client, logger: silentLogger });
    return { name, store, keys: makeKeys(store, { clock: process }) };
  }

  #act(replica: Replica): void {
    const draw = this.#random();
    if (draw < 0.4) this.#revoke(replica, this.#one([...this.#secrets.keys()]));
    else if (draw < 0.55) this.#create(replica);
    else if (draw < 0.65) this.#relabel(replica, this.#one([...this.#secrets.keys()]));
    else if (draw < 0.8) this.#trouble();
    else if (draw < 0.85) this.#cluster.compact();
    else this.#restore();
  }

  #create({ keys }: Replica): void {
    const name = `key-${++this.#made}`;
    const body = { metadata: { name }, spec: { displayName: name, user: 'u', type: 'User', ttl: 0 } };
    this.#done(keys.registry.create(this.#target(keys, ''), body, CONTEXT), (written) =>
      this.#secrets.set(name, [keyOf(written.object)]),
    );
  }

  #relabel({ keys }: Replica, name: string): void {
    this.#done(this.#patch(keys, name, { metadata: { labels: { at: String(this.#clock.nowMs) } } }));
  }

  #revoke(replica: Replica, name: string): void {
    const { keys } = replica;
    const revoked = this.#secrets.get(name)?.at(-1) ?? '';
    const how = this.#random();
    if (how < 0.4) this.#done(this.#delete(keys, name), () => this.#acknowledged(replica, revoked));
    else if (how < 0.7) {
      const disabled = this.#patch(keys, name, { spec: { disabled: true } });
      this.#done(disabled, () => this.#acknowledged(replica, revoked));
    } else {
      this.#done(this.#rotate(keys, name), (written) => {
        this.#secrets.get(name)?.push(keyOf(written.object));
        this.#acknowledged(replica, revoked);
      });
    }
  }

  #delete(keys: Keys, name: string): Promise<unknown> {
    return keys.registry.delete(this.#target(keys, name), {});
  }

  #patch(keys: Keys, name: string, patch: JsonObject): Promise<Written> {
    return patchObject(keys.registry, this.#target(keys, name), {
      kind: 'merge',
      text: JSON.stringify(patch),
      options: { fieldValidation: 'Strict', fieldManager: 'sim', isDryRun: false, isForced: false },
      context: CONTEXT,
      warn: () => undefined,
    });
  }

  #rotate(keys: Keys, name: string): Promise<Written> {
    const subresource = keys.definition.subresources.find(({ action }) => action !== undefined);
    const action = subresource?.action;
    if (!action) throw new Error('keys have no action');
    const target = { ...this.#target(keys, name), subresource };
    return performAction(keys.registry, target, action, {}, CONTEXT);
  }

  #target({ definition }: Keys, name: string): Target {
    return { definition, namespace: '', name };
  }

  /** A write that fails, or whose outcome is unknown, revokes nothing that a client could rely on. */
  #done<Result>(write: Promise<Result>, then: (result: Result) => void = () => undefined): void {
    void write.then(then, () => undefined);
  }

  /** In the turn of the response: the next request of the key comes later. */
  #acknowledged(by: Replica, secret: string): void {
    // The host was restored before the response arrived.
    if (this.#isValid(secret)) return;
    this.#dead.set(secret, { by, atMs: this.#clock.nowMs });
    this.#probe(by, secret);
  }

  #probe(replica: Replica, secret: string): void {
    const before = this.#dead.get(secret);
    const isAccepted = (): boolean => {
      const dead = this.#dead.get(secret);
      if (dead === undefined || dead !== before) return true;
      const sinceMs = this.#clock.nowMs - Math.max(dead.atMs, this.#disturbedMs);
      return dead.by !== replica && sinceMs < BOUND_MS;
    };
    this.#done(this.#user(replica, secret), (user) => {
      if (user === undefined || isAccepted()) return;
      this.#violations.push(`${this.#at()} ${replica.name} accepts a secret that ${before?.by.name} revoked`);
    });
  }

  async #user({ keys }: Replica, secret: string): Promise<unknown> {
    return keys.authenticator.authenticate(secret);
  }

  #trouble(): void {
    const forMs = this.#random() * 20_000;
    this.#faults.rates = TROUBLE;
    this.#disturbedMs = Infinity;
    this.#clock.schedule(forMs, () => this.#calm());
  }

  #calm(): void {
    this.#faults.rates = CALM;
    if (this.#cluster.outage === undefined) this.#disturbedMs = this.#clock.nowMs;
  }

  #restore(): void {
    if (this.#cluster.outage !== undefined) return;
    const known = this.#cluster.revision;
    this.#cluster.restore(Math.floor(this.#random() * 12), this.#random() < 0.5 ? 'refused' : 'proxied');
    this.#disturbedMs = Infinity;
    for (const secret of this.#dead.keys()) if (this.#isValid(secret)) this.#dead.delete(secret);
    // Other resources may have used up the revisions that were known.
    const atLeast = this.#random() < 0.5 ? 0 : known + Math.floor(this.#random() * 3);
    this.#clock.schedule(OUTAGE_MS_MIN + this.#random() * 20_000, () => {
      this.#cluster.comeBack(atLeast);
      this.#calm();
    });
  }

  /** Each replica accepts exactly what the Secrets of the host say. */
  async #settle(replicas: readonly Replica[]): Promise<void> {
    await this.#advance(30_000);
    this.#calm();
    await this.#advance(BOUND_MS);
    for (const [replica, secret] of replicas.flatMap((one) =>
      [...this.#secrets.values()].flat().map((text) => [one, text] as const),
    )) {
      const user = await this.#until(this.#user(replica, secret).catch(() => undefined));
      if ((user !== undefined) === this.#isValid(secret)) continue;
      const what = user === undefined ? 'refuses a valid secret' : 'accepts an invalid secret';
      this.#violations.push(`${this.#at()} settled, ${replica.name} ${what}`);
    }
  }

  /** From the Secrets of the host. */
  #isValid(secret: string): boolean {
    const presented = this.#digests.presented(secret);
    return this.#cluster.list('secrets').some((stored) => {
      const decoded = decodeSecret(this.#names, stored);
      if (presented === undefined || decoded.state !== 'held') return false;
      if (decoded.entry.key.resource !== 'ownedaccesskeys.management.platform.sh') return false;
      const { isDisabled, credentials } = indexedKey(decoded.entry);
      const [current] = credentials;
      return !isDisabled && current !== undefined && isSameDigest(current.digest, presented.digest);
    });
  }

  #one<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)] as Item; // there is at least one
  }

  #at(): string {
    return `at ${Math.round(this.#clock.nowMs)} ms:`;
  }

  async #until<Result>(result: Promise<Result>): Promise<Result> {
    let isDone = false;
    const done = (): void => void (isDone = true);
    void result.catch(() => undefined).finally(done);
    while (!isDone) await this.#advance(100);
    return result;
  }

  async #advance(forMs: number): Promise<void> {
    const toMs = this.#clock.nowMs + forMs;
    for (;;) {
      // Promises that can settle do so before the next thing happens.
      await new Promise((resolve) => setImmediate(resolve));
      if (!this.#clock.step(toMs)) return;
      if (++this.#steps > STEPS_MAX) throw new Error(`more than ${STEPS_MAX} steps: something never waits`);
    }
  }
}

const CONTEXT = { user: userNamed('admin', ['platform:admins']), manager: 'sim', isDryRun: false };

/** The store lists by path, with selectors that the client's `list` does not have. */
class SecretsClient extends SimClient {
  override async request(
    method: string,
    path: string,
    body?: JsonValue,
    options?: RequestOptions,
  ): Promise<JsonValue> {
    const { pathname, searchParams: query } = new URL(path, 'http://host');
    if (!pathname.endsWith('/secrets')) return super.request(method, path, body, options);
    const continueToken = query.get('continue') ?? '';
    const labelSelector = query.get('labelSelector') ?? '';
    const list = await this.list(SECRETS, { ...options, namespace: NAMESPACE, labelSelector, continueToken });
    const isRevision = query.has('fieldSelector');
    const metadata = {
      resourceVersion: list.resourceVersion,
      continue: isRevision ? '' : list.continueToken,
    };
    return {
      kind: 'SecretList',
      apiVersion: 'v1',
      metadata,
      items: isRevision ? [] : (list.items as unknown as JsonValue[]),
    }; // objects are JSON
  }
}
