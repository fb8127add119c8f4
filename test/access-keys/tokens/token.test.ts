/** Verification of tokens: valid, expired, revoked and forged ones. */

import { decodeProtectedHeader, generateKeyPair, SignJWT } from 'jose';
import { describe, expect, onTestFinished, test } from 'vitest';
import { userNamed } from '../../../src/apiserver/user.ts';
import { bearerAuthenticator } from '../../../src/access-keys/keys/key-authenticator.ts';
import { LocalAdministrator } from '../../../src/access-keys/credentials/master-key.ts';
import { isDirectToken } from '../../../src/access-keys/tokens/token.ts';
import { clusterAudience, EXTRA, TOKEN_AUDIENCE } from '../../../src/access-keys/identity.ts';
import { KeyRing } from '../../../src/access-keys/tokens/key-ring.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import {
  claimsOf,
  DAY_MS,
  ISSUER,
  keyRecord,
  startTokens,
  testSeal,
  verifyWith,
  type TokenHarness,
  type TestKey,
} from './token-harness.ts';

const SCOPE = { clusters: [{ cluster: 'a' }] };

async function withToken(spec = {}): Promise<{ harness: TokenHarness; key: TestKey; token: string }> {
  const harness = await startTokens();
  onTestFinished(() => harness[Symbol.asyncDispose]());
  const key = harness.index.set(keyRecord());
  return { harness, key, token: await harness.token(key.user, spec) };
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const ORDER = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551');

/** (r, n − s) of (r, s). */
function twinOf(signature: string): string {
  const bytes = Buffer.from(signature, 'base64url');
  const s = BigInt(`0x${bytes.subarray(32).toString('hex')}`);
  const twin = Buffer.from((ORDER - s).toString(16).padStart(64, '0'), 'hex');
  return Buffer.concat([bytes.subarray(0, 32), twin]).toString('base64url');
}

describe('a good token', () => {
  test('authenticates as the user of its key, within its own scope', async () => {
    const { harness, key, token } = await withToken({ scope: SCOPE });
    await expect(harness.tokens.verify(token)).resolves.toEqual({
      ...key.user,
      extra: { ...key.user.extra, [EXTRA.scope]: [JSON.stringify(SCOPE)] },
    });
  });

  test('without a scope: exactly the user of its key', async () => {
    const { harness, key, token } = await withToken();
    await expect(harness.tokens.verify(token)).resolves.toEqual(key.user);
  });

  test.each<[audience: string | string[], isAccepted: boolean]>([
    [TOKEN_AUDIENCE, false],
    [[clusterAudience('a')], true],
    [['x', clusterAudience('a')], true],
    [[clusterAudience('b')], false],
    [[`${TOKEN_AUDIENCE}/`], false],
    ['https://kubernetes.default.svc', false],
    [[], false],
  ])('with the audience %j, signed with the key of the ring: accepted %s', async (aud, isAccepted) => {
    const { harness, key, token } = await withToken({ scope: SCOPE });
    const ring = new KeyRing({
      ...harness,
      seal: testSeal(),
      logger: silentLogger,
      tokenSecondsMax: 604_800,
    });
    const { kid, key: signing } = await ring.signer();
    const header = { alg: 'ES256', typ: 'dcet+jwt', kid };
    const signed = async (): Promise<string> =>
      new SignJWT({ ...claimsOf(token), aud }).setProtectedHeader(header).sign(signing);
    // Of the two equivalent signatures only one is accepted, and either is made.
    const users = await Promise.all(
      Array.from({ length: 20 }, async () => harness.tokens.verify(await signed())),
    );
    expect(users.some((user) => user?.name === key.user.name)).toBe(isAccepted);
  });

  test('of a key that another replica has just created', async () => {
    const { harness, key, token } = await withToken();
    harness.index.keys.clear();
    harness.index.arriving.push(key);
    await expect(harness.tokens.verify(token)).resolves.toEqual(key.user);
  });

  test('created by another replica, with signing keys that this one has not read yet', async () => {
    const { harness, key, token } = await withToken();
    const other = await startTokens({ clock: harness.clock, store: harness.store });
    other.index.set(key);
    await other.tokens.stop(); // no timer: it reads when it has to
    await harness.clock.advanceAsync(31 * DAY_MS);
    const newer = await harness.token(key.user);
    expect(decodeProtectedHeader(newer)['kid']).not.toBe(decodeProtectedHeader(token)['kid']);
    await expect(other.tokens.verify(newer)).resolves.toEqual(key.user);
    await expect(other.tokens.verify(token)).resolves.toBeUndefined(); // its day is over
  });
});

describe('a token is invalid', () => {
  test('from the moment of its expiry', async () => {
    const { harness, token } = await withToken({ ttl: 60 });
    harness.clock.advance(59_999);
    await expect(harness.tokens.verify(token)).resolves.toBeDefined();
    harness.clock.advance(1);
    await expect(harness.tokens.verify(token)).resolves.toBeUndefined();
  });

  test.each([
    [1_000, true],
    [2_000, false],
  ])('issued by a replica whose clock is %i ms ahead: accepted %s', async (aheadMs, isAccepted) => {
    const { harness, token } = await withToken();
    const behind = new FakeClock(harness.clock.now() - aheadMs);
    const other = await startTokens({ clock: behind, store: harness.store });
    other.index.set(keyRecord());
    expect((await other.tokens.verify(token)) !== undefined).toBe(isAccepted);
    await other.tokens.stop();
  });

  test('with the equivalent higher-s signature, or with another base64 form of its signature', async () => {
    const { harness, key } = await withToken();
    for (let round = 0; round < 20; round++) {
      const token = await harness.token(key.user);
      await expect(harness.tokens.verify(token)).resolves.toBeDefined();
      const end = token.lastIndexOf('.') + 1;
      const twin = token.slice(0, end) + twinOf(token.slice(end));
      // A stock verifier accepts both, so it is the same token twice.
      await expect(verifyWith(await harness.keySet(), twin, harness.clock.now())).resolves.toBeDefined();
      await expect(harness.tokens.verify(twin)).resolves.toBeUndefined();
      const last = token.at(-1) ?? '';
      const respelled = token.slice(0, -1) + ALPHABET.charAt(ALPHABET.indexOf(last) + 1);
      await expect(harness.tokens.verify(respelled)).resolves.toBeUndefined();
      await expect(harness.tokens.verify(`${token}=`)).resolves.toBeUndefined();
    }
  });

  test.each<[string, Parameters<typeof keyRecord>[0] | undefined]>([
    ['is deleted', undefined],
    ['is disabled', { isDisabled: true }],
    ['is being deleted', { isDeleted: true }],
    ['is over', { expiresAtMs: Date.UTC(2026, 0, 1) }],
    ['may do something else by now', { tokenGeneration: 2 }],
    ['was put back to what it was', { tokenGeneration: 0 }],
  ])('when its key %s', async (_what, change) => {
    const { harness, token } = await withToken();
    harness.index.keys.clear();
    if (change) harness.index.set(keyRecord(change));
    await expect(harness.tokens.verify(token)).resolves.toBeUndefined();
  });

  test('when one character is changed', async () => {
    const { harness, token } = await withToken();
    for (let at = 0; at < token.length; at += 7) {
      const other = token[at] === 'A' ? 'B' : 'A';
      // The last character of a part holds bits that mean nothing.
      if (token[at] === '.' || token[at + 1] === '.' || at === token.length - 1) continue;
      const changed = token.slice(0, at) + other + token.slice(at + 1);
      await expect(harness.tokens.verify(changed)).resolves.toBeUndefined();
    }
  });

  test.each(['', '.', '..', '...', 'a.b.c', 'pak_abc', '{}', 'e30.e30.e30', 'x'.repeat(100_000)])(
    'when it is none: %.20s',
    async (text) => {
      const harness = await startTokens();
      await expect(harness.tokens.verify(text)).resolves.toBeUndefined();
    },
  );

  /** Each token is valid except for one header or claim, or its signature. */
  test.each<[string, object, object]>([
    ['no signature', { alg: 'none' }, {}],
    ['another type', { typ: 'JWT' }, {}],
    ['an unknown key id', { kid: 'unknown' }, {}],
    ['another issuer', {}, { iss: 'https://elsewhere.example.com' }],
    ['another audience', {}, { aud: 'https://kubernetes.default.svc' }],
    ['signed with another key', {}, {}],
    ['a symmetric algorithm', { alg: 'HS256' }, {}],
  ])('forged: %s', async (_what, header, claims) => {
    const { harness, token } = await withToken();
    const [keyPair, keySet] = [await generateKeyPair('ES256'), await harness.keySet()];
    const kid = keySet.keys[0]?.kid ?? '';
    const wanted = { alg: 'ES256', typ: 'dcet+jwt', kid, ...header };
    const payload = { ...claimsOf(token), ...claims };
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const forged =
      wanted.alg === 'ES256'
        ? await new SignJWT(payload).setProtectedHeader(wanted).sign(keyPair.privateKey)
        : wanted.alg === 'HS256'
          ? await new SignJWT(payload)
              .setProtectedHeader(wanted)
              .sign(new TextEncoder().encode(JSON.stringify(keySet.keys[0])))
          : `${encode(wanted)}.${encode(payload)}.`;
    await expect(harness.tokens.verify(forged)).resolves.toBeUndefined();
  });

  test('of an API with another issuer over the same store', async () => {
    const { harness, key, token } = await withToken();
    const other = await startTokens({
      clock: harness.clock,
      store: harness.store,
      issuer: `${ISSUER}/other`,
    });
    other.index.set(key);
    await expect(other.tokens.verify(token)).resolves.toBeUndefined();
    await other.tokens.stop();
  });
});

describe('the API itself', () => {
  test('rejects tokens without a review by the host cluster', async () => {
    const { harness, token } = await withToken();
    const asked: string[] = [];
    const bearer = bearerAuthenticator({
      keys: { authenticate: () => Promise.resolve(undefined) },
      local: new LocalAdministrator(Buffer.alloc(32), harness.clock),
      isDirectToken,
      host: {
        authenticate: (text) => {
          asked.push(text);
          return Promise.resolve(userNamed('host-user'));
        },
      },
    });
    const authenticate = async (text: string): Promise<unknown> =>
      bearer({ authorization: `Bearer ${text}`, address: '127.0.0.1' });
    await expect(authenticate(token)).resolves.toBeUndefined();
    expect(asked).toEqual([]);
    for (const text of ['e30.e30.e30', '..', 'a.b.c', 'opaque']) {
      await expect(authenticate(text)).resolves.toMatchObject({ name: 'host-user' });
    }
  });
});
