/** Encryption of stored secrets, and creation and validation of the master key file. */

import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TerminalError } from '../../../src/base/errors.ts';
import { Seal, openMasterKey, type MasterKey } from '../../../src/access-keys/credentials/master-key.ts';
import { silentLogger, type Logger } from '../../../src/base/logger.ts';
import { MemoryStore } from '../../../src/apiserver/storage/revisioned-store.ts';

describe('seal', () => {
  const seal = new Seal(Buffer.alloc(32, 3), randomBytes);

  test('decrypts what it encrypted, for the same purpose', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (plain, purpose) => {
        const sealed = seal.seal(plain, purpose);
        expect(seal.open(sealed, purpose)).toBe(plain);
        expect(() => seal.open(sealed, `${purpose}.`)).toThrow(/cannot be decrypted/);
      }),
    );
  });

  test('a changed text is rejected without its content in the error', () => {
    const sealed = seal.seal('top secret', 'p');
    for (let at = 3; at < sealed.length - 1; at++) {
      const other = sealed[at] === 'A' ? 'B' : 'A';
      expect(() => seal.open(sealed.slice(0, at) + other + sealed.slice(at + 1), 'p')).toThrow(
        /^the stored value for p /,
      );
    }
    for (const text of ['', 's1.', 's1.AAAA', sealed.slice(3)]) {
      expect(() => seal.open(text, 'p')).toThrow('the stored value for p is not a sealed text');
    }
  });

  test('the same text is encrypted differently each time, and another key does not decrypt it', () => {
    expect(seal.seal('x', 'p')).not.toBe(seal.seal('x', 'p'));
    expect(() => new Seal(Buffer.alloc(32, 4), randomBytes).open(seal.seal('x', 'p'), 'p')).toThrow(
      /another master key/,
    );
  });
});

describe('master key', () => {
  let dir = '';
  let dataDir = '';
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'master-key-'));
    dataDir = join(dir, 'data');
  });
  afterEach(() => rm(dir, { recursive: true }));

  const open = (store: MemoryStore, logger: Logger = silentLogger): Promise<MasterKey> =>
    openMasterKey({ dataDir, store, dependentResources: ['things'], randomBytes, logger });

  test('is created once, readable by the owner only, and read again', async () => {
    await using store = new MemoryStore();
    const created = await open(store);
    const file = join(dataDir, 'master.key');
    expect(await readFile(file, 'utf8')).toMatch(/^[A-Za-z0-9+/]{43}=\n$/);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const again = await open(store);
    expect(again.pepper.equals(created.pepper)).toBe(true);
    expect(again.seal.open(created.seal.seal('x', 'p'), 'p')).toBe('x');
    const { entries } = await store.list({ resource: 'masterkeyproofs.management.platform.sh' });
    const text = (await readFile(file, 'utf8')).trim();
    expect(JSON.stringify(entries)).not.toContain(text);
    expect(JSON.stringify(entries)).not.toContain(created.pepper.toString('base64'));
  });

  test('concurrent starts get the same key', async () => {
    await using store = new MemoryStore();
    const keys = await Promise.all(Array.from({ length: 8 }, () => open(store)));
    expect(new Set(keys.map(({ proof }) => proof)).size).toBe(1);
  });

  test('a new store accepts any key', async () => {
    await using first = new MemoryStore();
    await using second = new MemoryStore();
    const key = await open(first);
    expect((await open(second)).proof).toBe(key.proof);
  });

  test('a file other than the one that the keys were created with is rejected', async () => {
    await using store = new MemoryStore();
    await open(store);
    await writeFile(join(dataDir, 'master.key'), randomBytes(32).toString('base64'));
    await expect(open(store)).rejects.toThrow(TerminalError);
    await expect(open(store)).rejects.toThrow(/restore the right file/);
  });

  test('a missing file is not created again for a store that has keys', async () => {
    await using store = new MemoryStore();
    await open(store);
    await rm(join(dataDir, 'master.key'));
    await expect(open(store)).rejects.toThrow(/is missing.*restore the file from its backup/);
    await expect(stat(join(dataDir, 'master.key'))).rejects.toThrow(/ENOENT/);
  });

  test.each(['', 'x', randomBytes(31).toString('base64'), `${randomBytes(32).toString('base64')}!`])(
    'a damaged file is refused: %j',
    async (text) => {
      await using store = new MemoryStore();
      await open(store);
      await writeFile(join(dataDir, 'master.key'), text);
      await expect(open(store)).rejects.toThrow(/is damaged/);
    },
  );

  test('a folder that cannot be created is an error', async () => {
    await using store = new MemoryStore();
    await writeFile(dataDir, 'a file');
    await expect(open(store)).rejects.toThrow(TerminalError);
  });

  test('a file that other users may read is a warning', async () => {
    await using store = new MemoryStore();
    await open(store);
    await chmod(join(dataDir, 'master.key'), 0o644);
    const warnings: string[] = [];
    await open(store, { ...silentLogger, warn: (_fields, message) => void warnings.push(message) });
    expect(warnings).toEqual(['other users can read the master key: chmod 600']);
  });
});
