/** For commands on the machine of the API. */

import { randomBytes } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { readMasterKey } from '../credentials/master-key.ts';
import { LocalAdministrator } from './local-administrator.ts';

/** Undefined when no API has run over this folder. Throws `TerminalError` when its master key cannot be read. */
export async function openLocalAdministrator(
  dataDir: string,
  clock: Clock,
): Promise<LocalAdministrator | undefined> {
  const key = await readMasterKey(dataDir, randomBytes);
  return key && new LocalAdministrator(key.localAdministrator, clock);
}
