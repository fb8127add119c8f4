/** A configuration is reloaded when its files have changed and are no longer being written, and not otherwise. */

import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { TerminalError } from '../../src/base/errors.ts';
import { createLogger } from '../../src/base/logger.ts';
import { reloadOnChange, watchConfigFiles } from '../../src/cli/process-lifecycle.ts';
import { loadConfig, type LoadedConfig } from '../../src/cli/config/load.ts';
import { readConfigText, type FileTexts } from '../../src/cli/config/files.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { eventually } from '../support/eventually.ts';

let folder: string;
const watching: { close(): void }[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'watch-file-'));
});

afterEach(() => {
  for (const watcher of watching.splice(0)) watcher.close();
  rmSync(folder, { recursive: true, force: true });
});

const fileNamed = (name: string, text: string): string => {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
};

/** Watches what was read as `files`; returns the texts of `read`, one for each reload. */
function watched(files: FileTexts, read: string): string[] {
  const texts: string[] = [];
  const reload = async (): Promise<FileTexts> => {
    const text = await readConfigText(read).catch(() => '(no file)');
    texts.push(text);
    return new Map([[read, text === '(no file)' ? undefined : text]]);
  };
  watching.push(watchConfigFiles(files, reload, systemClock));
  return texts;
}

const whenReloaded = (texts: string[], last: string): Promise<string[]> =>
  eventually(
    () => texts,
    (found) => found.at(-1) === last,
  );

test('a change between the first read and the watch is found', async () => {
  const file = fileNamed('config.yaml', 'new');
  const texts = watched(new Map([[file, 'old']]), file);
  expect(await whenReloaded(texts, 'new')).toEqual(['new']);
});

test('a change after a reload has read the file is found, even before its folder is watched', async () => {
  const config = fileNamed('config.yaml', 'b');
  mkdirSync(join(folder, 'other'));
  const values = fileNamed('other/values.yaml', 'before');
  const texts: string[] = [];
  const reload = async (): Promise<FileTexts> => {
    const text = await readConfigText(values);
    texts.push(text);
    writeFileSync(values, 'after');
    return new Map([
      [config, 'b'],
      [values, text],
    ]);
  };
  watching.push(watchConfigFiles(new Map([[config, 'a']]), reload, systemClock));
  expect(await whenReloaded(texts, 'after')).toEqual(['before', 'after']);
});

test('a file that is replaced through a symbolic link is found', async () => {
  for (const version of ['1', '2']) {
    mkdirSync(join(folder, version));
    fileNamed(join(version, 'config.yaml'), `version ${version}`);
  }
  symlinkSync('1', join(folder, '..data'));
  symlinkSync(join('..data', 'config.yaml'), join(folder, 'config.yaml'));
  const file = join(folder, 'config.yaml');
  const texts = watched(new Map([[file, 'version 1']]), file);
  symlinkSync('2', join(folder, '..tmp'));
  renameSync(join(folder, '..tmp'), join(folder, '..data'));
  expect(await whenReloaded(texts, 'version 2')).toEqual(['version 2']);
});

test('a file in a folder that does not exist yet is found when it appears', async () => {
  const file = join(folder, 'later', 'values.yaml');
  const texts = watched(new Map([[file, undefined]]), file);
  mkdirSync(join(folder, 'later'));
  writeFileSync(file, 'here');
  expect(await whenReloaded(texts, 'here')).toEqual(['here']);
});

test('a file that is deleted is reported once, and found again', async () => {
  const file = fileNamed('config.yaml', 'a');
  const texts = watched(new Map([[file, 'a']]), file);
  rmSync(file);
  await whenReloaded(texts, '(no file)');
  writeFileSync(file, 'a');
  expect(await whenReloaded(texts, 'a')).toEqual(['(no file)', 'a']);
});

test('other files of the folder and the same text again reload nothing', async () => {
  const file = fileNamed('config.yaml', '\u{FEFF}a');
  const texts = watched(new Map([[file, 'a']]), file);
  fileNamed('other.yaml', 'b');
  fileNamed('config.yaml', 'a');
  fileNamed('config.yaml', 'c');
  expect(await whenReloaded(texts, 'c')).toEqual(['c']);
});

const whenSome = (list: readonly unknown[]): Promise<unknown> =>
  eventually(
    () => list.length,
    (length) => length > 0,
  );

