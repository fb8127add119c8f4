/** The local administrator and the first key. */

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { UserInfo } from '../../../src/apiserver/user.ts';
import { ensureFirstKeyFile } from '../../../src/access-keys/credentials/first-key.ts';
import {
  createOwnFile,
  readOwnFile,
  LocalAdministrator,
} from '../../../src/access-keys/credentials/master-key.ts';
import type { Keys } from '../../../src/access-keys/keys/keys.ts';
import { silentLogger, type Logger } from '../../../src/base/logger.ts';
import { MemoryStore } from '../../../src/apiserver/storage/revisioned-store.ts';
import type { Store } from '../../../src/apiserver/storage/store.ts';
import { ADMINISTRATORS } from '../../../src/access-keys/identity.ts';
import type { RawClient } from '../../contract/raw-client.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { KEYS_PATH, startComposed, type Composed } from '../composed-api.ts';
import { makeKeys } from '../keys/key-server.ts';

describe('the administrator on the machine of the API', () => {
  const secret = Buffer.alloc(32, 1);

  test('is authenticated by a credential of the last minute, created with the same secret', () => {
    const clock = new FakeClock();
    const local = new LocalAdministrator(secret, clock);
    const credential = local.credential();
    expect(local.authenticate(credential)?.groups).toContain(ADMINISTRATORS);
    clock.advance(60_000);
    expect(local.authenticate(credential)).toBeDefined();
    clock.advance(1_000);
    expect(local.authenticate(credential)).toBeUndefined();
    expect(
      new LocalAdministrator(Buffer.alloc(32, 2), clock).authenticate(local.credential()),
    ).toBeUndefined();
  });

  test.each([
    '',
    'local_',
    'local_1_x',
    `local_1767225600_${'A'.repeat(43)}`,
    'pak_x',
    'local_9999999999999_x',
  ])('is not %j', (token) => {
    expect(new LocalAdministrator(secret, new FakeClock()).authenticate(token)).toBeUndefined();
  });

  test('a credential for a later time is rejected now', () => {
    const [clock, later] = [new FakeClock(), new FakeClock(Date.UTC(2027, 0, 1))];
    const credential = new LocalAdministrator(secret, later).credential();
    expect(new LocalAdministrator(secret, clock).authenticate(credential)).toBeUndefined();
  });
});

