/** Selection and reading of the configuration file. */

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { FILE_BYTES_MAX, readConfigText } from '../../../src/cli/config/files.ts';
import { type LoadedConfig, loadConfig } from '../../../src/cli/config/load.ts';
import { ConfigError } from '../../../src/base/errors.ts';
import { testFolder } from '../../support/test-folder.ts';

const { folder, write: file } = testFolder();

function load(options: { file?: string; env?: Record<string, string> }): Promise<LoadedConfig> {
  return loadConfig({ env: {}, flags: {}, ...options });
}

async function problemsOf(promise: Promise<unknown>): Promise<string[]> {
  const error: unknown = await promise.catch((reason: unknown) => reason);
  if (!(error instanceof ConfigError)) throw new Error('no ConfigError', { cause: error });
  return error.problems.map((problem) => `${problem.file}:${problem.line} ${problem.message}`);
}

describe('selection of the file', () => {
  test('--config before the environment', async () => {
    const [a, b] = [file('a.yaml', 'endpointSyncer: {name: a}'), file('b.yaml', 'endpointSyncer: {name: b}')];
    const loaded = await load({ file: a, env: { ENDPOINT_SYNCER_CONFIG: b } });
    expect([loaded.config.name, loaded.file]).toEqual(['a', a]);
    expect((await load({ env: { ENDPOINT_SYNCER_CONFIG: b } })).config.name).toBe('b');
  });

  test('no file', async () => {
    const loaded = await load({ env: { VCLUSTER_NAME: 'vc', ENDPOINT_SYNCER_CONFIG: '' } });
    expect([loaded.config.name, loaded.file]).toEqual(['vc', undefined]);
    expect(await problemsOf(load({}))).toEqual([
      expect.stringMatching(/^:0 there is no configuration file: use --config/u),
    ]);
  });

  test('JSON, and a byte order mark', async () => {
    const path = file('c.json', '\ufeff{"endpointSyncer": {"name": "vc"}, "endpointSyncr": 1}');
    const { config, warnings } = await load({ file: path });
    expect(config.name).toBe('vc');
    expect(warnings.map(({ line, column }) => [line, column])).toEqual([[1, 36]]);
  });
});

describe('files that cannot be read', () => {
  test('missing, a folder, too large, not text', async () => {
    const large = file('large.yaml', '#'.repeat(FILE_BYTES_MAX + 1));
    const binary = file('binary.yaml', Buffer.from([0x61, 0x3a, 0xff, 0xfe]));
    const missing = join(folder, 'missing.yaml');
    const found = await Promise.all(
      [missing, folder, large, binary].map((path) => problemsOf(load({ file: path }))),
    );
    expect(found).toEqual([
      [`${missing}:0 cannot be read: there is no such file; correct its path`],
      [`${folder}:0 cannot be read: it is a folder; name a file in it`],
      [`${large}:0 is larger than ${FILE_BYTES_MAX} bytes`],
      [`${binary}:0 is not UTF-8 text: save it as UTF-8, or name another file`],
    ]);
  });

  test('endless input is rejected', async () => {
    expect(await problemsOf(readConfigText('/dev/zero'))).toEqual([
      `/dev/zero:0 is larger than ${FILE_BYTES_MAX} bytes`,
    ]);
  });

  test('a character that is split between chunks is decoded', async () => {
    const text = `#${'€'.repeat(60_000)}\nendpointSyncer: {name: vc}\n`;
    expect(await readConfigText(file('wide.yaml', text))).toBe(text);
  });
});
