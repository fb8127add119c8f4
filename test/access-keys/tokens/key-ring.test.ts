/** Rotation of signing keys: publication, use and removal, with several replicas and long pauses. */

import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { decodeProtectedHeader, type JSONWebKeySet } from 'jose';
import { describe, expect, test } from 'vitest';
import { TerminalError } from '../../../src/base/errors.ts';
import { Seal } from '../../../src/access-keys/credentials/master-key.ts';
import { KEEP_AFTER_MS, ROTATION_MS, SIGNING_KEYS } from '../../../src/access-keys/tokens/key-ring.ts';
import { MemoryStore } from '../../../src/apiserver/storage/revisioned-store.ts';
import { StoreError } from '../../../src/apiserver/storage/store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { claimsOf, DAY_MS, keyRecord, startTokens, verifyWith, type TokenHarness } from './token-harness.ts';

const HOUR_MS = 60 * 60_000;
const MAX_TTL = { ttl: 604_800 };

async function kids(harness: TokenHarness): Promise<(string | undefined)[]> {
  return (await harness.keySet()).keys.map(({ kid }) => kid);
}

async function kidOfToken(harness: TokenHarness, spec = {}): Promise<string | undefined> {
  const key = harness.index.set(keyRecord());
  return decodeProtectedHeader(await harness.token(key.user, spec)).kid;
}

describe('rotation', () => {
  test('a key is published for a day before it signs, and until its last token has expired', async () => {
    await using harness = await startTokens();
    const [first] = await kids(harness);
    await harness.clock.advanceAsync(ROTATION_MS - DAY_MS - HOUR_MS);
    expect(await kids(harness)).toEqual([first]);
    await harness.clock.advanceAsync(2 * HOUR_MS);
    const [, next] = await kids(harness);
    expect(next).toBeDefined();
    await harness.clock.advanceAsync(DAY_MS - HOUR_MS - 1);
    expect(await kidOfToken(harness, MAX_TTL)).toBe(first);
    await harness.clock.advanceAsync(1);
    expect(await kidOfToken(harness)).toBe(next);
    await harness.clock.advanceAsync(MAX_TTL.ttl * 1000 + KEEP_AFTER_MS);
    expect(await kids(harness)).toEqual([first, next]);
    await harness.clock.advanceAsync(HOUR_MS);
    expect(await kids(harness)).toEqual([next]);
  });

  test('after a long pause the old key signs until the new one has been published for two hours', async () => {
    const store = new MemoryStore();
    const clock = new FakeClock();
    const before = await startTokens({ store, clock });
    const [first] = await kids(before);
    await before.tokens.stop();
    clock.advance(400 * DAY_MS);
    await using harness = await startTokens({ store, clock });
    const [, next] = await kids(harness);
    expect(next).toBeDefined();
    expect(await kidOfToken(harness)).toBe(first);
    await clock.advanceAsync(2 * HOUR_MS - 1);
    expect(await kidOfToken(harness)).toBe(first);
    await clock.advanceAsync(1);
    expect(await kidOfToken(harness)).toBe(next);
  });

  test('a longer maximum lifetime takes effect after the published keys cover it', async () => {
    const store = new MemoryStore();
    const clock = new FakeClock();
    const before = await startTokens({ store, clock, ttls: { default: 60, max: 3600 } });
    const [first] = await kids(before);
    await before.tokens.stop();
    clock.advance(ROTATION_MS - HOUR_MS);
    await using harness = await startTokens({ store, clock, ttls: { default: 60, max: 40 * 86_400 } });
    const key = harness.index.set(keyRecord());
    const token = await harness.token(key.user, { ttl: 40 * 86_400 });
    expect(decodeProtectedHeader(token).kid).toBe(first);
    await clock.advanceAsync(39 * DAY_MS);
    await expect(verifyWith(await harness.keySet(), token, clock.now())).resolves.toBeDefined();
  });

  test('replicas that start concurrently share one key', async () => {
    const store = new MemoryStore();
    const clock = new FakeClock();
    const instances = await Promise.all([1, 2, 3, 4].map(() => startTokens({ store, clock })));
    const sets = await Promise.all(instances.map(kids));
    expect(new Set(sets.flat()).size).toBe(1);
    for (const harness of instances) await harness.tokens.stop();
  });
});

