/** A configuration is reloaded when its files change, whenever that happens, and not otherwise. */

import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readConfigText, type FileTexts } from '../../../src/config/load.ts';
import { watchConfigFiles } from '../../../src/cli/run/watch-file.ts';
import { eventually } from '../../scenarios/eventually.ts';

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
  watching.push(watchConfigFiles(files, reload, { pollMs: 20 }));
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
  watching.push(watchConfigFiles(new Map([[config, 'a']]), reload));
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