describe('bootstrapKeyFile', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-bootstrap-'));
    file = join(folder, 'first.key');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Over SQLite: a start finds what the previous one created. */
  const start = (logger = silentLogger): Promise<Composed> =>
    startComposed({
      logger,
      dataDir: join(folder, 'data'),
      config: { bootstrapKeyFile: file, store: { driver: 'sqlite' } },
    });
  const written = (): string => readFileSync(file, 'utf8').trim();
  const statusOf = async (client: RawClient): Promise<number> =>
    (await client.send({ method: 'GET', path: KEYS_PATH })).status;

  test('is created if it does not exist, readable by its owner only, and stays valid', async () => {
    {
      await using api = await start();
      expect([statSync(file).mode & 0o777, await statusOf(api.as(written()))]).toEqual([0o600, 200]);
    }
    const before = written();
    await using api = await start();
    expect([written(), await statusOf(api.as(before))]).toEqual([before, 200]);
  });

  test('may contain a given key, and another given key replaces it', async () => {
    const [one, two] = [
      'first-key-that-an-admin-wrote-0123456789',
      'second-key-that-an-admin-wrote-012345678',
    ];
    writeFileSync(file, `${one}\n`);
    {
      await using api = await start();
      expect(await statusOf(api.as(one))).toBe(200);
    }
    chmodSync(file, 0o600);
    writeFileSync(file, two);
    await using api = await start();
    expect([await statusOf(api.as(one)), await statusOf(api.as(two))]).toEqual([401, 200]);
  });

  test('a key in a file that other users can read is reported', async () => {
    const warnings: string[] = [];
    const logger: Logger = {
      ...silentLogger,
      warn: (_fields, message) => void warnings.push(message),
      child: () => logger,
    };
    writeFileSync(file, 'a-supplied-first-key-0123456789abcdefgh\n', { mode: 0o644 });
    await (await start(logger))[Symbol.asyncDispose]();
    expect(warnings).toContain('other users can read bootstrapKeyFile: chmod 600');
    chmodSync(file, 0o600);
    warnings.length = 0;
    await (await start(logger))[Symbol.asyncDispose]();
    expect(warnings.filter((text) => text.includes('bootstrapKeyFile'))).toEqual([]);
  });

  test('does not enable a key that an administrator disabled', async () => {
    {
      await using api = await start();
      const path = `${KEYS_PATH}/bootstrap-admin`;
      const headers = { 'content-type': 'application/merge-patch+json' };
      await api.administrator.send({ method: 'PATCH', path, headers, body: { spec: { disabled: true } } });
    }
    await using api = await start();
    expect(await statusOf(api.as(written()))).toBe(401);
  });

  describe('a key that an administrator revoked is not created again', () => {
    const remove = async (api: Composed): Promise<number> => {
      const path = `${KEYS_PATH}/bootstrap-admin`;
      return (await api.administrator.send({ method: 'DELETE', path })).status;
    };

    test.each([
      ['that was generated', undefined],
      ['that was supplied', 'a-supplied-first-key-0123456789abcdefgh\n'],
    ])('%s', async (_, supplied) => {
      if (supplied !== undefined) writeFileSync(file, supplied, { mode: 0o600 });
      {
        await using api = await start();
        expect([await statusOf(api.as(written())), await remove(api)]).toEqual([200, 200]);
      }
      {
        await using api = await start();
        expect(await statusOf(api.as(written()))).toBe(401);
      }
      const other = 'another-supplied-first-key-0123456789abc';
      writeFileSync(file, other);
      await using api = await start();
      expect(await statusOf(api.as(other))).toBe(200);
    });

    test('nor does it replace the key that took its place', async () => {
      let key = '';
      {
        await using api = await start();
        expect(await remove(api)).toBe(200);
        key = (await api.key('bootstrap-admin', { user: 'admin' })).text;
      }
      await using api = await start();
      expect([await statusOf(api.as(written())), await statusOf(api.as(key))]).toEqual([401, 200]);
    });
  });

  test('is not written again for an existing key, whose secret is not stored', async () => {
    {
      await using api = await start();
      expect(await statusOf(api.as(written()))).toBe(200);
    }
    rmSync(file);
    await using _api = await start();
    expect(() => written()).toThrow('ENOENT');
  });

  describe('with replicas that start concurrently', () => {
    /** Of `files`, a replica each; all look for the first key before any of them creates it. */
    async function startAtOnce(store: Store, files: readonly string[]): Promise<Keys[]> {
      const met = new Barrier(files.length);
      return Promise.all(
        files.map(async (path) => {
          const keys = makeKeys(store);
          await keys.start();
          const { definition, registry, digests, authenticator } = keys;
          const find = registry.find.bind(registry);
          registry.find = async (target) => {
            const found = await find(target);
            await met.wait();
            return found;
          };
          const authenticate = async (key: string): Promise<UserInfo | undefined> =>
            authenticator.authenticate(key);
          await ensureFirstKeyFile({
            file: path,
            maxTtlMs: 0,
            definition,
            registry,
            digests,
            authenticate,
            logger: silentLogger,
          });
          return keys;
        }),
      );
    }

    test.each([
      ['each a file of its own', ['a.key', 'b.key', 'c.key']],
      ['one file for all', ['shared.key', 'shared.key', 'shared.key']],
    ])('one creates the key, the others continue: %s', async (_, names) => {
      await using store = new MemoryStore();
      const files = names.map((name) => join(folder, name));
      const replicas = await startAtOnce(store, files);
      const written = [...new Set(files)].map((path) => readFileSync(path, 'utf8').trim());
      const [key = '', ...others] = written.filter((text) => text !== '');
      expect(others).toEqual([]);
      for (const { authenticator } of replicas)
        expect((await authenticator.authenticate(key))?.name).toBe('admin');
      for (const replica of replicas) await replica.stop();
    });

    test('the key that all are given replaces the previous one', async () => {
      await using store = new MemoryStore();
      const files = ['a.key', 'b.key', 'c.key'].map((name) => join(folder, name));
      for (const key of [
        'the-first-key-0123456789-0123456789-012',
        'the-second-key-0123456789-0123456789-01',
      ]) {
        for (const path of files) writeFileSync(path, key);
        const replicas = await startAtOnce(store, files);
        for (const { authenticator } of replicas)
          expect((await authenticator.authenticate(key))?.name).toBe('admin');
        for (const replica of replicas) await replica.stop();
      }
    });
  });

  test('a link is not written through', async () => {
    const victim = join(folder, 'victim');
    writeFileSync(victim, '');
    symlinkSync(victim, file);
    await expect(start()).rejects.toThrow(/bootstrapKeyFile .* cannot be written: .* is a link/u);
    expect(readFileSync(victim, 'utf8')).toBe('');
  });

  test('a Secret that the kubelet has mounted, a file behind two links, is read', async () => {
    const key = 'first-key-that-an-admin-wrote-0123456789';
    mkdirSync(join(folder, '..2026'));
    writeFileSync(join(folder, '..2026', 'first.key'), key);
    symlinkSync('..2026', join(folder, '..data'));
    symlinkSync(join('..data', 'first.key'), file);
    await using api = await start();
    expect(await statusOf(api.as(key))).toBe(200);
  });

  describe('of another user', () => {
    const STRANGER = 4242;
    /** Only root gives files away; for another user, the file is that of a stranger if the process is taken for somebody else's. */
    const isRoot = process.geteuid?.() === 0;
    const uid = isRoot ? 0 : STRANGER;
    const giveAway = (path: string): void => {
      if (isRoot) lchownSync(path, STRANGER, STRANGER);
    };

    test('is neither read nor written', async () => {
      writeFileSync(file, 'planted-key-0123456789-0123456789-0123456789');
      giveAway(file);
      await expect(readOwnFile(file, uid)).rejects.toThrow(/belongs to user \d+, not to user/u);
      writeFileSync(file, '');
      giveAway(file);
      await expect(createOwnFile(file, uid)).rejects.toThrow(/belongs to user \d+, not to user/u);
      expect(readFileSync(file, 'utf8')).toBe('');
    });

    test('a link ends the start, even if it leads to an own file', async () => {
      const own = join(folder, 'own');
      writeFileSync(own, 'planted-key-0123456789-0123456789-0123456789');
      symlinkSync(own, file);
      giveAway(file);
      await expect(readOwnFile(file, uid)).rejects.toThrow(/belongs to user \d+, not to user/u);
    });
  });

  test('a named pipe and links in a circle are errors, not an endless start', async () => {
    execFileSync('mkfifo', [file]);
    await expect(readOwnFile(file)).rejects.toThrow('is no regular file');
    const circle = join(folder, 'circle');
    symlinkSync(circle, circle);
    await expect(readOwnFile(circle)).rejects.toThrow('leads through more than 40 links');
  });

  test('a weak key and a missing folder are errors', async () => {
    writeFileSync(file, 'weak');
    await expect(start()).rejects.toThrow(/bootstrapKeyFile .* cannot be used: .*spec\.key/u);
    file = join(folder, 'no', 'first.key');
    await expect(start()).rejects.toThrow(/bootstrapKeyFile .* cannot be written: .*ENOENT/u);
  });
});

/** Resolves for all callers when the last one has arrived; later callers do not wait. */
class Barrier {
  readonly #open = Promise.withResolvers<void>();
  #missing: number;

  constructor(count: number) {
    this.#missing = count;
  }

  wait(): Promise<void> {
    if (--this.#missing === 0) this.#open.resolve();
    return this.#open.promise;
  }
}