describe('after a start with a clock that was 400 days ahead', () => {
  test('the first key is replaced, and its tokens verify until they expire', async () => {
    const store = new MemoryStore();
    const ahead = await startTokens({ store, clock: new FakeClock(Date.UTC(2027, 1, 5)) });
    const [wrong] = await kids(ahead);
    await ahead.tokens.stop();
    const clock = new FakeClock();
    await using harness = await startTokens({ store, clock });
    const [, next] = await kids(harness);
    expect(next).toBeDefined();
    // Verifiers may not know the new key yet.
    const key = harness.index.set(keyRecord());
    const token = await harness.token(key.user, MAX_TTL);
    expect(decodeProtectedHeader(token).kid).toBe(wrong);
    await clock.advanceAsync(2 * HOUR_MS);
    expect(await kidOfToken(harness)).toBe(next);
    await clock.advanceAsync(6 * DAY_MS);
    await expect(verifyWith(await harness.keySet(), token, clock.now())).resolves.toBeDefined();
    // The next rotation is due as usual.
    await clock.advanceAsync(ROTATION_MS);
    const current = await kidOfToken(harness);
    expect([wrong, next]).not.toContain(current);
    expect(await kids(harness)).toEqual([wrong, next, current]);
  });

  test('the next key postpones no rotation, and is removed when a later one begins', async () => {
    const store = new MemoryStore();
    const before = await startTokens({ store, clock: new FakeClock() });
    const [first] = await kids(before);
    await before.tokens.stop();
    const ahead = await startTokens({ store, clock: new FakeClock(Date.UTC(2027, 1, 5)) });
    const [, wrong] = await kids(ahead);
    await ahead.tokens.stop();
    const clock = new FakeClock();
    await using harness = await startTokens({ store, clock });
    expect(await kidOfToken(harness)).toBe(first);
    await clock.advanceAsync(ROTATION_MS);
    const next = await kidOfToken(harness);
    expect([first, wrong]).not.toContain(next);
    await clock.advanceAsync(400 * DAY_MS);
    expect(await kidOfToken(harness)).not.toBe(wrong);
    await clock.advanceAsync(2 * ROTATION_MS);
    expect(await kids(harness)).not.toContain(wrong);
  });

  test('replicas whose clocks differ by as much keep the keys of the other', async () => {
    const store = new MemoryStore();
    const clock = new FakeClock();
    await using right = await startTokens({ store, clock });
    const key = right.index.set(keyRecord());
    const token = await right.token(key.user, MAX_TTL);
    await using behind = await startTokens({ store, clock: new FakeClock(Date.UTC(2024, 10, 27)) });
    expect(await kids(behind)).toHaveLength(2);
    await clock.advanceAsync(6 * DAY_MS);
    await expect(verifyWith(await right.keySet(), token, clock.now())).resolves.toBeDefined();
    expect((await kids(right)).length).toBeLessThan(5);
  });
});

describe('in the store', () => {
  test('private keys are encrypted and in no public document', async () => {
    await using harness = await startTokens();
    const { entries } = await harness.store.list({ resource: SIGNING_KEYS });
    expect(JSON.stringify(entries)).not.toContain('"d"');
    const { keys } = await harness.keySet();
    expect(keys.map((key) => Object.keys(key).sort())).toEqual([
      ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'],
    ]);
  });

  test('with keys of another master key the start fails with the next step', async () => {
    await using harness = await startTokens();
    const seal = new Seal(Buffer.alloc(32, 8), randomBytes);
    const start = startTokens({ store: harness.store, clock: harness.clock, seal });
    await expect(start).rejects.toThrow(TerminalError);
    await expect(start).rejects.toThrow('restore the master key file');
  });

  test('tokens are issued while the store is unavailable for minutes, and not after longer', async () => {
    const store = new MemoryStore();
    await using harness = await startTokens({ store });
    const key = harness.index.set(keyRecord());
    store.list = () => Promise.reject(new StoreError('unavailable', 'the store is not to be reached'));
    await harness.clock.advanceAsync(9 * 60_000);
    await expect(harness.token(key.user)).resolves.toBeDefined();
    await harness.clock.advanceAsync(2 * 60_000);
    await expect(harness.token(key.user)).rejects.toMatchObject({ code: 503 });
  });
});

describe('documents', () => {
  test('discovery names the key set; both may be cached for an hour', async () => {
    await using harness = await startTokens({
      issuer: 'https://platform.example.com/kubernetes/management/',
    });
    const documents = harness.tokens.publicDocuments;
    expect([...documents.keys()]).toEqual([
      '/.well-known/openid-configuration',
      '/openid/v1/jwks',
      '/kubernetes/management/.well-known/openid-configuration',
      '/kubernetes/management/openid/v1/jwks',
    ]);
    const answer = await documents.get('/.well-known/openid-configuration')?.();
    expect(answer?.headers).toEqual({
      'content-type': 'application/json',
      'cache-control': 'public, max-age=3600',
    });
    // Verifiers compare the issuer as it is configured.
    expect(JSON.parse(answer?.body ?? '')).toEqual({
      issuer: 'https://platform.example.com/kubernetes/management/',
      jwks_uri: 'https://platform.example.com/kubernetes/management/openid/v1/jwks',
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
    });
    const keySet = await documents.get('/openid/v1/jwks')?.();
    expect(keySet?.headers).toEqual({
      'content-type': 'application/jwk-set+json',
      'cache-control': 'public, max-age=3600',
    });
  });
});