describe('a running daemon', () => {
  const PATCHED =
    'sync: {toHost: {endpoints: {patches: [{path: metadata.annotations.a, expression: value}]}}}\n';
  const OTHER = PATCHED.replace('annotations.a', 'annotations.b');
  const INVALID = PATCHED.replace('annotations.a', 'annotations..a');
  /** The name of the virtual cluster is not in the file, so that any part of it is valid. */
  const flags = { name: 'vc' };

  interface Reloads {
    readonly clock: FakeClock;
    /** Paths of the patches of each configuration that the daemon was given. */
    readonly applied: string[][];
    readonly log: Record<string, unknown>[];
    /** Lets the watcher look at the files `times` times, in steps of 250 ms of its clock. */
    readonly look: (times: number) => Promise<void>;
  }

  async function running(config: string, apply = (): void => undefined): Promise<Reloads> {
    const load = (): Promise<LoadedConfig> => loadConfig({ file: config, env: {}, flags });
    const clock = new FakeClock();
    const applied: string[][] = [];
    const log: Record<string, unknown>[] = [];
    const write = (line: string): void => void log.push(JSON.parse(line) as Record<string, unknown>); // our own logger
    const daemon = {
      reload: async ({ sync }: LoadedConfig['config']) => {
        apply();
        applied.push(sync.endpoints.patches.map(({ path }) => path));
      },
      reloadFailed: () => undefined,
    };
    const logger = await createLogger({ level: 'info', format: 'json', destination: { write } });
    watching.push(reloadOnChange({ loaded: await load(), load, daemon, clock, logger }));
    const look = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i++) {
        await eventually(
          () => clock.nextDelayMs,
          (delay) => delay === 250,
        );
        clock.advance(250);
      }
    };
    await look(1);
    return { clock, applied, log, look };
  }

  test('is not given a file that is being written', async () => {
    const file = fileNamed('config.yaml', PATCHED);
    const { applied, log, look } = await running(file);
    writeFileSync(file, '');
    await look(1);
    for (const part of OTHER.split(/(?<=\{)/u)) {
      appendFileSync(file, part);
      await look(1);
    }
    await look(1);
    await whenSome(applied);
    expect(applied).toEqual([['metadata.annotations.b']]);
    expect(log).toEqual([]);
  });

  test('keeps its configuration when a file is written in pieces and is invalid at the end: one line says where', async () => {
    const file = fileNamed('config.yaml', PATCHED);
    const { applied, log, look } = await running(file);
    writeFileSync(file, 'sync: {}\n');
    await look(1);
    writeFileSync(file, INVALID);
    await look(2);
    await whenSome(log);
    expect(applied).toEqual([]);
    expect(log).toMatchObject([
      { level: 'error', msg: 'configuration file is invalid, keeping the running configuration' },
    ]);
    const [{ reason } = {}] = log;
    expect(reason).toMatch(
      /^\S+\/config\.yaml:1:\d+: sync\.toHost\.endpoints\.patches\[0\]\.path: \S[^\n]+$/u,
    );
  });

  test('is told of what is most likely a mistake in a changed configuration, as at its start', async () => {
    const file = fileNamed('config.yaml', PATCHED);
    const { applied, log, look } = await running(file);
    writeFileSync(file, `${OTHER}toHost: {}\n`);
    await look(2);
    await whenSome(applied);
    expect(log).toMatchObject([
      { level: 'warn', path: 'toHost', msg: 'this key is not read: it belongs below sync' },
    ]);
  });

  test('is given a configuration that it could not apply again after a minute, which is logged once', async () => {
    const file = fileNamed('config.yaml', PATCHED);
    const reasons = ['12 rights are missing', '12 rights are missing'];
    const { applied, clock, log, look } = await running(file, () => {
      const reason = reasons.shift();
      if (reason !== undefined) throw new TerminalError(reason);
    });
    writeFileSync(file, OTHER);
    await look(2);
    await whenSome(log);
    let passedMs = 0;
    await eventually(
      () => {
        const delayMs = clock.nextDelayMs ?? 0;
        passedMs += delayMs;
        clock.advance(delayMs);
        return applied.length;
      },
      (count) => count > 0,
    );
    expect(Math.round(passedMs / 60_000)).toBe(2);
    expect(applied).toEqual([['metadata.annotations.b']]);
    const msg = 'configuration was not applied, keeping the running configuration';
    expect(log).toMatchObject([{ level: 'error', msg, reason: '12 rights are missing' }]);
  });

  test('is not waited for once it stops', async () => {
    const file = fileNamed('config.yaml', PATCHED);
    const { clock, log, look } = await running(file, () => {
      throw new TerminalError('12 rights are missing');
    });
    writeFileSync(file, OTHER);
    await look(2);
    await whenSome(log);
    for (const one of watching) one.close();
    await eventually(
      () => clock.nextDelayMs,
      (delayMs) => delayMs === undefined,
    );
    expect(log).toHaveLength(1);
  });

  test('has its configuration again when the file has its old content again', async () => {
    const file = fileNamed('config.yaml', PATCHED);
    const { applied, log, look } = await running(file);
    writeFileSync(file, INVALID);
    await look(2);
    await whenSome(log);
    writeFileSync(file, PATCHED);
    await look(2);
    await whenSome(applied);
    expect(applied).toEqual([['metadata.annotations.a']]);
  });

  test.each(['', '# comments\n', 'sync:\n  toHost:\n'])(
    'is not given a file that has been emptied: %j',
    async (text) => {
      const values = fileNamed('values.yaml', PATCHED);
      const syncer = `endpointSyncer: {vclusterConfig: values.yaml}\n`;
      const file = fileNamed('config.yaml', syncer);
      const { applied, log, look } = await running(file);
      const reported = async (emptied: string): Promise<void> => {
        await look(2);
        await eventually(
          () => log.splice(0),
          (lines) =>
            lines.some(
              ({ reason }) =>
                reason === `${emptied}: has no settings any more; restart if the defaults are to be used`,
            ),
        );
      };
      writeFileSync(values, text);
      await reported(values);
      writeFileSync(values, OTHER);
      await look(2);
      await whenSome(applied);
      writeFileSync(file, text);
      await reported(file);
      expect(applied).toEqual([['metadata.annotations.b']]);
    },
  );

  test('is given another file that the configuration names only when that one is still, too', async () => {
    const values = fileNamed('values.yaml', 'sync: {}\n');
    const file = fileNamed('config.yaml', PATCHED);
    const { applied, look } = await running(file);
    writeFileSync(file, 'endpointSyncer: {vclusterConfig: values.yaml}\n');
    for (let i = 0; i < 5; i++) {
      await look(1);
      appendFileSync(values, `# ${i}\n`);
    }
    writeFileSync(values, OTHER);
    await look(2);
    await whenSome(applied);
    expect(applied).toEqual([['metadata.annotations.b']]);
  });
});
