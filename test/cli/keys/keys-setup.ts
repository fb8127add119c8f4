/** For tests of `keys`: configuration files, the command, and whether the API accepts a key. */

import { join } from 'node:path';
import type { ManagementConfig } from '../../../src/access-keys/config.ts';
import { KEYS_PATH, type Composed } from '../../access-keys/composed-api.ts';
import { testFolder } from '../../support/test-folder.ts';
import { capturedRun, type CapturedRun } from '../captured-run.ts';

/** A configuration file, and the folder that it names. */
export interface Place {
  readonly file: string;
  readonly dataDir: string;
}

/** A folder for the tests of one file, deleted after them. */
export function keysFolder() {
  const { folder, write } = testFolder();

  function configFile(
    name: string,
    driver: ManagementConfig['store']['driver'] = 'sqlite',
    more = '',
  ): Place {
    const dataDir = join(folder, name);
    const lines = [
      `  dataDir: ${dataDir}`,
      '  bindAddress: 127.0.0.1:0',
      `  store: {driver: ${driver}}`,
      more,
    ];
    const text = `managementApi:\n${lines.join('\n')}\nendpointSyncer: {log: {level: silent}}\n`;
    return { file: write(`${name}.yaml`, text), dataDir };
  }

  return { write, configFile };
}

export const keys = (...args: string[]): Promise<CapturedRun> => capturedRun(['keys', ...args]);

export async function statusOf(api: Composed, key: string): Promise<number> {
  return (await api.as(key.trim()).send({ method: 'GET', path: KEYS_PATH })).status;
}