/** One thing that happens to a few replicas over one store. */
type Step =
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'sign' | 'restart' | 'sleep'; readonly replica: number; readonly ttl: number };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc
        .oneof(
          fc.integer({ min: 1, max: 3 * HOUR_MS }),
          fc.integer({ min: 1, max: 3 * DAY_MS }),
          fc.integer({ min: 20 * DAY_MS, max: 45 * DAY_MS }),
        )
        .map((ms): Step => ({ do: 'pass', ms })),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('sign' as const),
        replica: fc.integer({ min: 0, max: 1 }),
        ttl: fc.integer({ min: 1, max: 604_800 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constantFrom('restart' as const, 'sleep' as const),
        replica: fc.integer({ min: 0, max: 1 }),
        ttl: fc.constant(0),
      }),
    },
  ),
  { minLength: 5, maxLength: 25 },
);

describe('at every moment of any timeline', () => {
  test('every unexpired token verifies, also with a copy of the key set that is an hour old', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (timeline) => {
        const world = await Timeline.start();
        try {
          for (const step of timeline) {
            await world.run(step);
            expect(await world.strangers()).toEqual([]);
            await world.takeCopies();
            expect(await world.strangers()).toEqual([]);
          }
        } finally {
          await world.stop();
        }
      }),
      { numRuns: 40 },
    );
  });
});

/** Two replicas, what they signed, and the copies of the key set that verifiers took from them. */
class Timeline {
  readonly #store = new MemoryStore();
  readonly #clock = new FakeClock();
  readonly #replicas: TokenHarness[] = [];
  readonly #tokens: string[] = [];
  #copies: { readonly takenAtMs: number; readonly keySet: JSONWebKeySet }[] = [];

  static async start(): Promise<Timeline> {
    const timeline = new Timeline();
    for (const replica of [0, 1]) await timeline.#restart(replica);
    await timeline.takeCopies();
    return timeline;
  }

  async stop(): Promise<void> {
    for (const replica of this.#replicas) await replica.tokens.stop();
  }

  async run(step: Step): Promise<void> {
    switch (step.do) {
      case 'pass':
        // Long waits are split, so that a replica reloads its keys in between.
        await this.#clock.advanceAsync(Math.max(0, step.ms - HOUR_MS));
        await this.takeCopies();
        await this.#clock.advanceAsync(Math.min(step.ms, HOUR_MS));
        break;
      case 'sleep':
        await this.#replicas[step.replica]?.tokens.stop();
        break;
      case 'restart':
        await this.#replicas[step.replica]?.tokens.stop();
        await this.#restart(step.replica);
        break;
      case 'sign': {
        const replica = this.#replicas[step.replica];
        if (replica) this.#tokens.push(await replica.token(keyRecord().user, { ttl: step.ttl }));
        break;
      }
    }
  }

  async #restart(replica: number): Promise<void> {
    const harness = await startTokens({ store: this.#store, clock: this.#clock });
    harness.index.set(keyRecord());
    this.#replicas[replica] = harness;
  }

  async takeCopies(): Promise<void> {
    const takenAtMs = this.#clock.now();
    for (const replica of this.#replicas) {
      this.#copies.push({ takenAtMs, keySet: await replica.keySet() });
    }
  }

  /** Key ids of tokens that a verifier with a young copy does not know. Rejects when a signature is wrong. */
  async strangers(): Promise<(string | undefined)[]> {
    const nowMs = this.#clock.now();
    this.#copies = this.#copies.filter(({ takenAtMs }) => nowMs - takenAtMs <= HOUR_MS);
    const alive = this.#tokens.filter((token) => claimsOf(token).exp * 1000 > nowMs);
    const [last, copy] = [alive.at(-1), this.#copies[0]];
    if (last && copy) await verifyWith(copy.keySet, last, nowMs);
    const signers = new Set(alive.map((token) => decodeProtectedHeader(token).kid));
    return this.#copies.flatMap(({ keySet }) => {
      const known = new Set(keySet.keys.map(({ kid }) => kid));
      return [...signers].filter((kid) => !known.has(kid));
    });
  }
}
